"""Every placement of early aggregation gives the rows that the definition gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import weft
from sampling import examples
from weft.cost.joins.tuples import placement_name, placements
from weft.engines.reference.engine import ReferenceEngine
from weft.plan import Slice
from weft.planners.portfolio import optimize
from weft.query import JoinQuery, Workload
from weft.running import bind_tables, run
from weft.testing import assert_same_rows
from weft.testing.joins import joins_with_rows
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    Asked = tuple[JoinQuery, Mapping[str, pa.Table]]


def oracle(query: JoinQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    workload = bind_tables(Workload([query]), tables)
    return ReferenceEngine().answer(workload, tables)[query.name]


@pytest.mark.parametrize("engine", ["reference", "local"])
@settings(deadline=None, max_examples=examples(30))
@given(asked=joins_with_rows(joint=True))
def test_every_placement_gives_the_rows_of_the_definition(engine: str, asked: Asked) -> None:
    query, tables = asked
    wanted = oracle(query, tables)
    for early in placements(len(query.inputs)):
        plan = optimize(Workload([query]), placement_name(early), "local")
        note(plan.explain())
        assert_same_rows(query, run(plan, tables, engine=engine), wanted, placement_name(early))


WINDOWS = (PeriodicWindow(4, 2), PeriodicWindow(6, 3), PeriodicWindow(12, 2, 1))


@settings(deadline=None, max_examples=examples(20))
@given(asked=joins_with_rows(2, tables=False, joint=True), data=st.data())
def test_joins_that_share_slices_give_the_rows_of_the_definition(
    asked: Asked, data: st.DataObject
) -> None:
    query, tables = asked
    assume(not any(call.laws().holistic for _, call in query.aggs))
    queries = [
        replace(
            query,
            name=f"j{n}",
            inputs=tuple(
                replace(given, window=data.draw(st.sampled_from(WINDOWS)), time="ts")
                for given in query.inputs
            ),
        )
        for n in range(3)
    ]
    plan = optimize(Workload(queries), "EAP11", "local")
    note(plan.explain())
    shared = [node for node in plan.nodes if isinstance(node, Slice)]
    assert len(shared) == 2
    assert weft.Plan.from_json(plan.explain("json")).nodes == plan.nodes
    for engine in ("local", "reference"):
        results = run(plan, tables, engine=engine)
        for one in queries:
            assert_same_rows(one, results[one.name], oracle(one, tables), engine)
