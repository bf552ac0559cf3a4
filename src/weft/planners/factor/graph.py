"""The sharing graph: wanted windows, candidate factors, and what each arc between them costs.

A plan is an arborescence from the events: every wanted window and every chosen factor reads one
feeder, and a plan costs the sum of the arcs it uses. Windows are numbered, wanted ones first, so
that the search runs on lists of numbers instead of on window objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from weft.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from weft.cost.factor_cost import FactorCost
    from weft.planners.factor.candidates import Relation
    from weft.window.periodic import PeriodicWindow

Readers = list[list[tuple[int, float]]]

# The feeder number of a window that reads events.
EVENTS = -1


@dataclass(frozen=True, slots=True)
class FactorPlan:
    """Who feeds whom: each wanted window and each factor with its feeder, or None for events.

    `feeder` lists feeders before their readers. `exact` promises that no choice among the
    candidate factors is cheaper.
    """

    feeder: Mapping[PeriodicWindow, PeriodicWindow | None] = field(hash=False)
    factors: tuple[PeriodicWindow, ...]
    cost: float
    method: str
    exact: bool


def feeds(relation: Relation, *, published: bool = False) -> Callable[..., bool]:
    """Give the test `(feeder, window) -> bool` of a relation; no window feeds itself.

    >>> from weft.window.periodic import PeriodicWindow
    >>> five, ten, hop = PeriodicWindow(5, 5), PeriodicWindow(10, 10), PeriodicWindow(10, 5)
    >>> [feeds("tiled")(f, PeriodicWindow(20, 20)) for f in (five, ten, hop)]
    [True, True, True]
    >>> feeds("tiled", published=True)(hop, PeriodicWindow(20, 20))
    False
    """

    def test(feeder: PeriodicWindow, window: PeriodicWindow) -> bool:
        if feeder == window:
            return False
        if published:
            return feeder.covers(window) if relation == "covered" else feeder.partitions(window)
        if feeder.reuses(window):
            return True
        return (relation == "covered" and feeder.covers(window)) or (
            relation == "tiled" and feeder.tiles(window)
        )

    return test


@dataclass(slots=True)
class SharingGraph:
    """Arcs that can be part of a cheapest plan, by reader and by feeder.

    `feeders[v]` is sorted by cost and ends with the best arc that is always there: from events
    or from a wanted window. `readers[f]` lists what candidate f could serve better than that.
    """

    windows: list[PeriodicWindow]
    wanted_count: int
    feeders: list[list[tuple[float, int]]]
    readers: Readers

    @property
    def candidates(self) -> range:
        """Numbers of the candidate factors."""
        return range(self.wanted_count, len(self.windows))

    def settle(self, chosen: Iterable[int]) -> tuple[float, list[float]]:
        """Price the plan with the `chosen` factors: its cost, and the cost of every window.

        A factor that is not chosen costs nothing.
        """
        n = self.wanted_count
        alive = [False] * len(self.windows)
        active = list(range(n))
        for factor in chosen:
            alive[factor] = True
            active.append(factor)
        price = [0.0] * len(self.windows)
        for v in active:
            for cost, p in self.feeders[v]:
                if p < n or alive[p]:
                    price[v] = cost
                    break
        return sum(price), price

    def plan(self, chosen: Iterable[int], method: str, *, exact: bool) -> FactorPlan:
        """Write down the plan with the `chosen` factors, without those nobody reads."""
        kept = self._read(set(chosen))
        alive = [v < self.wanted_count or v in kept for v in range(len(self.windows))]
        order = sorted(
            (v for v in range(len(self.windows)) if alive[v]),
            key=lambda v: (self.windows[v].range_us, self.windows[v].slide_us, v),
        )
        total = 0.0
        feeder: dict[PeriodicWindow, PeriodicWindow | None] = {}
        for v in order:
            cost, p = next(arc for arc in self.feeders[v] if arc[1] == EVENTS or alive[arc[1]])
            total += cost
            feeder[self.windows[v]] = None if p == EVENTS else self.windows[p]
        factors = tuple(self.windows[v] for v in order if v >= self.wanted_count)
        return FactorPlan(feeder, factors, total, method, exact)

    def _read(self, chosen: set[int]) -> set[int]:
        """Drop the chosen factors that feed nothing, until every one feeds something."""
        while True:
            read = {
                next(p for _, p in self.feeders[v] if p < self.wanted_count or p in chosen)
                for v in (*range(self.wanted_count), *chosen)
            }
            if chosen <= read:
                return chosen
            chosen &= read


def sharing_graph(
    wanted: Sequence[PeriodicWindow],
    candidates: Sequence[PeriodicWindow],
    cost: FactorCost,
    relation: Relation,
    *,
    published: bool = False,
) -> SharingGraph:
    """Price every arc among `wanted` and `candidates`, and keep those that can be worth it.

    Candidates that cannot pay for themselves, whatever else is chosen, are left out.
    """
    windows = [*wanted, *candidates]
    n = len(wanted)
    arcs = legal_arcs(windows, relation, published=published)
    feeders: list[list[tuple[float, int]]] = []
    for v, window in enumerate(windows):
        priced = [(cost.from_feeder(window, windows[p]), p) for p in arcs[v]]
        always = [arc for arc in priced if arc[1] < n]
        fallback = min(always, default=(cost.from_events(window), EVENTS))
        fallback = min(fallback, (cost.from_events(window), EVENTS))
        if not 0 <= fallback[0] < inf:
            raise InternalError(f"the cost model prices {window} at {fallback[0]}")
        better = sorted(arc for arc in priced if arc[1] >= n and arc[0] < fallback[0])
        feeders.append([*better, fallback])
    return _without_hopeless(SharingGraph(windows, n, feeders, _readers(feeders, n)))


def legal_arcs(
    windows: Sequence[PeriodicWindow], relation: Relation, *, published: bool
) -> list[list[int]]:
    """List for every window the windows that may feed it.

    The tests are those of `feeds`, written out on integers: this is the one quadratic step.
    """
    ranges = [window.range_us for window in windows]
    slides = [window.slide_us for window in windows]
    offsets = [window.offset_us for window in windows]
    everyone = range(len(windows))
    feeders: list[list[int]] = [[] for _ in windows]
    for p in everyone:
        r, s, o = ranges[p], slides[p], offsets[p]
        starts_alike = [v for v in everyone if slides[v] % s == 0 and (offsets[v] - o) % s == 0]
        # What the distance of the ranges must be a multiple of; 0 serves no longer window.
        step = 0
        if relation == "covered":
            step = s if s <= r else 0
        elif relation == "tiled":
            step = r if s == r or (r % s == 0 and not published) else 0
        for v in starts_alike:
            longer = ranges[v] - r
            if longer > 0:
                legal = step > 0 and longer % step == 0
            else:
                # Tumbling windows partition hopping ones of their own range in the paper too.
                legal = (
                    longer == 0 and v != p and (not published or (relation == "tiled" and s == r))
                )
            if legal:
                feeders[v].append(p)
    return feeders


def _readers(feeders: Sequence[Sequence[tuple[float, int]]], wanted_count: int) -> Readers:
    """Turn the arcs that leave candidate factors around."""
    readers: Readers = [[] for _ in feeders]
    for v, arcs in enumerate(feeders):
        for cost, p in arcs:
            if p >= wanted_count:
                readers[p].append((v, cost))
    return readers


def _without_hopeless(graph: SharingGraph) -> SharingGraph:
    """Leave out the candidates that cost more than they could ever save their readers."""
    fallback = [arcs[-1][0] for arcs in graph.feeders]
    alive = [True] * len(graph.windows)
    shrinking = True
    while shrinking:
        shrinking = False
        for f in graph.candidates:
            if not alive[f]:
                continue
            own = next(cost for cost, p in graph.feeders[f] if p == EVENTS or alive[p])
            most_saved = sum(fallback[v] - cost for v, cost in graph.readers[f] if alive[v])
            if most_saved <= own:
                alive[f] = False
                shrinking = True
    kept = [v for v in range(len(graph.windows)) if alive[v]]
    number = {v: i for i, v in enumerate(kept)} | {EVENTS: EVENTS}
    feeders = [[(c, number[p]) for c, p in graph.feeders[v] if p in number] for v in kept]
    return SharingGraph(
        [graph.windows[v] for v in kept],
        graph.wanted_count,
        feeders,
        _readers(feeders, graph.wanted_count),
    )
