"""Factor windows, searched well: candidates from the gcd closure, then the cheapest choice of them.

Choosing factor windows is a Steiner arborescence problem (Wu et al., "Factor Windows",
arXiv:2008.12379), so Algorithm 3 of the paper is a heuristic, and on random window sets its plans
cost a third more than the best. The search here adds, drops and swaps factors from the plan
without any, restarts from kicked plans, and proves the result the best when a bounded branch and
bound gets through. It starts at Algorithm 1, so it is never worse.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal

from weft.errors import InternalError, QueryError
from weft.planners.factor_candidates import Relation, factor_candidates
from weft.planners.factor_exact import branch_and_bound, solve_milp
from weft.planners.factor_graph import EVENTS, FactorPlan, SharingGraph, sharing_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.planners.factor_cost import FactorCost
    from weft.window.periodic import PeriodicWindow

Effort = Literal["none", "local", "default", "exact"]

_RESTARTS = 6
# Nodes of the search tree spent on the proof; a node takes about 20 microseconds.
_PROOF_NODES = 300
# Costs closer than this, relatively, are the same cost summed in another order.
_SAME = 1e-12


def search_factors(
    windows: Sequence[PeriodicWindow],
    cost: FactorCost,
    relation: Relation,
    *,
    published: bool = False,
    effort: Effort = "default",
    seed: int = 0,
) -> FactorPlan:
    """Find a cheap way to feed `windows` from one another and from factor windows.

    `published` keeps to the relations and factors of the paper. `effort` is "none" (no factors:
    Algorithm 1), "local" (no proof), "default" (proof within a fixed number of steps) or "exact"
    (integer programming when the proof does not get through). Equal arguments give equal plans.

    >>> from weft.planners.factor_cost import PaperCost
    >>> from weft.window.periodic import PeriodicWindow
    >>> wanted = [PeriodicWindow(r, r) for r in (6, 10, 15)]
    >>> plan = search_factors(wanted, PaperCost.of(wanted), "tiled")
    >>> plan.cost, [str(f) for f in plan.factors], plan.exact
    (72.0, ['TUMBLE 5us'], True)
    """
    wanted = tuple(dict.fromkeys(windows))
    if not wanted:
        raise QueryError("there is no window to plan for", hint="give at least one window")
    if effort == "none":
        return min_cost_graph(wanted, cost, relation, published=published)
    candidates = factor_candidates(wanted, relation, published=published)
    graph = sharing_graph(wanted, candidates, cost, relation, published=published)
    chosen = local_search(graph, restarts=_RESTARTS, seed=seed)
    plan = _prove(graph, chosen, effort)
    bound = graph.settle(())[0]
    if plan.cost > bound * (1 + _SAME):
        raise InternalError(f"factor search found {plan.cost}, the plan without factors {bound}")
    return plan


def min_cost_graph(
    windows: Sequence[PeriodicWindow],
    cost: FactorCost,
    relation: Relation,
    *,
    published: bool = False,
) -> FactorPlan:
    """Feed each of `windows` from the cheapest other one, or from events (Algorithm 1).

    Best possible without factor windows, because each window's choice is its own.

    >>> from weft.planners.factor_cost import PaperCost
    >>> from weft.window.periodic import PeriodicWindow
    >>> wanted = [PeriodicWindow(r, r) for r in (10, 20, 30, 40)]
    >>> min_cost_graph(wanted, PaperCost.of(wanted), "covered").cost
    150.0
    """
    wanted = tuple(dict.fromkeys(windows))
    graph = sharing_graph(wanted, (), cost, relation, published=published)
    return graph.plan((), "no factors", exact=True)


def _prove(graph: SharingGraph, chosen: frozenset[int], effort: Effort) -> FactorPlan:
    """Improve `chosen` to a proven optimum as far as `effort` goes."""
    if effort == "local":
        return graph.plan(chosen, "local search", exact=False)
    best, proven = branch_and_bound(graph, chosen, node_limit=_PROOF_NODES)
    if proven or effort == "default":
        method = "branch and bound" if proven else "local search"
        return graph.plan(best, method, exact=proven)
    return graph.plan(solve_milp(graph), "integer program", exact=True)


def local_search(graph: SharingGraph, *, restarts: int, seed: int) -> frozenset[int]:
    """Choose factors by adding, dropping and swapping one at a time, from several starts.

    The first start is the empty choice; the others are the best choice so far with some factors
    dropped and some added at random, but the same ones for the same `seed`.
    """
    rng = Random(seed)
    best = _descend(graph, set())
    best_cost = graph.settle(best)[0]
    pool = list(graph.candidates)
    for _ in range(restarts if len(pool) > 1 else 0):
        kicked = {f for f in sorted(best) if rng.random() < 0.7}
        kicked.update(rng.sample(pool, min(2, len(pool))))
        found = _descend(graph, kicked)
        found_cost = graph.settle(found)[0]
        if found_cost < best_cost * (1 - _SAME):
            best, best_cost = found, found_cost
    return frozenset(best)


def _descend(graph: SharingGraph, chosen: set[int]) -> set[int]:
    """Take improving moves until there is none."""
    total, price = graph.settle(chosen)
    while True:
        gain, factor = _best_addition(graph, chosen, price)
        if gain > total * _SAME:
            chosen = chosen | {factor}
            total, price = graph.settle(chosen)
            continue
        for dropped in sorted(chosen):
            rest = chosen - {dropped}
            rest_total, rest_price = graph.settle(rest)
            gain, factor = _best_addition(graph, rest, rest_price)
            if rest_total - max(gain, 0.0) < total * (1 - _SAME):
                chosen = rest | {factor} if gain > 0 else rest
                total, price = graph.settle(chosen)
                break
        else:
            return chosen


def _best_addition(
    graph: SharingGraph, chosen: set[int], price: Sequence[float]
) -> tuple[float, int]:
    """Find the factor whose addition lowers the cost most, and by how much."""
    wanted_count, feeders, readers = graph.wanted_count, graph.feeders, graph.readers
    best_gain, best = 0.0, EVENTS
    for factor in graph.candidates:
        if factor in chosen:
            continue
        gain = 0.0
        for v, cost in readers[factor]:
            saved = price[v] - cost
            if saved > 0.0:
                gain += saved
        if gain <= best_gain:
            continue
        for cost, p in feeders[factor]:
            if p < wanted_count or p in chosen:
                gain -= cost
                break
        if gain > best_gain:
            best_gain, best = gain, factor
    return best_gain, best
