"""A join kept tuple by tuple gives, after every batch, what its windows hold then, in any plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from sampling import examples
from weft import agg
from weft.bench.suite.joins.runs import filled, streams_of
from weft.cost.joins.tuples import SideLoad, placement_name, placements
from weft.engines.joins import join_schema, variable_types
from weft.engines.local.joins.continuous.join import ContinuousJoin
from weft.engines.local.joins.continuous.state import PROBES
from weft.engines.reference.engine import result_table
from weft.engines.reference.joins import _coalesced, aggregation_set, read_side
from weft.engines.reference.oracle import ResultRow
from weft.engines.scalar.rows import rows_of
from weft.errors import DataError
from weft.plan.joins import JoinShape
from weft.planners.joins import emit_of
from weft.query import JoinInput, JoinQuery, Workload
from weft.sessions.local_session import LocalSession
from weft.testing import assert_same_rows
from weft.testing.joins import ROWS, join_rows
from weft.window import LandmarkWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.cost.joins.tuples import Method


@st.composite
def star_joins(draw: st.DrawFn, most: int = 3) -> JoinQuery:
    """A join of two to `most` inputs on the same columns."""
    aliases = "abcd"[: draw(st.integers(2, most))]
    windows = [
        draw(
            st.one_of(
                st.builds(PeriodicWindow, st.integers(1, 9), st.just(1)),
                st.builds(PeriodicWindow, st.integers(1, 9), st.just(1)),
                st.just(LandmarkWindow()),
                st.none(),
            )
        )
        for _ in aliases
    ]
    if not any(isinstance(w, PeriodicWindow) for w in windows):
        windows[0] = PeriodicWindow(5, 1)
    inputs = tuple(
        JoinInput(a, a, None if w is None else "ts", w)
        for a, w in zip(aliases, windows, strict=True)
    )
    columns = draw(st.sampled_from([("k",), ("m",), ("k", "m")]))
    on = tuple((f"{aliases[0]}.{c}", f"{a}.{c}") for a in aliases[1:] for c in columns)
    calls = [
        call
        for a in aliases
        for call in (
            agg.count(),
            agg.count(f"{a}.i"),
            agg.sum(f"{a}.i"),
            agg.avg(f"{a}.x"),
            agg.sum(f"{a}.x"),
            agg.min(f"{a}.x"),
            agg.max(f"{a}.i"),
        )
    ]
    asked = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=4, unique=True))
    keys = draw(st.lists(st.sampled_from([f"{a}.g" for a in aliases]), max_size=2, unique=True))
    return JoinQuery(
        "j",
        inputs,
        on,
        tuple((f"g{n}", key) for n, key in enumerate(keys)),
        tuple((f"a{n}", call) for n, call in enumerate(asked)),
    )


LEAST = JoinQuery(
    "j",
    tuple(JoinInput(a, a, "ts", PeriodicWindow(5, 1)) for a in "ab"),
    (("a.k", "b.k"),),
    (),
    (("least", agg.min("a.i")),),
)


def now(query: JoinQuery, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The result as of the latest event, from the definition."""
    shape = JoinShape.of(query)
    schemas = {name: table.schema for name, table in tables.items()}
    types = variable_types(query, schemas)
    contents = [
        read_side(shape, side, given, rows_of(tables[given.source]), types)
        for side, given in enumerate(query.inputs)
    ]
    moving = [
        row.event.time_us
        for given, rows in zip(query.inputs, contents, strict=True)
        if given.window is not None
        for row in rows
    ]
    found: list[ResultRow] = []
    if moving:
        end = max(moving) + 1
        inside = []
        for side, (given, rows) in enumerate(zip(query.inputs, contents, strict=True)):
            range_us = given.window.range_us if isinstance(given.window, PeriodicWindow) else 2**60
            kept = [r for r in rows if given.window is None or r.event.time_us >= end - range_us]
            inside.append(
                aggregation_set(
                    kept,
                    emit_of(query, (False,) * len(contents)).inputs[0].sides[side].partials,
                    early=False,
                )
            )
        longest = max(w.range_us for w in shape.windows if isinstance(w, PeriodicWindow))
        for key, known in _coalesced(shape, inside).items():
            values = tuple(
                call.lower(tuple(known[side if p.args else 0, p] for p in call.partials))
                for side, call in shape.calls
            )
            found.append(ResultRow(key, query.label, end - longest, end, values))
    return result_table(join_schema(query, schemas), found)


@pytest.mark.parametrize("method", ["hash", "nested loop"])
@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_all_placements_agree_after_every_batch(method: Method, data: st.DataObject) -> None:
    query = data.draw(star_joins())
    schemas = {given.source: ROWS for given in query.inputs}
    joins = {
        placement_name(early): ContinuousJoin.of(emit_of(query, early), schemas, method)
        for early in placements(len(query.inputs))
    }
    tables = {given.source: ROWS.empty_table() for given in query.inputs}
    for _ in range(data.draw(st.integers(1, 4))):
        source = data.draw(st.sampled_from(sorted(tables)))
        batch = data.draw(join_rows(8))
        tables[source] = pa.concat_tables([tables[source], batch])
        wanted = now(query, tables)
        for name, join in joins.items():
            join.push_together({source: batch})
            note(f"{name} {source}")
            assert_same_rows(query, join.result(), wanted, name)


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_a_change_of_placement_never_changes_the_result(data: st.DataObject) -> None:
    query = data.draw(star_joins())
    schemas = {given.source: ROWS for given in query.inputs}
    options = placements(len(query.inputs))
    join = ContinuousJoin.of(emit_of(query, data.draw(st.sampled_from(options))), schemas)
    tables = {given.source: ROWS.empty_table() for given in query.inputs}
    for _ in range(data.draw(st.integers(1, 5))):
        source = data.draw(st.sampled_from(sorted(tables)))
        batch = data.draw(join_rows(8))
        tables[source] = pa.concat_tables([tables[source], batch])
        join.push_together({source: batch})
        join.place(data.draw(st.sampled_from(options)))
        assert_same_rows(query, join.result(), now(query, tables))


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_batches_of_several_sources_may_come_together(data: st.DataObject) -> None:
    query = data.draw(star_joins())
    schemas = {given.source: ROWS for given in query.inputs}
    early = data.draw(st.sampled_from(placements(len(query.inputs))))
    join = ContinuousJoin.of(emit_of(query, early), schemas)
    tables = {given.source: ROWS.empty_table() for given in query.inputs}
    for _ in range(data.draw(st.integers(1, 3))):
        batches = {source: data.draw(join_rows(6)) for source in tables}
        tables = {s: pa.concat_tables([tables[s], batch]) for s, batch in batches.items()}
        join.push_together(batches)
        assert_same_rows(query, join.result(), now(query, tables))


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_the_order_of_probes_never_changes_the_result(data: st.DataObject) -> None:
    query = data.draw(star_joins(most=4))
    schemas = {given.source: ROWS for given in query.inputs}
    inputs = range(len(query.inputs))
    join = ContinuousJoin.of(
        emit_of(query, data.draw(st.sampled_from(placements(len(inputs))))), schemas
    )
    tables = {given.source: ROWS.empty_table() for given in query.inputs}
    for _ in range(data.draw(st.integers(1, 4))):
        source = data.draw(st.sampled_from(sorted(tables)))
        batch = data.draw(join_rows(6))
        tables[source] = pa.concat_tables([tables[source], batch])
        for side in inputs:
            others = [other for other in inputs if other != side]
            join.state.order[side] = data.draw(st.permutations(others))
        join.push_together({source: batch})
        assert_same_rows(query, join.result(), now(query, tables))


def test_inputs_that_let_few_through_are_probed_first() -> None:
    loads = (SideLoad(10, 20, 1, 100), SideLoad(500, 500, 1, 10), SideLoad(10, 20, 1, 100))
    streams = streams_of(loads, 1_000)
    late = (False, False, False)
    join, other = (filled(streams, late, "hash") for _ in range(2))
    assert join.state.order[0].tolist() == [2, 1]
    other.state.order[:] = other.state.order[:, ::-1]
    for batches in streams.batches(200):
        join.push_together(batches)
        other.push_together(batches)
        assert join.result() == other.result()
    assert join.state.counters[PROBES] < other.state.counters[PROBES]


@pytest.mark.parametrize("method", ["hash", "nested loop"])
@pytest.mark.parametrize("inputs", [2, 3])
def test_rows_of_a_set_have_tuples_however_large_batches_are(inputs: int, method: Method) -> None:
    streams = streams_of((SideLoad(10, 20, 200, 3),) * inputs, 1_000)
    small, large = (filled(streams, (True,) * inputs, method) for _ in range(2))
    for batches in streams.batches(50):
        small.push_together(batches)
    for batches in streams.batches(1_000):
        large.push_together(batches)
    assert small.result() == large.result()
    assert small.state.counters.tolist() == large.state.counters.tolist()


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_a_continuous_session_goes_on_from_a_snapshot(data: st.DataObject) -> None:
    query = data.draw(star_joins())
    options = placements(len(query.inputs))
    session = LocalSession(Workload([query]), continuous=True)
    sources = sorted(given.source for given in query.inputs)
    batches = [(source, data.draw(join_rows(6))) for source in (*sources, *reversed(sources))]
    at = data.draw(st.integers(0, len(batches)))
    for source, batch in batches[:at]:
        session.push(source, batch)
        session._joins[0].place(data.draw(st.sampled_from(options)))
    again = LocalSession.restore(session.snapshot())
    for source, batch in batches[at:]:
        got, wanted = again.push(source, batch), session.push(source, batch)
        assert got.schema == wanted.schema
        if wanted.num_columns:
            assert_same_rows(query, got, wanted)
    assert again.metrics.joins == session.metrics.joins


def test_a_number_that_stands_for_null_is_refused() -> None:
    join = ContinuousJoin.of(emit_of(LEAST, (True, True)), {"a": ROWS, "b": ROWS})
    rows = {"ts": [1], "k": [1], "m": ["u"], "g": ["red"], "i": [-(2**63)], "x": [0.5]}
    with pytest.raises(DataError, match="which stands for NULL"):
        join.push_together({"a": pa.table(rows).cast(ROWS)})


@pytest.mark.parametrize("method", ["hash", "nested loop"])
def test_many_keys_that_vanish_and_return_batch_by_batch(method: Method) -> None:
    loads = (SideLoad(300, 400, 30, 200), SideLoad(300, 300, 5, 200))
    streams = streams_of(loads, 3_000)
    joins = [filled(streams, early, method) for early in placements(2)]
    seen = {f"s{i}": table for i, table in enumerate(streams.filling, 1)}
    for batches in streams.batches(250):
        seen = {name: pa.concat_tables([seen[name], batch]) for name, batch in batches.items()}
        results = []
        for join in joins:
            join.push_together(batches)
            results.append(join.result())
        assert all(result == results[0] for result in results)
    kept = {name: table.slice(max(table.num_rows - 450, 0)) for name, table in seen.items()}
    assert_same_rows(joins[0].query, results[0], now(joins[0].query, kept))
