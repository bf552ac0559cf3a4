"""Events that come too late: dropped and counted as the oracle of streams says, row for row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from oracles.streams import StreamOracle
from sampling import examples
from weft.testing import assert_same_rows
from weft.testing.strategies import events, windows, workloads

if TYPE_CHECKING:
    from weft.planners.lattice import KeySets

RELAXED = settings(deadline=None, max_examples=examples(40), suppress_health_check=[*HealthCheck])


@RELAXED
@given(
    workload=workloads(windows(), most=3),
    table=events(),
    size=st.integers(1, 9),
    delay=st.sampled_from([0, 0, 2, 5, 20]),
    key_sets=st.sampled_from([None, "together"]),
)
def test_sessions_close_and_drop_what_the_oracle_does_after_every_batch(
    workload: weft.Workload, table: pa.Table, size: int, delay: int, key_sets: KeySets | None
) -> None:
    plan = weft.optimize(workload, engine="local", session=True, key_sets=key_sets)
    note(plan.explain())
    session, oracle = weft.LocalSession(plan, watermark=delay), StreamOracle(plan, delay)
    names = [query.name for query in plan.queries]
    rows: dict[str, list[pa.Table]] = {name: [] for name in names}
    for at in range(0, table.num_rows, size):
        batch = table.slice(at, size)
        found = session.push("events", batch)
        for name in names:
            rows[name].append(found if len(names) == 1 else found[name])
        oracle.played([batch])
        wanted = oracle.tables(table.schema)
        for query in plan.queries:
            assert_same_rows(query, pa.concat_tables(rows[query.name]), wanted[query.name])
        assert session.metrics.late == oracle.late
        assert session.metrics.watermarks_us["events"] == oracle.watermark_us
