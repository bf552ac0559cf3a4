"""What a planner gets and gives: one function `propose(scope, context) -> Proposal`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from weft.window import PeriodicWindow, Window

if TYPE_CHECKING:
    from weft.cost.model import CostModel
    from weft.plan import Emit, Plan, Scope
    from weft.query import Workload
    from weft.statistics import Statistics
    from weft.techniques import Form

# So long that only folding its events costs anything.
_ENDLESS = PeriodicWindow(2**62, 2**62)


@dataclass(frozen=True, slots=True)
class Context:
    """What a planner may ask: statistics and prices. It decides; it does not price by itself."""

    statistics: Statistics
    model: CostModel
    technique: str | None = None  # None: the cheapest that is legal
    form: Form | None = None  # of the techniques that will run; None until a strategy is chosen
    engine: str = "spark"
    strategy: str | None = None  # None: on Spark, the one that costs less
    hurried: bool = False  # costs are those of one run, in which planning takes its time too

    def allows(self, technique: str) -> bool:
        """True unless the caller forced another technique."""
        return self.technique is None or technique == self.technique

    @property
    def counts_as_papers_do(self) -> bool:
        """True under the paper model: relations and formulas are the published ones."""
        return self.model.name == "paper"

    def folding(self, width: int) -> float:
        """What every plan pays: each event is folded once, into so many partials."""
        return self.model.from_events(_ENDLESS, width)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan for one scope, and why some windows are not shared."""

    emits: tuple[Emit, ...]
    # Why a window is not shared, where the planner knows more than its place in the plan tells.
    reasons: dict[Window, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoProposal:
    """A planner has nothing to offer for a scope."""

    reason: str


class StoredSlices(Protocol):
    """Slices that are kept, and plan for themselves: what they are cut at is decided."""

    def planned(self, workload: Workload, engine: str) -> Plan:
        """Plan queries over the slices, or say what these lack."""
        ...


Planner = Callable[["Scope", Context], Proposal | NoProposal]


def unshared_reasons(scope: Scope) -> dict[Window, str]:
    """Say for each window that no planner of periodic windows can share, why."""
    reasons: dict[Window, str] = {}
    for window in scope.windows:
        holistic = scope.holistic_partials(window)
        if not scope.shareable_partials(window):
            names = ", ".join(str(p.args[0]) for p in holistic)
            reasons[window] = f"exact percentiles of {names} need every event of the window"
        elif not isinstance(window, PeriodicWindow):
            reasons[window] = "its instances follow the calendar or the events, not one period"
    return reasons
