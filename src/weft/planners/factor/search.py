"""Factor windows, searched well: candidates from the gcd closure, then the cheapest choice of them.

Choosing factor windows is a Steiner arborescence problem (Wu et al., "Factor Windows",
arXiv:2008.12379), so Algorithm 3 of the paper is a heuristic; on ten random tumbling windows its
plans cost two thirds more than the best. The search here adds, drops and swaps factors from the
plans with none and with all, proves the result the best when a bounded branch and bound gets
through, and restarts from kicked plans when not. It includes Algorithm 1, so it is never worse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from weft.errors import InternalError, QueryError
from weft.planners.factor.candidates import Relation, factor_candidates
from weft.planners.factor.exact import branch_and_bound, solve_milp
from weft.planners.factor.graph import FactorPlan, SharingGraph, sharing_graph
from weft.planners.factor.local_search import SAME, local_search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.cost.factor_cost import FactorCost
    from weft.window.periodic import PeriodicWindow

Effort = Literal["none", "local", "default", "exact"]

# Random restarts, worth their time only where the proof does not get through.
_KICKS = 4
# Work spent on a proof: arcs looked at, over all nodes of the search tree.
_PROOF_ARCS = 6_000


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

    >>> from weft.cost.factor_cost import PaperCost
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
    plan = _choose(graph, effort, seed)
    bound = graph.settle(())[0]
    if plan.cost > bound * (1 + SAME):
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

    >>> from weft.cost.factor_cost import PaperCost
    >>> from weft.window.periodic import PeriodicWindow
    >>> wanted = [PeriodicWindow(r, r) for r in (10, 20, 30, 40)]
    >>> min_cost_graph(wanted, PaperCost.of(wanted), "covered").cost
    150.0
    """
    wanted = tuple(dict.fromkeys(windows))
    graph = sharing_graph(wanted, (), cost, relation, published=published)
    return graph.plan((), "no factors", exact=True)


def _choose(graph: SharingGraph, effort: Effort, seed: int) -> FactorPlan:
    """Choose factors, and prove the choice the best as far as `effort` goes."""
    chosen = local_search(graph)
    if effort == "local":
        return graph.plan(chosen, "local search", exact=False)
    node_limit = 1 + _PROOF_ARCS // sum(map(len, graph.feeders))
    chosen, proven = branch_and_bound(graph, chosen, node_limit=node_limit)
    if proven:
        return graph.plan(chosen, "branch and bound", exact=True)
    if effort == "exact":
        return graph.plan(solve_milp(graph), "integer program", exact=True)
    chosen = local_search(graph, start=chosen, kicks=_KICKS, seed=seed)
    return graph.plan(chosen, "local search", exact=False)
