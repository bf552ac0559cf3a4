"""The work of a whole plan as it runs: scope by scope, under the strategy that each has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.cost.batch.model import SparkModel, batch_model
from weft.cost.batch.work import Work, total
from weft.cost.strategies import in_one_chain, slices_to_ship
from weft.cost.volumes import KeyedVolumes, Volumes
from weft.plan.body import COLUMNAR, NATIVE
from weft.plan.nodes import Scan
from weft.plan.planned_scope import planned_scopes

if TYPE_CHECKING:
    from weft.plan.body import PlanBody, StrategyChoice
    from weft.plan.nodes import Node
    from weft.plan.planned_scope import PlannedScope
    from weft.statistics import Statistics


def works_of(plan: PlanBody, known: Statistics, lasts_us: float) -> dict[Node, Work]:
    """Count what a plan for Spark or the local engine does for each node; joins are not counted.

    `known` may be what was seen when it ran, in place of what was expected.
    """
    found: dict[Node, Work] = {}
    read: set[tuple[str, str | None]] = set()  # by Catalyst, for all scopes of its chain
    scopes = planned_scopes(plan)
    by_keys = tuple(
        (keys, Volumes(known.of_keys(tuple(text for _, text in keys)), lasts_us))
        for keys in dict.fromkeys(k for s in scopes for k in (s.keys, *(r for _, r in s.roots)))
    )
    for scope in scopes:
        own = dict(by_keys)[scope.keys]
        volumes = KeyedVolumes(own.statistics, lasts_us, by_keys=by_keys) if scope.regroups else own
        choice = next((c for c in plan.strategies if scope.queries[0] in c.queries), None)
        counted = _works(plan, scope, volumes, choice)
        source = scope.scan.source, scope.scan.time
        native = choice is not None and choice.strategy == NATIVE and in_one_chain(scope.nodes)
        for node, done in zip(scope.nodes, counted, strict=True):
            # What a scope regroups is on the bill of the scope that has it.
            if isinstance(node, Scan):
                elsewhere = scope.regroups or (native and source in read)
            else:
                elsewhere = scope.regroups and node.keys != scope.keys
            found[node] = total(found.get(node, {}), {} if elsewhere else done)
        if native and not scope.regroups:
            read.add(source)
    return found


def _works(
    plan: PlanBody, scope: PlannedScope, volumes: Volumes, choice: StrategyChoice | None
) -> list[Work]:
    model = batch_model(plan.engine, volumes)
    if not isinstance(model, SparkModel) or choice is None or choice.strategy != COLUMNAR:
        return model.works(scope.nodes)
    base = slices_to_ship(scope.nodes) if choice.ships == "slices" else None
    return model.spark.columnar(scope.nodes, base, choice.salt_us)
