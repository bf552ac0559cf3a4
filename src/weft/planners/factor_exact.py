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
from weft.planners.factor_graph import EVENTS, SharingGraph
from weft.planners.factor_local import SAME, local_search

if TYPE_CHECKING:
    from collections.abc import Set


@dataclass(frozen=True, slots=True)
class DualBound:
    """No plan costs less than `value`; `unpaid` is what remains of each arc, by reader."""

    value: float
    unpaid: list[list[tuple[float, int]]]


def dual_ascent(
    graph: SharingGraph, taken: Set[int] = frozenset(), banned: Set[int] = frozenset()
) -> DualBound:
    """Bound the cost of every plan that has the `taken` factors and none of the `banned`."""
    n = graph.wanted_count
    # Wanted windows are in every plan, so an arc from one is as good as an arc from events.
    unpaid = [
        [[cost, p if p >= n else EVENTS] for cost, p in arcs if p not in banned]
        for arcs in graph.feeders
    ]
    nothing = SAME * max(sum(arcs[-1][0] for arcs in graph.feeders[:n]), 1e-300)
    bound = 0.0
    bidders = {v: 1 for v in (*range(n), *sorted(taken))}
    while bidders:
        bidder = min(bidders, key=lambda v: (bidders[v], v))
        group = _paid_for(unpaid, bidder, nothing)
        if EVENTS in group:
            del bidders[bidder]
            continue
        if len(group) > bidders[bidder]:
            # Small groups bid first: their bids tell most apart.
            bidders[bidder] = len(group)
            if min(bidders.values()) < len(group):
                continue
        entering = [arc for v in group for arc in unpaid[v] if arc[1] not in group]
        bid = min(arc[0] for arc in entering)
        bound += bid
        for arc in entering:
            arc[0] -= bid
    return DualBound(bound, [[(left, p) for left, p in arcs] for arcs in unpaid])


def _paid_for(unpaid: list[list[list[float]]], reader: int, nothing: float) -> set[int]:
    """Collect what reaches `reader` along arcs that are paid for; events end the walk."""
    group = {reader}
    open_ends = [reader]
    while open_ends:
        for left, p in unpaid[open_ends.pop()]:
            if left <= nothing and p not in group:
                group.add(p)
                if p == EVENTS:
                    return group
                open_ends.append(p)
    return group


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
        hopeless = _hopeless(graph, bound, best_cost) - taken
        banned |= hopeless
        found = local_search(graph, start=taken)
        found_cost = graph.settle(found)[0]
        if found_cost < best_cost * (1 - SAME):
            best, best_cost = found, found_cost
        branch_on = _most_wanted(graph, bound, taken, banned)
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
        above[v] = min(left + (above[p] if p >= 0 else 0.0) for left, p in bound.unpaid[v])
    below = [0.0] * graph.wanted_count + [inf] * len(graph.candidates)
    for v in reversed(order):
        for left, p in bound.unpaid[v]:
            if p >= 0:
                below[p] = min(below[p], left + below[v])
    return frozenset(
        f for f in graph.candidates if bound.value + above[f] + below[f] >= best_cost * (1 - SAME)
    )


def _most_wanted(
    graph: SharingGraph, bound: DualBound, taken: Set[int], banned: Set[int]
) -> int:
    """Pick the open factor to which most windows have an arc that is all but paid for."""
    nothing = SAME * max(bound.value, 1e-300)
    readers: dict[int, int] = {}
    for v, arcs in enumerate(bound.unpaid):
        if v < graph.wanted_count or v in taken:
            for left, p in arcs:
                if left <= nothing and p != EVENTS and p not in taken and p not in banned:
                    readers[p] = readers.get(p, 0) + 1
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
