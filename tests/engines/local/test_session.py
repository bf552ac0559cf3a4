"""The stream: any batches, any cut points, the rows of a batch run; late events, bad input."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from weft.bench.suite.techniques.pushes import Load
from weft.sessions.local_session import LocalSession
from weft.testing import assert_same_rows
from weft.testing.strategies import events, windows, workloads

RELAXED = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))


def by_query(workload: weft.Workload, found: Any) -> dict[str, pa.Table]:
    return {workload.queries[0].name: found} if len(workload) == 1 else found


class Gathered:
    """Rows of a session, batch after batch."""

    def __init__(self, workload: weft.Workload) -> None:
        self.workload = workload
        self.parts: dict[str, list[pa.Table]] = {q.name: [] for q in workload.queries}

    def take(self, found: Any) -> None:
        for name, table in by_query(self.workload, found).items():
            if table.num_columns:
                self.parts[name].append(table)

    def check(self, wanted: Any) -> None:
        for query in self.workload.queries:
            expected = by_query(self.workload, wanted)[query.name]
            parts = self.parts[query.name]
            got = pa.concat_tables(parts) if parts else expected.schema.empty_table()
            assert_same_rows(query, got, expected)


def batches(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(i, size) for i in range(0, table.num_rows, size)]


@pytest.mark.parametrize("size", [1, 7, 1000])
@RELAXED
@given(workload=workloads(windows(), most=2), table=events())
def test_batches_of_any_size_within_the_watermark_give_the_rows_of_one(
    size: int, workload: weft.Workload, table: pa.Table
) -> None:
    session, rows = LocalSession(workload, watermark=1000), Gathered(workload)
    for batch in batches(table, size):
        rows.take(session.push("events", batch))
    rows.take(session.finish())
    rows.check(weft.run(workload, {"events": table}, engine="reference"))


@RELAXED
@given(workload=workloads(windows(), most=2), table=events(), size=st.integers(1, 9))
def test_sorted_events_close_windows_as_they_come(
    workload: weft.Workload, table: pa.Table, size: int
) -> None:
    table = table.sort_by([("ts", "ascending")])
    session, rows = LocalSession(workload, watermark=0), Gathered(workload)
    for batch in batches(table, size):
        rows.take(session.push("events", batch))
        note(session.metrics)
    rows.take(session.finish())
    assert set(session.metrics.late.values()) <= {0}
    rows.check(weft.run(workload, {"events": table}, engine="reference"))


SETS = st.sampled_from([weft.agg.count_distinct("i"), weft.agg.approx_count_distinct("i")])


@RELAXED
@given(workload=workloads(windows(), SETS, most=2), table=events(), size=st.integers(1, 9))
def test_sets_that_hold_each_value_once_give_the_same_counts(
    workload: weft.Workload, table: pa.Table, size: int
) -> None:
    table = table.sort_by([("ts", "ascending")])
    session, rows = LocalSession(workload, watermark=3), Gathered(workload)
    for batch in batches(table, size):
        rows.take(session.push("events", batch))
    rows.take(session.finish())
    rows.check(weft.run(workload, {"events": table}, engine="reference"))


@RELAXED
@given(table=events(), workload=workloads(windows(), most=2), cuts=st.lists(st.integers(-20, 70)))
def test_moving_the_watermark_by_hand_changes_no_row(
    table: pa.Table, workload: weft.Workload, cuts: list[int]
) -> None:
    session, rows = LocalSession(workload, watermark=1000), Gathered(workload)
    rows.take(session.push("events", table))
    for cut in cuts:
        rows.take(session.advance(cut))
    rows.take(session.finish())
    rows.check(weft.run(workload, {"events": table}, engine="reference"))


@RELAXED
@given(
    workload=workloads(windows(), most=2),
    table=events(),
    size=st.integers(1, 9),
    cut=st.integers(0, 40),
    sort=st.booleans(),
)
def test_a_session_restored_at_any_cut_goes_on_with_the_same_rows(
    workload: weft.Workload, table: pa.Table, size: int, cut: int, sort: bool
) -> None:
    if sort:
        table = table.sort_by([("ts", "ascending")])
    session, rows = LocalSession(workload, watermark=0 if sort else 1000), Gathered(workload)
    for at, batch in enumerate(batches(table, size)):
        if at == cut // size:
            before = session.metrics
            session = LocalSession.restore(session.snapshot())
            assert session.metrics.events == before.events
        rows.take(session.push("events", batch))
    rows.take(LocalSession.restore(session.snapshot()).finish())
    rows.check(weft.run(workload, {"events": table}, engine="reference"))


@RELAXED
@given(
    drawn=st.lists(
        st.tuples(
            st.integers(0, 60),
            st.sampled_from([3, 4, 9, -2, None]),
            st.one_of(st.none(), st.floats(width=16)),
        ),
        max_size=40,
    ),
    size=st.integers(1, 12),
)
def test_keys_that_are_known_or_new_or_null_meet_in_the_same_windows(drawn: Any, size: int) -> None:
    query = weft.Query(
        "extremes",
        source="events",
        time="ts",
        keys=["k"],
        windows={"ü20": weft.tumbling(20), "10": weft.tumbling(10), "15/5": weft.hopping(15, 5)},
        aggs={"least": weft.agg.min("v"), "most": weft.agg.max("v")},
    )
    workload = weft.Workload([query])
    columns = [*zip(*sorted(drawn, key=lambda event: event[0]), strict=True)] or [(), (), ()]
    types = (pa.int64(), pa.int32(), pa.float64())
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    table = pa.table(dict(zip(("ts", "k", "v"), arrays, strict=True)))
    session, rows = LocalSession(workload), Gathered(workload)
    labels = [label for label, _ in query.windows]
    for found in (*(session.push("events", b) for b in batches(table, size)), session.finish()):
        rows.take(found)
        if found.num_columns:
            ends, starts = (found[name].cast(pa.int64()) for name in ("window_end", "window_start"))
            places = [labels.index(str(label)) for label in found["window"].to_pylist()]
            keys = [(k is not None, k or 0) for k in found["k"].to_pylist()]
            order = [*zip(ends.to_pylist(), places, starts.to_pylist(), keys, strict=True)]
            assert order == sorted(order)
    rows.check(weft.run(workload, {"events": table}, engine="reference"))


def test_a_push_costs_an_hour_by_the_second_what_it_costs_ten_seconds() -> None:
    """With the plan that a session takes when nobody says anything."""
    medians = []
    for seconds in (10, 3600):
        hop = weft.hopping(f"{seconds} seconds", "1 second")
        query = weft.Query(
            "q", source="s", time="ts", keys=["k"], windows={"h": hop}, aggs={"v": "sum(n)"}
        )
        session, load = LocalSession(query), Load(50, (seconds,))
        session.push("s", load.events(0, seconds))
        took = []
        for at in range(seconds, seconds + 40):
            batch = load.events(at, 1)
            start = perf_counter()
            session.push("s", batch)
            took.append(perf_counter() - start)
        medians.append(sorted(took)[len(took) // 2])
    assert medians[1] < 5 * medians[0]
