"""Algorithms 2 to 5 of Wu et al., "Factor Windows" (arXiv:2008.12379), corrected.

They insert at most one factor window between each window and the windows downstream of it, then
feed everything from the cheapest (Algorithm 1, `min_cost_graph`). `search_factors` finds better
plans; these reproduce the published ones. What differs from the printed text, and why:

- Events are not a window: whoever reads the virtual root pays for events, at any event rate.
- A factor side by side must divide the slides served as well, not only the ranges.
- Among several factors side by side the longest is the cheapest, so no comparison is needed; the
  printed one (Theorem 9) turns around when the factor is long.
- A factor that saves nothing is not inserted.
- Downstream windows that end up reading elsewhere make a factor look better than it is, so factors
  that turn out not to pay are taken out again. The printed algorithm can lose against Algorithm 1.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

from weft.planners.factor.candidates import Relation, divisors
from weft.planners.factor.graph import FactorPlan, feeds, sharing_graph
from weft.planners.factor.search import min_cost_graph
from weft.time import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND
from weft.window.periodic import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft.cost.factor_cost import FactorCost

# The paper tries every range; past as many only the shortest and the longest are tried. What a
# factor saves is convex in its range when rows are not counted by key, so the best is at an end.
_RANGE_LIMIT = 1024


def time_unit_us(windows: Sequence[PeriodicWindow]) -> int:
    """Name the paper's unit of time: the longest clock unit that all windows are whole numbers of.

    The virtual root is a tumbling window of one unit, so a factor is longer than that.

    >>> time_unit_us([PeriodicWindow(20 * 60_000_000, 20 * 60_000_000)]) == MINUTE
    True
    """
    step = gcd(*(part for w in windows for part in (w.range_us, w.slide_us, w.offset_us)))
    units = (DAY, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND)
    return next(unit for unit in units if step % unit == 0)


def covering_candidates(
    parent: PeriodicWindow, children: Sequence[PeriodicWindow]
) -> Iterator[PeriodicWindow]:
    """Yield the windows that `parent` covers and that cover all `children` (Algorithm 2).

    >>> root, twenty, thirty = PeriodicWindow(1, 1), PeriodicWindow(20, 20), PeriodicWindow(30, 30)
    >>> sum(1 for _ in covering_candidates(root, [twenty, thirty]))
    31
    """
    common_slide, offset = _common_starts(children)
    shortest = min(child.range_us for child in children)
    for slide in _divisors(common_slide, multiple_of=parent.slide_us):
        longer_than_parent = parent.range_us // slide * slide + slide
        ranges: Sequence[int] = range(longer_than_parent, shortest + 1, slide)
        if len(ranges) > _RANGE_LIMIT:
            ranges = (ranges[0], ranges[-2], ranges[-1])
        for range_us in ranges:
            factor = PeriodicWindow(range_us, slide, offset)
            if (
                factor != parent
                and factor not in children
                and parent.covers(factor)
                and all(factor.covers(child) for child in children)
            ):
                yield factor


def best_covering_factor(
    parent: PeriodicWindow | None,
    children: Sequence[PeriodicWindow],
    cost: FactorCost,
    unit_us: int = 1,
) -> tuple[PeriodicWindow | None, float]:
    """Find the factor between `parent` (None: events) and `children` that saves most (Algorithm 2).

    Gives the factor and what it saves: Equation 2, or rather what it stands for.

    >>> from weft.cost.factor_cost import PaperCost
    >>> wanted = [PeriodicWindow(r, r) for r in (20, 30, 40)]
    >>> factor, saved = best_covering_factor(None, wanted[:2], PaperCost.of(wanted))
    >>> str(factor), saved
    ('TUMBLE 10us', 96.0)
    """
    best, most = None, 0.0
    for factor in covering_candidates(parent or _root(children, unit_us), children):
        saved = benefit(factor, parent, children, cost)
        if saved > most:
            best, most = factor, saved
    return best, most


def benefit(
    factor: PeriodicWindow,
    parent: PeriodicWindow | None,
    children: Sequence[PeriodicWindow],
    cost: FactorCost,
) -> float:
    """Tell what `children` save by reading `factor` instead of `parent`, less its own price."""

    def price(window: PeriodicWindow) -> float:
        return cost.from_events(window) if parent is None else cost.from_feeder(window, parent)

    saved = sum(price(child) - cost.from_feeder(child, factor) for child in children)
    return saved - price(factor)


def partitioning_candidates(
    parent: PeriodicWindow, children: Sequence[PeriodicWindow]
) -> tuple[PeriodicWindow, ...]:
    """List the tumbling windows between `parent` and `children`, longest first (Algorithm 5).

    >>> root, twenty, thirty = PeriodicWindow(1, 1), PeriodicWindow(20, 20), PeriodicWindow(30, 30)
    >>> [str(f) for f in partitioning_candidates(root, [twenty, thirty])]
    ['TUMBLE 10us', 'TUMBLE 5us', 'TUMBLE 2us']
    """
    common_slide, offset = _common_starts(children)
    longest = gcd(common_slide, *(child.range_us for child in children))
    factors = (
        PeriodicWindow(range_us, range_us, offset)
        for range_us in _divisors(longest, multiple_of=parent.range_us)
    )
    return tuple(f for f in factors if f not in children and f != parent and parent.partitions(f))


def partitioning_pays(
    factor_us: int,
    parent_us: int,
    children: Sequence[PeriodicWindow],
    period_us: int,
    *,
    as_printed: bool = False,
) -> bool:
    """Tell whether a tumbling factor between a tumbling parent and `children` pays (Algorithm 4).

    With lambda = sum of n_j / m_j over the children, a period saves (lambda - 1) / r_W -
    lambda / r_f inputs per unit. The printed case distinction is this inequality with `>=` for
    `>`, so it says yes to factors that save nothing.

    >>> children = [PeriodicWindow(4, 4), PeriodicWindow(30, 30)]
    >>> partitioning_pays(2, 1, children, 60), partitioning_pays(2, 1, children, 60,
    ...     as_printed=True)
    (False, True)
    """
    overlap = sum(
        Fraction(1 + (period_us - child.range_us) // child.slide_us)
        / Fraction(period_us, child.range_us)
        for child in children
    )
    saved, paid = (overlap - 1) * factor_us, overlap * parent_us
    return saved > paid or (as_printed and saved == paid)


def best_partitioning_factor(
    parent: PeriodicWindow | None,
    children: Sequence[PeriodicWindow],
    cost: FactorCost,
    unit_us: int = 1,
    *,
    as_printed: bool = False,
) -> PeriodicWindow | None:
    """Find the tumbling factor between `parent` (None: events) and `children` (Algorithm 5).

    The longest candidate costs the same to compute as every other and serves with the fewest
    reads; the shorter ones would feed it, which is why the paper prunes them.

    >>> from weft.cost.factor_cost import PaperCost
    >>> wanted = [PeriodicWindow(r, r) for r in (20, 30, 40)]
    >>> str(best_partitioning_factor(None, wanted[:2], PaperCost.of(wanted)))
    'TUMBLE 10us'
    """
    candidates = partitioning_candidates(parent or _root(children, unit_us), children)
    if not candidates:
        return None
    saved = benefit(candidates[0], parent, children, cost)
    return candidates[0] if saved > 0 or (as_printed and saved == 0) else None


def insert_factors(
    windows: Sequence[PeriodicWindow],
    cost: FactorCost,
    relation: Relation,
    *,
    as_printed: bool = False,
    unit_us: int | None = None,
) -> FactorPlan:
    """Insert a factor below events and below each of `windows` where it pays (Algorithm 3).

    `as_printed` keeps factors that do not pay in the end, as the paper does.

    >>> from weft.cost.factor_cost import PaperCost
    >>> wanted = [PeriodicWindow(r, r) for r in (30, 48, 120, 4)]
    >>> [insert_factors(wanted, PaperCost.of(wanted), "tiled", as_printed=printed).cost
    ...  for printed in (True, False)]
    [558.0, 548.0]
    """
    wanted = tuple(dict.fromkeys(windows))
    unit = time_unit_us(wanted) if unit_us is None else unit_us
    may_feed = feeds(relation, published=True)
    below: list[tuple[PeriodicWindow | None, list[PeriodicWindow]]] = [
        (None, [w for w in wanted if not any(may_feed(other, w) for other in wanted)]),
        *((w, [other for other in wanted if may_feed(w, other)]) for w in wanted),
    ]
    factors: dict[PeriodicWindow, None] = {}
    for parent, children in below:
        if not children or (parent is None and _root(wanted, unit) in wanted):
            continue
        if relation == "covered":
            factor, _ = best_covering_factor(parent, children, cost, unit)
        else:
            factor = best_partitioning_factor(parent, children, cost, unit, as_printed=as_printed)
        if factor is not None and factor not in wanted:
            factors[factor] = None
    if as_printed:
        return _feed_all(wanted, tuple(factors), cost, relation)
    return _without_losses(wanted, tuple(factors), cost, relation)


def _feed_all(
    wanted: Sequence[PeriodicWindow],
    factors: Sequence[PeriodicWindow],
    cost: FactorCost,
    relation: Relation,
) -> FactorPlan:
    """Run Algorithm 1 over wanted windows and factors alike, useless ones included."""
    graph = sharing_graph((*wanted, *factors), (), cost, relation, published=True)
    plan = graph.plan((), "factor windows", exact=False)
    return FactorPlan(plan.feeder, tuple(factors), plan.cost, plan.method, exact=False)


def _without_losses(
    wanted: Sequence[PeriodicWindow],
    factors: Sequence[PeriodicWindow],
    cost: FactorCost,
    relation: Relation,
) -> FactorPlan:
    """Take out, one at a time, the factor whose removal lowers the cost most."""
    plan = _feed_all(wanted, factors, cost, relation)
    while plan.factors:
        thinner = min(
            (
                _feed_all(wanted, [f for f in plan.factors if f != out], cost, relation)
                for out in plan.factors
            ),
            key=lambda p: p.cost,
        )
        if thinner.cost > plan.cost:
            break
        plan = thinner
    shared = min_cost_graph(wanted, cost, relation, published=True)
    return plan if plan.cost < shared.cost else shared


def _root(children: Sequence[PeriodicWindow], unit_us: int) -> PeriodicWindow:
    """The virtual window that events are: one unit, in the phase of the children."""
    return PeriodicWindow(unit_us, unit_us, children[0].offset_us)


def _common_starts(windows: Sequence[PeriodicWindow]) -> tuple[int, int]:
    """Slide and offset of the coarsest starts that all windows start at."""
    first = windows[0].offset_us
    slide = gcd(*(w.slide_us for w in windows), *(w.offset_us - first for w in windows))
    return slide, first % slide


def _divisors(number: int, *, multiple_of: int) -> list[int]:
    """List the divisors of `number` that are multiples of `multiple_of`, largest first."""
    if number % multiple_of:
        return []
    return [multiple_of * d for d in reversed(divisors(number // multiple_of))]
