"""Joins in a session: rows at each slide are those of the definition, whatever the batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.cost.joins.tuples import placements
from weft.engines.local.joins.pairs import packed
from weft.engines.reference.engine import ReferenceEngine
from weft.query import JoinQuery, Workload
from weft.testing import assert_same_rows
from weft.testing.joins import join_queries, join_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

SLIDING = """SELECT a.g, SUM(b.x) AS total, COUNT(*) AS n
FROM a TIMESTAMP BY ts [RANGE 4 SECONDS SLIDE 1 SECOND],
     b TIMESTAMP BY ts [RANGE 2 SECONDS SLIDE 1 SECOND]
WHERE a.k = b.k GROUP BY a.g"""


def definition(query: JoinQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    return ReferenceEngine().answer(Workload([query]), tables)[query.name]


def joined(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([part for part in parts if part.num_columns])


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_slides_give_the_rows_of_the_definition_whatever_batches_and_placements(
    data: st.DataObject,
) -> None:
    query = data.draw(join_queries(joint=True))
    tables = {i.source: data.draw(join_rows(10)) for i in query.inputs}
    session = weft.LocalSession(Workload([query]), watermark=100)  # nothing is late
    static = [i.source for i in query.inputs if i.window is None]
    moving = [i.source for i in query.inputs if i.window is not None]
    options = placements(len(query.inputs))
    found = [session.push(source, tables[source]) for source in static]
    cuts = {s: data.draw(st.integers(0, tables[s].num_rows)) for s in moving}
    for first in (True, False):
        for source in moving:
            cut = cuts[source]
            batch = tables[source][:cut] if first else tables[source][cut:]
            found.append(session.push(source, batch))
            session._joins[0].place(data.draw(st.sampled_from(options)))
    found.append(session.finish())
    assert_same_rows(query, joined(found), definition(query, tables), "session")


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_session_goes_on_from_a_snapshot_wherever_it_is_taken(data: st.DataObject) -> None:
    query = data.draw(join_queries(joint=True))
    tables = {i.source: data.draw(join_rows(10)) for i in query.inputs}
    static = [i.source for i in query.inputs if i.window is None]
    moving = [i.source for i in query.inputs if i.window is not None]
    options = placements(len(query.inputs))
    session = weft.LocalSession(Workload([query]), watermark=data.draw(st.integers(0, 9)))
    batches = [(source, tables[source]) for source in static]
    for source in moving:
        cut = data.draw(st.integers(0, tables[source].num_rows))
        batches += [(source, tables[source][:cut]), (source, tables[source][cut:])]
    at = data.draw(st.integers(0, len(batches)))
    for source, batch in batches[:at]:
        session.push(source, batch)
        session._joins[0].place(data.draw(st.sampled_from(options)))
    again = weft.LocalSession.restore(session.snapshot(), Workload([query]))
    assert again.metrics.joins == session.metrics.joins
    wanted, got = (
        [*(one.push(source, batch) for source, batch in batches[at:]), one.finish()]
        for one in (session, again)
    )
    assert [part.schema for part in got] == [part.schema for part in wanted]
    for a, b in zip(got, wanted, strict=True):
        if a.num_columns:
            assert_same_rows(query, a, b)
    assert again.metrics.joins == session.metrics.joins


def stream(rows: int, seed: int, groups: int) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": pa.array(np.arange(rows) * 1_000, pa.timestamp("us", "UTC")),
            "k": random.integers(0, 5, rows),
            "g": random.integers(0, groups, rows),
            "x": random.integers(0, 100, rows),
        }
    )


def test_rows_come_out_as_the_watermark_passes_and_late_events_are_counted() -> None:
    (query,) = weft.parse(SLIDING)
    tables = {"a": stream(9_000, 1, 3), "b": stream(9_000, 2, 3)}
    session = weft.LocalSession(Workload([query]))
    found = []
    for start in range(0, 9_000, 500):
        for name, table in tables.items():
            found.append(session.push(name, table.slice(start, 500)))
    early_rows = joined(found).num_rows
    assert early_rows > 0
    assert session.push("b", tables["b"].slice(0, 10)).num_rows == 0
    assert session.metrics.joins["q1"].late == 10
    found.append(session.finish())
    assert joined(found).num_rows > early_rows
    assert_same_rows(query, joined(found), definition_fast(query, tables))


def definition_fast(query: JoinQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    return weft.run(Workload([query]), dict(tables), engine="local")


@pytest.mark.parametrize("continuous", [False, True])
def test_the_placement_follows_the_data_and_metrics_show_the_switches(continuous: bool) -> None:
    (query,) = weft.parse(SLIDING)
    few, many = stream(12_000, 1, 2), stream(12_000, 2, 2)
    session = weft.LocalSession(Workload([query]), planner="LAP", continuous=continuous)
    session._joins[0].epoch_events = 4_000
    found = []
    for start in range(0, 12_000, 1_000):
        found.append(session.push("a", few.slice(start, 1_000)))
        found.append(session.push("b", many.slice(start, 1_000)))
    metrics = session.metrics.joins["q1"]
    assert metrics.switches
    assert metrics.switches[0].before == "LAP"
    assert metrics.placement != "LAP"
    found.append(session.finish())
    if not continuous:
        wanted = definition_fast(query, {"a": few, "b": many})
        assert_same_rows(query, joined(found), wanted, "switching")


def test_a_continuous_session_shows_the_result_after_every_batch() -> None:
    text = """SELECT COUNT(*) AS n
              FROM a TIMESTAMP BY ts [RANGE 10 MICROSECONDS SLIDE 5 MICROSECONDS],
              b TIMESTAMP BY ts [UNTIL NOW] WHERE a.k = b.k"""
    session = weft.LocalSession(weft.parse(text), continuous=True)
    session.push("a", pa.table({"ts": [1, 2], "k": [1, 1]}))
    assert session.push("b", pa.table({"ts": [2], "k": [1]}))["n"].to_pylist() == [2]
    assert session.push("a", pa.table({"ts": [11], "k": [1]}))["n"].to_pylist() == [2]
    assert session.push("a", pa.table({"ts": [40], "k": [7]})).num_rows == 0


def test_batches_of_any_size_join_in_the_order_of_time_when_pushed_together() -> None:
    (query,) = weft.parse(SLIDING)
    tables = {"a": stream(9_000, 1, 3), "b": stream(9_000, 2, 3)}
    whole, pieces = (weft.LocalSession(Workload([query]), continuous=True) for _ in range(2))
    together = whole.push_together(tables)
    for start in range(0, 9_000, 100):
        last = pieces.push_together({n: table.slice(start, 100) for n, table in tables.items()})
    assert together == last
    assert together.num_rows == 3
    assert whole.metrics.joins["q1"].matched > 0


def test_batches_pushed_together_are_all_taken_or_none() -> None:
    count = "SELECT COUNT(*) AS n FROM a TIMESTAMP BY ts GROUP BY TumblingWindow(second, 1)"
    session = weft.LocalSession(weft.parse(f"{SLIDING}; {count}"))
    tables = {"a": stream(3_000, 1, 3), "b": stream(3_000, 2, 3)}
    session.push_together({name: table[:1_500] for name, table in tables.items()})
    before = session.metrics
    wrong = tables["b"].set_column(3, "x", tables["b"]["x"].cast(pa.string()))
    with pytest.raises(weft.DataError, match="was int64 and now is string"):
        session.push_together({"a": tables["a"][1_500:], "b": wrong[1_500:]})
    assert session.metrics.joins == before.joins
    assert session.metrics.events == before.events
    assert session.metrics.watermarks_us == before.watermarks_us


def test_a_table_must_be_there_before_the_first_result() -> None:
    text = """SELECT p.city, COUNT(*) AS n
              FROM a TIMESTAMP BY ts [RANGE 10 MICROSECONDS SLIDE 5 MICROSECONDS],
              persons AS p WHERE a.k = p.k GROUP BY p.city"""
    session = weft.LocalSession(weft.parse(text))
    people = pa.table({"k": [1], "city": ["Bern"]})
    session.push("persons", people)
    assert session.push("a", pa.table({"ts": [1, 30], "k": [1, 1]}))["city"].to_pylist() == [
        "Bern",
        "Bern",
    ]
    with pytest.raises(weft.QueryError, match="rows came for it after the first results"):
        session.push("persons", people)


def test_an_aggregate_over_two_inputs_is_not_kept_tuple_by_tuple() -> None:
    text = SLIDING.replace("SUM(b.x)", "SUM(a.x * b.x)")
    session = weft.LocalSession(weft.parse(text), continuous=True)
    session.push("a", stream(3, 1, 2))
    with pytest.raises(weft.UnsupportedError, match=r"sum\(a.x \* b.x\) reads columns of several"):
        session.push("b", stream(3, 2, 2))


def test_an_error_leaves_a_join_as_it_was_before_the_batch() -> None:
    (query,) = weft.parse(SLIDING)
    tables = {"a": stream(9_000, 1, 3), "b": stream(9_000, 2, 3)}
    session = weft.LocalSession(Workload([query]))
    found = []
    for start in range(0, 9_000, 3_000):
        for name, table in tables.items():
            batch = table.slice(start, 3_000)
            if start:
                wrong = batch.set_column(1, "k", batch["k"].cast(pa.float64()))
                with pytest.raises(weft.DataError, match=r"was int64 and now is double"):
                    session.push(name, wrong)
                with pytest.raises(weft.DataError, match="has no column 'k'"):
                    session.push(name, batch.drop_columns(["k"]))
            found.append(session.push(name, batch))
    found.append(session.finish())
    assert_same_rows(query, joined(found), definition_fast(query, tables))


def test_a_batch_that_cannot_be_computed_does_not_move_the_watermark() -> None:
    text = SLIDING.replace("SUM(b.x)", "SUM(CAST(b.s AS BIGINT))")
    session = weft.LocalSession(weft.parse(text))
    session.push("a", stream(5_000, 1, 2))
    batch = stream(5_000, 2, 2)
    texts = batch["x"].cast(pa.string())
    session.push("b", batch[:1_000].append_column("s", texts[:1_000]))
    before = session.metrics
    with pytest.raises(weft.DataError, match="cannot cast 'none'"):
        session.push("b", batch.append_column("s", pa.array(["none"] * 5_000)))
    assert session.metrics.joins == before.joins
    assert session._joins[0].latest_us[1] == 999_000


def test_a_snapshot_of_other_joins_is_refused() -> None:
    session = weft.LocalSession(weft.parse(SLIDING))
    other = SLIDING.replace("COUNT(*)", "COUNT(b.x)")
    with pytest.raises(weft.DataError, match="another workload, which differs in q1"):
        weft.LocalSession.restore(session.snapshot(), weft.parse(other))
    with pytest.raises(weft.DataError, match="the snapshot is of other joins"):
        weft.LocalSession.restore(session.snapshot(), weft.optimize(weft.parse(other), "EAP11"))


def test_joins_that_share_slices_in_a_plan_run_in_a_session_too() -> None:
    text = f"{SLIDING}; {SLIDING.replace('4 SECONDS', '3 SECONDS')}"
    plan = weft.optimize(weft.parse(text), "EAP11", "local")
    tables = {"a": stream(9_000, 1, 3), "b": stream(9_000, 2, 3)}
    session = weft.LocalSession(plan)
    parts = [session.push(name, table) for name, table in tables.items()] + [session.finish()]
    for query in weft.parse(text):
        got = joined([part[query.name] for part in parts if query.name in part])
        assert_same_rows(query, got, definition_fast(query, tables))


def test_a_session_of_joins_says_what_it_cannot_do() -> None:
    session = weft.LocalSession(weft.parse(SLIDING))
    with pytest.raises(weft.UnsupportedError, match="'q1' is a join, and joins are not suspended"):
        session.suspend("q1")
    with pytest.raises(weft.UnsupportedError, match="a join cannot be added"):
        session.register(next(iter(weft.parse(SLIDING))))
    with pytest.raises(weft.QueryError, match="does not say which column of a is its time"):
        weft.LocalSession(weft.parse(SLIDING.replace("a TIMESTAMP BY ts", "a")))
    with pytest.raises(weft.QueryError, match="no query reads 'c'"):
        session.push("c", pa.table({"ts": [1]}))


def test_columns_of_a_join_whose_combinations_64_bits_cannot_number() -> None:
    """Seven join columns of a thousand values each, of which few combinations occur."""
    random = np.random.default_rng(0)
    names = [f"k{i}" for i in range(7)]
    keys = {name: random.permutation(1000) for name in names}
    tables = {
        source: pa.table(
            {
                "ts": pa.array(random.integers(0, 4_000_000, 1000)).cast(pa.timestamp("us")),
                **{name: values[rows] for name, values in keys.items()},
                "x": random.integers(0, 99, 1000),
            }
        )
        for source in ("a", "b")
        for rows in [random.integers(0, 1000, 1000)]
    }
    tied = " AND ".join(f"a.{name} = b.{name}" for name in names)
    query = weft.parse(SLIDING.replace("a.k = b.k", tied).replace("a.g", "a.k1, b.k2")).queries[0]
    got = weft.run(Workload([query]), tables)
    assert got.num_rows
    assert_same_rows(query, got, definition(query, tables), "local")


def test_numbers_of_combinations_keep_the_order_of_the_columns() -> None:
    random = np.random.default_rng(0)
    tables = [[random.integers(0, 2**31, rows) // 2**29 for _ in range(5)] for rows in (40, 30)]
    numbers = packed([2**31] * 5, *tables)
    rows = np.concatenate([np.stack(table, axis=1) for table in tables])
    assert [len(own) for own in numbers] == [40, 30]
    order = np.lexsort(rows.T[::-1])
    assert np.array_equal(np.argsort(np.concatenate(numbers), kind="stable"), order)
    assert np.unique(np.concatenate(numbers)).size == len(np.unique(rows, axis=0))


def test_more_matches_than_64_bits_count_are_refused() -> None:
    text = """SELECT COUNT(*) AS n FROM a TIMESTAMP BY ts [RANGE 1 SECOND SLIDE 1 SECOND],
              b TIMESTAMP BY ts [RANGE 1 SECOND SLIDE 1 SECOND],
              c TIMESTAMP BY ts [RANGE 1 SECOND SLIDE 1 SECOND] WHERE a.k = b.k AND b.k = c.k"""
    rows = 2_100_000  # whose third power takes 64 bits
    same = pa.table(
        {"ts": pa.array(np.zeros(rows, np.int64)).cast(pa.timestamp("us")), "k": np.zeros(rows)}
    )
    session = weft.LocalSession(weft.parse(text))
    for source in "abc":
        session.push(source, same)
    with pytest.raises(weft.DataError, match="more combinations in one window than 64 bits count"):
        session.finish()
