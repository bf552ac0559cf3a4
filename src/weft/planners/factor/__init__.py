"""Windows feed windows along the coverage graph, with auxiliary factor windows.

Wu et al., "Factor Windows" (arXiv:2008.12379), with the better search of `factor_search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.plan import FOLD, PICK, Roll, Scope
from weft.planners.base import Context, NoProposal, Proposal, unshared_reasons
from weft.planners.factor.search import search_factors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import Partial
    from weft.cost.model import CostModel
    from weft.planners.factor.candidates import Relation
    from weft.planners.factor.search import Effort
    from weft.window import PeriodicWindow, Window


@dataclass(frozen=True, slots=True)
class _Prices:
    """The model's prices for windows that carry `width` partials."""

    model: CostModel
    width: int

    def from_events(self, window: PeriodicWindow) -> float:
        return self.model.from_events(window, self.width)

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow) -> float:
        return self.model.from_feeder(window, feeder, self.width)


def propose(scope: Scope, context: Context) -> Proposal | NoProposal:
    """Feed each window from its cheapest feeder, an existing window or a new factor window.

    Overlapping feeders serve only where everything asked for is idempotent; elsewhere instances
    of the feeder must lie side by side.
    """
    return _proposed(scope, context, "default")


def propose_without_factors(scope: Scope, context: Context) -> Proposal | NoProposal:
    """Feed each window from its cheapest feeder among the windows asked for: what factors add to.

    Not in the portfolio, since `propose` never does worse; benchmarks tell the two apart.
    """
    return _proposed(scope, context, "none")


def _proposed(scope: Scope, context: Context, effort: Effort) -> Proposal | NoProposal:
    windows = scope.shareable
    if not windows:
        return NoProposal("no periodic window with a decomposable aggregate")
    width = len(scope.partials_for(windows))
    relation: Relation = "covered" if all(map(scope.is_idempotent, windows)) else "tiled"
    found = search_factors(windows, _Prices(context.model, width), relation, effort=effort)
    rolls = _rolls(scope, found.feeder)
    return Proposal(
        scope.emits({w: rolls[w] for w in windows}),
        reasons=unshared_reasons(scope),
        notes=(f"factor windows: {found.method}{', proven best' if found.exact else ''}",),
    )


def _rolls(
    scope: Scope, feeder: Mapping[PeriodicWindow, PeriodicWindow | None]
) -> dict[Window, Roll]:
    """Build the feeders first; each carries what it and all it feeds need."""
    needed: dict[PeriodicWindow, dict[Partial, None]] = {w: {} for w in feeder}
    # A feeder's range is never the larger, and of equal ranges its slide is the smaller one.
    by_size = sorted(feeder, key=lambda w: (w.range_us, w.slide_us))
    wanted = set(scope.shareable)
    for window in reversed(by_size):
        if window in wanted:
            needed[window].update((p, None) for p in scope.shareable_partials(window))
        source = feeder[window]
        if source is not None:
            needed[source].update(needed[window])
    order = {p: i for i, p in enumerate(scope.partials_for(scope.shareable))}
    rolls: dict[Window, Roll] = {}
    for window in by_size:
        partials = tuple(sorted(needed[window], key=order.__getitem__))
        source = feeder[window]
        if source is None:
            rolls[window] = scope.from_events(window, partials)
        else:
            read = PICK if source.reuses(window) else FOLD
            rolls[window] = Roll((rolls[source],), window, read, scope.keys, partials)
    return rolls
