"""Costs as the papers count them: operations, every one alike, to reproduce published figures.

Windows fed by events or by windows are counted as in Wu et al., "Factor Windows": inputs read in
one common period R of all ranges. Trees of windows over slices are counted as in Shein &
Chrysanthis: the rate of events (or of finer slices) that enter a tree plus its edge rate times
its overlap factor. Stairs count the slices and steps they fold (Patroumpas & Sellis).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from weft.cost.edges.rates import edge_rate
from weft.cost.factor_cost import PaperCost
from weft.cost.omega import OMEGA_TECHNIQUES, overlap_factor
from weft.plan.nodes import STAIR, Emit, Join, Node, Roll, Scan, Slice
from weft.time import format_us
from weft.window import CumulatingWindow, PeriodicWindow, Window

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.statistics import Statistics

_SECOND_US = 1e6


@dataclass(frozen=True, slots=True)
class PaperModel:
    """Counts operations per common period, or per second where a paper counts by rate."""

    statistics: Statistics
    counting: PaperCost
    per_second: bool = False
    name: str = "paper"

    @classmethod
    def of(
        cls, statistics: Statistics, windows: Iterable[Window], *, per_second: bool
    ) -> PaperModel:
        """Count for the windows of a workload; windows that are not periodic have no period."""
        periodic = {w for window in windows for w in _periodic(window)}
        counting = PaperCost.of(
            periodic or {PeriodicWindow(1_000_000, 1_000_000)}, statistics.events_per_us
        )
        return cls(statistics, counting, per_second)

    @property
    def unit(self) -> str:
        """What a cost is per."""
        if self.per_second:
            return "operations per second"
        return f"operations per {format_us(self.counting.period_us)}"

    @property
    def _units_per_second(self) -> float:
        return 1.0 if self.per_second else self.counting.period_us / _SECOND_US

    def node_costs(self, nodes: tuple[Node, ...]) -> tuple[float, ...]:
        """Count each node's operations, in order."""
        trees: dict[tuple[Slice, str], list[Roll]] = {}
        for node in nodes:
            if isinstance(node, Roll) and isinstance(node.feeder, Slice):
                trees.setdefault((node.feeder, _counted(node.technique)), []).append(node)
        per_roll = {
            roll: cost / len(rolls)
            for (feeder, technique), rolls in trees.items()
            for cost in (self._tree(feeder, technique, rolls),)
            for roll in rolls
        }
        return tuple(self._node_cost(node, per_roll) for node in nodes)

    def from_events(self, window: Window, width: int) -> float:
        """Count the events that enter the instances of a window; `width` does not matter."""
        parts = _periodic(window)
        if not parts:
            return self.statistics.events_per_us * self.counting.period_us * self._scale
        return sum(map(self.counting.from_events, parts)) * self._scale

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Count the feeder's instances that enter the instances of a window."""
        if feeder.reuses(window):
            return float(self.counting.instances(window)) * self._scale
        return self.counting.from_feeder(window, feeder) * self._scale

    def events_per_partial(self, width: int, slice_us: float) -> float:
        """Every operation counts one, so this is the rate of events."""
        return self.statistics.events_per_us

    @property
    def _scale(self) -> float:
        return _SECOND_US / self.counting.period_us if self.per_second else 1.0

    def _node_cost(self, node: Node, per_roll: dict[Roll, float]) -> float:
        match node:
            case Scan() | Emit():
                return 0.0
            case Slice(input=Slice() as finer):
                return edge_rate(finer.edges.classes) * _SECOND_US * self._units_per_second
            case Slice() | Join():
                return self.statistics.events_per_us * _SECOND_US * self._units_per_second
            case Roll():
                return per_roll[node] if node in per_roll else self._window(node)
            case _:
                assert_never(node)

    def _window(self, node: Roll) -> float:
        """A window from events or from another window, as Wu et al. count it."""
        window, feeder = node.window, node.feeder
        if isinstance(feeder, Scan):
            return self.from_events(window, 1)
        if node.read == STAIR:
            return self._stair(node) * self._units_per_second
        assert isinstance(feeder, Roll)
        if isinstance(window, PeriodicWindow) and isinstance(feeder.window, PeriodicWindow):
            return self.from_feeder(window, feeder.window, 1)
        return 0.0

    def _stair(self, node: Roll) -> float:
        """Slices before the step, and the step itself, at every slide."""
        inner, slices = node.inputs
        assert isinstance(node.window, PeriodicWindow)
        assert isinstance(inner, Roll)
        assert isinstance(inner.window, PeriodicWindow)
        assert isinstance(slices, Slice)
        before = (node.window.range_us - inner.window.range_us) * edge_rate(slices.edges.classes)
        return (before + 1) * _SECOND_US / node.window.slide_us

    def _tree(self, feeder: Slice, technique: str, rolls: list[Roll]) -> float:
        """Edge rate times overlap factor of all windows on the same slices."""
        windows = [w for roll in rolls for w in _periodic(roll.window)]
        if not windows or not feeder.edges.classes:
            return self.statistics.events_per_us * _SECOND_US * self._units_per_second
        rate = edge_rate(feeder.edges.classes)
        omega = overlap_factor(windows, technique, "paper", rate)
        return rate * _SECOND_US * omega * self._units_per_second


def _counted(technique: str | None) -> str:
    return technique if technique in OMEGA_TECHNIQUES else "naive"


def _periodic(window: Window) -> tuple[PeriodicWindow, ...]:
    if isinstance(window, PeriodicWindow):
        return (window,)
    return window.parts() if isinstance(window, CumulatingWindow) else ()
