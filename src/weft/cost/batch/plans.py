"""The work of a whole plan as it runs: scope by scope, under the strategy that each has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.cost.batch.model import SparkModel, batch_model
from weft.cost.batch.work import Work, total
from weft.cost.strategies import slices_to_ship
from weft.cost.volumes import KeyedVolumes, Volumes
from weft.plan.body import COLUMNAR
from weft.plan.nodes import Scan
from weft.plan.planned_scope import planned_scopes

if TYPE_CHECKING:
    from weft.plan.body import PlanBody
    from weft.plan.nodes import Node
    from weft.plan.planned_scope import PlannedScope
    from weft.statistics import Statistics


def works_of(plan: PlanBody, known: Statistics, lasts_us: float) -> dict[Node, Work]:
    """Count what a plan for Spark or the local engine does for each node; joins are not counted.

    `known` may be what was seen when it ran, in place of what was expected.
    """
    found: dict[Node, Work] = {}
    scopes = planned_scopes(plan)
    by_keys = tuple(
        (keys, Volumes(known.of_keys(tuple(text for _, text in keys)), lasts_us))
        for keys in dict.fromkeys(k for s in scopes for k in (s.keys, *(r for _, r in s.roots)))
    )
    for scope in scopes:
        own = dict(by_keys)[scope.keys]
        volumes = KeyedVolumes(own.statistics, lasts_us, by_keys=by_keys) if scope.regroups else own
        counted = _works(plan, scope, volumes)
        for node, done in zip(scope.nodes, counted, strict=True):
            # What a scope regroups is on the bill of the scope that has it.
            if not scope.regroups or (not isinstance(node, Scan) and node.keys == scope.keys):
                found[node] = total(found.get(node, {}), done)
    return found


def _works(plan: PlanBody, scope: PlannedScope, volumes: Volumes) -> list[Work]:
    model = batch_model(plan.engine, volumes)
    if not isinstance(model, SparkModel):
        return model.works(scope.nodes)
    choice = next((c for c in plan.strategies if scope.queries[0] in c.queries), None)
    if choice is None or choice.strategy != COLUMNAR:
        return model.works(scope.nodes)
    base = slices_to_ship(scope.nodes) if choice.ships == "slices" else None
    return model.spark.columnar(scope.nodes, base, choice.salt_us)
