"""Proof that a choice of factor windows is the cheapest: branch and bound, or an integer program.

The bound is Wong's dual ascent for the Steiner arborescence problem (Mathematical Programming 28,
1984): every wanted window raises its bid for the arcs that could bring it partials until events
can reach it along arcs that are paid for. What the bids add up to is a bound from below, and on
window sets it is usually the optimum itself. What is left unpaid tells which candidates cannot be
part of a cheaper plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from weft.errors import InternalError
from weft.planners.factor.graph import EVENTS, SharingGraph
from weft.planners.factor.local_search import SAME, local_search

if TYPE_CHECKING:
    from collections.abc import Sequence, Set


@dataclass(slots=True)
class Arc:
    """A possible feeder of a window, and what nobody has paid of its price yet."""

    unpaid: float
    feeder: int


@dataclass(frozen=True, slots=True)
class DualBound:
    """No plan costs less than `value`; `arcs` are what the bids left of them, by reader."""

    value: float
    arcs: list[list[Arc]]


def dual_ascent(
    graph: SharingGraph, taken: Set[int] = frozenset(), banned: Set[int] = frozenset()
) -> DualBound:
    """Bound the cost of every plan that has the `taken` factors and none of the `banned`."""
    n = graph.wanted_count
    # Wanted windows are in every plan, so an arc from one is as good as an arc from events.
    arcs = [
        [Arc(cost, p if p >= n else EVENTS) for cost, p in feeders if p not in banned]
        for feeders in graph.feeders
    ]
    nothing = _negligible(sum(feeders[-1][0] for feeders in graph.feeders[:n]))
    bound = 0.0
    bidders = dict.fromkeys((*range(n), *sorted(taken)), 1)
    while bidders:
        bidder = min(bidders, key=lambda v: (bidders[v], v))
        group = _paid_for(arcs, bidder, nothing)
        if EVENTS in group:
            del bidders[bidder]
            continue
        if len(group) > bidders[bidder]:
            # Small groups bid first: their bids tell most apart.
            bidders[bidder] = len(group)
            if min(bidders.values()) < len(group):
                continue
        entering = [arc for v in group for arc in arcs[v] if arc.feeder not in group]
        bid = min(arc.unpaid for arc in entering)
        bound += bid
        for arc in entering:
            arc.unpaid -= bid
    return DualBound(bound, arcs)


def _paid_for(arcs: Sequence[Sequence[Arc]], reader: int, nothing: float) -> set[int]:
    """Collect what reaches `reader` along arcs that are paid for; events end the walk."""
    group = {reader}
    open_ends = [reader]
    while open_ends:
        for arc in arcs[open_ends.pop()]:
            if arc.unpaid <= nothing and arc.feeder not in group:
                group.add(arc.feeder)
                if arc.feeder == EVENTS:
                    return group
                open_ends.append(arc.feeder)
    return group


def _negligible(cost: float) -> float:
    """What counts as nothing beside `cost`: rounding leaves that much of a paid arc."""
    return max(cost, 1e-300) * SAME


def branch_and_bound(
    graph: SharingGraph, incumbent: Set[int], *, node_limit: int
) -> tuple[frozenset[int], bool]:
    """Improve on the `incumbent` choice; tell whether the result is proven the best.

    Branches on one factor at a time, in or out, most wanted factor first.
    """
    best = frozenset(incumbent)
    best_cost = graph.settle(best)[0]
    stack: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())]
    for _ in range(node_limit):
        if not stack:
            return best, True
        taken, banned = stack.pop()
        bound = dual_ascent(graph, taken, banned)
        if bound.value >= best_cost * (1 - SAME):
            continue
        found = local_search(graph, start=taken)
        found_cost = graph.settle(found)[0]
        if found_cost < best_cost * (1 - SAME):
            best, best_cost = found, found_cost
        banned |= _hopeless(graph, bound, best_cost) - taken
        branch_on = _most_wanted(graph, bound, taken | banned)
        if branch_on != EVENTS:
            stack.append((taken, banned | {branch_on}))
            stack.append((taken | {branch_on}, banned))
    return best, not stack


def _hopeless(graph: SharingGraph, bound: DualBound, best_cost: float) -> frozenset[int]:
    """Name the candidates that no plan cheaper than `best_cost` contains.

    Such a plan would pay the bound, and the unpaid rest of a path from events by way of the
    candidate to some wanted window.
    """
    order = sorted(
        range(len(graph.windows)),
        key=lambda v: (graph.windows[v].range_us, graph.windows[v].slide_us),
    )
    above = [inf] * len(graph.windows)
    for v in order:
        above[v] = min(
            arc.unpaid + (0.0 if arc.feeder == EVENTS else above[arc.feeder])
            for arc in bound.arcs[v]
        )
    below = [0.0] * graph.wanted_count + [inf] * len(graph.candidates)
    for v in reversed(order):
        for arc in bound.arcs[v]:
            if arc.feeder != EVENTS:
                below[arc.feeder] = min(below[arc.feeder], arc.unpaid + below[v])
    return frozenset(
        f for f in graph.candidates if bound.value + above[f] + below[f] >= best_cost * (1 - SAME)
    )


def _most_wanted(graph: SharingGraph, bound: DualBound, settled: Set[int]) -> int:
    """Pick the open factor with most readers whose arc is paid for; EVENTS if none is open."""
    nothing = _negligible(bound.value)
    readers = {factor: 0 for factor in graph.candidates if factor not in settled}
    for arcs in bound.arcs:
        for arc in arcs:
            if arc.unpaid <= nothing and arc.feeder in readers:
                readers[arc.feeder] += 1
    return max(readers, key=lambda f: (readers[f], -f), default=EVENTS)


def solve_milp(graph: SharingGraph) -> frozenset[int]:
    """Choose factors by an integer program: the optimum whatever the size, for a slower start.

    One binary per factor, one continuous share per arc: every wanted window reads one feeder in
    all, every factor as much as it is used, and nothing reads more of a factor than is used.
    """
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, m = graph.wanted_count, len(graph.candidates)
    if not m:
        return frozenset()
    arcs = [(c, p, v) for v, feeders in enumerate(graph.feeders) for c, p in feeders]
    # The solver's tolerances are absolute, so the plan without factors is made to cost 1000.
    scale = 1000.0 / (graph.settle(())[0] or 1.0)
    objective = np.array([0.0] * m + [c * scale for c, _, _ in arcs])
    entries: list[tuple[int, int, float]] = [(v, v - n, -1.0) for v in graph.candidates]
    lower = [1.0] * n + [0.0] * m
    upper = list(lower)
    for column, (_, p, v) in enumerate(arcs, start=m):
        entries.append((v, column, 1.0))
        if p >= n:
            entries.extend([(len(lower), column, 1.0), (len(lower), p - n, -1.0)])
            lower.append(-inf)
            upper.append(0.0)
    rows, columns, values = zip(*entries, strict=True)
    matrix = coo_array((values, (rows, columns)), shape=(len(lower), len(objective))).tocsr()
    answer = milp(
        objective,
        constraints=LinearConstraint(matrix, lower, upper),
        integrality=np.array([1] * m + [0] * len(arcs)),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        raise InternalError(f"the integer program for factor windows failed: {answer.message}")
    return frozenset(n + f for f in range(m) if answer.x[f] > 0.5)
