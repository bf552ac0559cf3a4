"""The plans of a session: one for each of its sources, and one for each of its joins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.errors import QueryError
from weft.plan import Emit, Join, Plan
from weft.plan.nodes import scan_below, topological
from weft.query import JoinQuery, Query, Workload

if TYPE_CHECKING:
    from weft.statistics import Statistics


def plans_by_source(
    workload: Workload | Plan, planner: str, statistics: Statistics | None
) -> dict[str, Plan]:
    """Plan the queries of each source; a plan that is given is taken as it is."""
    if isinstance(workload, Plan):
        emits: dict[str, list[Emit]] = {}
        for emit in workload.emits:
            if not isinstance(emit.inputs[0], Join):
                emits.setdefault(scan_below(emit).source, []).append(emit)
        if len(emits) == 1 and not workload.joins:
            return dict.fromkeys(emits, workload)
        costs = dict(zip(workload.nodes, workload.node_costs, strict=True))
        parts = {source: topological(tuple(own)) for source, own in emits.items()}
        return {
            source: replace(workload, nodes=nodes, node_costs=tuple(costs[n] for n in nodes))
            for source, nodes in parts.items()
        }
    from weft.planners.portfolio import optimize

    single = [query for query in workload if isinstance(query, Query)]
    return {
        source: optimize(
            Workload(query for query in single if query.source == source),
            planner,
            "local",
            statistics,
        )
        for source in dict.fromkeys(query.source for query in single)
    }


def join_plans(
    workload: Workload | Plan, planner: str, statistics: Statistics | None
) -> tuple[Plan, ...]:
    """Plan each join by itself; of a plan that is given, placements are taken as they are."""
    if isinstance(workload, Plan):
        emits = [_alone(emit) for emit in workload.emits if isinstance(emit.inputs[0], Join)]
        parts = [topological((emit,)) for emit in emits]
        # What a part costs by itself is not known, and nobody asks.
        return tuple(
            replace(workload, nodes=nodes, node_costs=(0.0,) * len(nodes), candidates=())
            for nodes in parts
        )
    from weft.planners.portfolio import optimize

    joins = [query for query in workload if isinstance(query, JoinQuery)]
    for query in joins:
        for given in query.inputs:
            if given.window is not None and given.time is None:
                raise QueryError(
                    f"join {query.name!r} does not say which column of {given.alias} is its time",
                    hint=f"name it: {given.source} AS {given.alias} TIMESTAMP BY ...",
                )
    return tuple(optimize(Workload([query]), planner, "local", statistics) for query in joins)


def _alone(emit: Emit) -> Emit:
    """Let the inputs of a join read events: joins of a session have no slices in common."""
    join = emit.inputs[0]
    assert isinstance(join, Join)
    sides = tuple(replace(side, input=side.scan) for side in join.sides)
    return replace(emit, inputs=(replace(join, sides=sides),))
