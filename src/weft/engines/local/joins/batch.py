"""Joins over whole tables: every input read once, then all instants evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.local.joins.operator import JoinOperator
from weft.plan import Join, Slice

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weft.engines.local.joins.sides import SideStore
    from weft.plan import Plan


def run_joins(plan: Plan, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the results of the joins of a plan, by query; slices they share are made once."""
    schemas = {name: table.schema for name, table in sources.items()}
    results: dict[str, pa.Table] = {}
    owners: dict[Slice, JoinOperator] = {}
    sliced: dict[Slice, SideStore] = {}
    for emit in plan.emits:
        join = emit.inputs[0]
        if not isinstance(join, Join):
            continue
        shared = [side.input for side in join.sides if isinstance(side.input, Slice)]
        like = next((owners[node] for node in shared if node in owners), None)
        operator = JoinOperator.of(emit, schemas, like)
        for place, side in enumerate(operator.join.sides):
            store = operator.stores[place]
            if isinstance(side.input, Slice) and side.input in sliced:
                store.runs = list(sliced[side.input].runs)
                continue
            operator.process(place, sources[side.scan.source])
            if isinstance(side.input, Slice):
                store.flow()
                owners[side.input], sliced[side.input] = operator, store
        results[emit.query] = operator.advance(None)
    return results
