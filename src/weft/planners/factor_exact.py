"""Proof that a choice of factor windows is the cheapest: branch and bound, or an integer program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.errors import InternalError
from weft.planners.factor_graph import EVENTS, SharingGraph

if TYPE_CHECKING:
    from collections.abc import Iterable

_SAME = 1e-12


def branch_and_bound(
    graph: SharingGraph, incumbent: Iterable[int], *, node_limit: int
) -> tuple[frozenset[int], bool]:
    """Improve on the `incumbent` choice; tell whether the result is proven the best.

    Branches on one factor at a time, in or out. The bound lets every open factor serve for
    nothing: what is wanted and what is in pays its cheapest arc from anything not out.
    """
    best = frozenset(incumbent)
    best_cost = graph.settle(best)[0]
    stack: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())]
    nodes = 0
    while stack:
        nodes += 1
        if nodes > node_limit:
            return best, False
        taken, banned = stack.pop()
        bound, branch_on = _relax(graph, taken, banned)
        if bound >= best_cost * (1 - _SAME):
            continue
        total = graph.settle(taken)[0]
        if total < best_cost * (1 - _SAME):
            best, best_cost = taken, total
        if branch_on != EVENTS:
            stack.append((taken, banned | {branch_on}))
            stack.append((taken | {branch_on}, banned))
    return best, True


def _relax(
    graph: SharingGraph, taken: frozenset[int], banned: frozenset[int]
) -> tuple[float, int]:
    """Bound the cost below this node, and name the open factor that serves most for nothing."""
    bound = 0.0
    lent: dict[int, float] = {}
    n = graph.wanted_count
    for v in (*range(n), *sorted(taken)):
        arcs = graph.feeders[v]
        for cost, p in arcs:
            if p < n or p not in banned:
                bound += cost
                if p >= n and p not in taken:
                    lent[p] = lent.get(p, 0.0) + arcs[-1][0] - cost
                break
    return bound, max(lent, key=lambda f: (lent[f], -f), default=EVENTS)


def solve_milp(graph: SharingGraph) -> frozenset[int]:
    """Choose factors by an integer program: the optimum whatever the size, for a slower start.

    One binary per factor, one continuous share per arc: every wanted window reads one feeder in
    all, every factor as much as it is used, and nothing reads more of a factor than is used.
    """
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    n, m = graph.wanted_count, len(graph.windows) - graph.wanted_count
    arcs = [(c, p, v) for v, feeders in enumerate(graph.feeders) for c, p in feeders]
    objective = np.array([0.0] * m + [c for c, _, _ in arcs])
    if not m:
        return frozenset()
    entries: list[tuple[int, int, float]] = []
    lower, upper = [], []
    for v in range(n + m):
        lower.append(1.0 if v < n else 0.0)
        upper.append(lower[-1])
        if v >= n:
            entries.append((v, v - n, -1.0))
    for column, (_, p, v) in enumerate(arcs, start=m):
        entries.append((v, column, 1.0))
        if p >= n:
            entries.extend([(len(lower), column, 1.0), (len(lower), p - n, -1.0)])
            lower.append(-np.inf)
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
