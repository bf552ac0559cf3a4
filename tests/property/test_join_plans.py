"""Every placement of early aggregation gives the rows that the definition gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, note, settings

from weft.cost.joins import placement_name, placements
from weft.engines.reference.engine import ReferenceEngine
from weft.planners.portfolio import optimize
from weft.query import JoinQuery, Workload
from weft.running import bind_tables, run
from weft.testing import assert_same_rows
from weft.testing.joins import joins_with_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    Asked = tuple[JoinQuery, Mapping[str, pa.Table]]


def oracle(query: JoinQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    workload = bind_tables(Workload([query]), tables)
    return ReferenceEngine().answer(workload, tables)[query.name]


@pytest.mark.parametrize("engine", ["reference", "local"])
@settings(deadline=None, max_examples=60)
@given(asked=joins_with_rows())
def test_every_placement_gives_the_rows_of_the_definition(engine: str, asked: Asked) -> None:
    query, tables = asked
    wanted = oracle(query, tables)
    for early in placements(len(query.inputs)):
        plan = optimize(Workload([query]), placement_name(early), "local")
        note(plan.explain())
        assert_same_rows(query, run(plan, tables, engine=engine), wanted, placement_name(early))
