"""Joins over whole tables: every input read once, then all instants evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.local.joins.operator import JoinOperator
from weft.plan import Join

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weft.plan import Plan


def run_joins(plan: Plan, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the results of the joins of a plan, by query."""
    schemas = {name: table.schema for name, table in sources.items()}
    results: dict[str, pa.Table] = {}
    for emit in plan.emits:
        if isinstance(emit.inputs[0], Join):
            operator = JoinOperator.of(emit, schemas)
            for place, side in enumerate(operator.join.sides):
                operator.process(place, sources[side.input.source])
            results[emit.query] = operator.advance(None)
    return results
