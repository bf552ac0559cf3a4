"""Values and keys of every type: the rows of the reference engine, in batch and in a stream."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft.engines.local.values.keys import KeyCodes
from weft.sessions.local_session import LocalSession
from weft.testing import assert_same_rows

RELAXED = settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))
UTC = dt.UTC
INSTANTS = [dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(2024, 2, 29, 12, tzinfo=UTC)]
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), ["b", "a", "", "ä", "ab"]),
    "large_string": (pa.large_string(), ["b", "a", ""]),
    "binary": (pa.binary(), [b"b", b"", b"\xff"]),
    "int8": (pa.int8(), [-128, 0, 127]),
    "uint64": (pa.uint64(), [0, 2**64 - 1, 7]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 0]),
    "float32": (pa.float32(), [0.5, -1.5, math.inf]),
    "double": (pa.float64(), [0.0, -0.0, math.nan, -math.inf, 1.5]),
    "bool": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [dt.date(1970, 1, 1), dt.date(1969, 12, 31)]),
    "timestamp": (pa.timestamp("us", "UTC"), INSTANTS),
    "decimal": (pa.decimal128(10, 2), [Decimal("0.10"), Decimal("-99999999.99"), Decimal("0")]),
}
PICKED = {
    "lo": weft.agg.min("v"),
    "hi": weft.agg.max("v"),
    "first": weft.agg.first("v"),
    "last": weft.agg.last("v"),
    "at_lo": weft.agg.min_by("v", "w"),
    "at_hi": weft.agg.max_by("w", "v"),
    "kinds": weft.agg.count_distinct("v"),
    "about": weft.agg.approx_count_distinct("v"),
    "n": weft.agg.count("v"),
}
WINDOWS = {"4": weft.hopping(4, 2), "all": weft.tumbling(100), "s": weft.session(2)}


def check(query: weft.Query, table: pa.Table, size: int) -> None:
    workload, tables = weft.Workload([query]), {"events": table}
    wanted = weft.run(workload, tables, engine="reference")
    got = weft.run(workload, tables, engine="local")
    assert got.schema == wanted.schema
    assert_same_rows(query, got, wanted)
    session = LocalSession(workload, watermark=1000)
    parts = [session.push("events", table.slice(i, size)) for i in range(0, len(table), size)]
    restored = LocalSession.restore(session.snapshot())
    found = pa.concat_tables([*parts, restored.finish()], promote_options="default")
    assert_same_rows(query, found, wanted)


@pytest.mark.parametrize("name", TYPES)
@RELAXED
@given(data=st.data(), size=st.integers(1, 5))
def test_values_of_every_type_are_picked_and_counted_alike(name: str, data: Any, size: int) -> None:
    type, values = TYPES[name]
    rows = data.draw(
        st.lists(
            st.tuples(
                st.integers(-5, 9),
                st.none() | st.sampled_from(values),
                st.none() | st.integers(-1, 1),
            ),
            min_size=1,
            max_size=12,
        )
    )
    times, v, w = zip(*rows, strict=True)
    table = pa.table({"ts": pa.array(times), "v": pa.array(v, type), "w": pa.array(w, pa.int64())})
    query = weft.Query("q", source="events", time="ts", windows=WINDOWS, aggs=PICKED)
    check(query, table, size)


NUMERIC = """sum avg var var_pop stddev stddev_pop product bool_and bool_or bit_and bit_or bit_xor
    median min max first last count count_distinct approx_count_distinct"""
OF_NULLS = {name: getattr(weft.agg, name)("v") for name in NUMERIC.split()} | {
    "percentile": weft.agg.percentile("v", 0.3),
    "approx_percentile": weft.agg.approx_percentile("v", 0.3),
    "min_by": weft.agg.min_by("v", "w"),
    "max_by": weft.agg.max_by("w", "v"),
}


@pytest.mark.parametrize("call", OF_NULLS.values(), ids=OF_NULLS.keys())
def test_a_column_of_type_null_is_nothing_but_null(call: weft.agg.AggregateCall) -> None:
    rows = 1000
    table = pa.table({"ts": pa.array(range(rows)), "v": pa.nulls(rows), "w": pa.array([1] * rows)})
    windows = {**WINDOWS, "n": weft.counting(3), "c": weft.cumulating(100, 20)}
    query = weft.Query("q", source="events", time="ts", windows=windows, aggs={"a": call})
    check(query, table, 300)
    found = weft.run(weft.Workload([query]), {"events": table})["a"].to_pylist()
    assert set(found) == ({0} if "count" in call.function else {None})


@pytest.mark.parametrize("name", TYPES)
@RELAXED
@given(data=st.data(), size=st.integers(1, 5))
def test_keys_of_every_type_alone_and_in_pairs(name: str, data: Any, size: int) -> None:
    type, values = TYPES[name]
    key = st.none() | st.sampled_from(values)
    rows = data.draw(st.lists(st.tuples(st.integers(-5, 9), key, st.booleans()), min_size=1))
    times, k, f = zip(*rows, strict=True)
    table = pa.table({"ts": pa.array(times), "k": pa.array(k, type), "f": pa.array(f)})
    keys = data.draw(st.sampled_from([["k"], ["f", "k"], ["k", "f", "ts"]]))
    query = weft.Query(
        "q", source="events", time="ts", keys=keys, windows=WINDOWS, aggs={"n": weft.agg.count()}
    )
    check(query, table, size)


@RELAXED
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-5, 9),
            st.none()
            | st.tuples(
                st.none() | st.sampled_from([0.0, -0.0, math.nan]),
                st.none() | st.sampled_from("abé"),
            ),
            st.booleans(),
        ),
        min_size=1,
    ),
    size=st.integers(1, 5),
)
def test_keys_that_are_structs_of_structs(rows: list[Any], size: int) -> None:
    inner = pa.struct([("x", pa.float64()), ("s", pa.string())])
    outer = pa.struct([("f", pa.bool_()), pa.field("in", inner)])
    times, pairs, flags = zip(*rows, strict=True)
    inners = [None if pair is None else {"x": pair[0], "s": pair[1]} for pair in pairs]
    whole = [
        None if flag and own is None else {"f": flag, "in": own}
        for flag, own in zip(flags, inners, strict=True)
    ]
    table = pa.table({"ts": pa.array(times), "k": pa.array(whole, outer), "f": pa.array(flags)})
    aggs = {"n": weft.agg.count()}
    for keys in (["k"], ["f", "k"]):
        query = weft.Query("q", source="events", time="ts", keys=keys, windows=WINDOWS, aggs=aggs)
        check(query, table, size)


@RELAXED
@given(
    cents=st.lists(st.none() | st.integers(-(10**9), 10**9), min_size=1, max_size=20),
    size=st.integers(1, 5),
)
def test_decimals_are_summed_and_averaged_exactly(cents: list[int | None], size: int) -> None:
    values = [None if c is None else Decimal(c).scaleb(-2) for c in cents]
    table = pa.table(
        {"ts": pa.array(range(len(cents))), "v": pa.array(values, pa.decimal128(12, 2))}
    )
    aggs = {"sum": weft.agg.sum("v"), "avg": weft.agg.avg("v"), "mid": weft.agg.median("v")}
    query = weft.Query("q", source="events", time="ts", windows=WINDOWS, aggs=aggs)
    check(query, table, size)


@RELAXED
@given(
    values=st.lists(st.sampled_from([2**62, -(2**62), 1, None]), min_size=1), size=st.integers(1, 5)
)
def test_an_average_of_integers_may_pass_what_their_sum_may_not(values: list, size: int) -> None:
    table = pa.table({"ts": pa.array(range(len(values))), "v": pa.array(values, pa.int64())})
    aggs = {"avg": weft.agg.avg("v")}
    check(weft.Query("q", source="events", time="ts", windows=WINDOWS, aggs=aggs), table, size)


words = weft.agg.custom(
    "words_of_test",
    lift=lambda word: word,
    combine=lambda a, b: a + b,
    lower=lambda text: text,
    identity="",
    commutative=False,
    idempotent=False,
    examples=["a", "b"],
)
longest = weft.agg.custom(
    "longest_of_test",
    lift=len,
    combine=max,
    lower=lambda n: n or None,
    identity=0,
    commutative=True,
    idempotent=True,
    examples=["a", "bb"],
)


@RELAXED
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), st.none() | st.sampled_from("abc")), min_size=1),
    size=st.integers(1, 5),
)
def test_custom_aggregates_see_events_in_the_order_of_time(rows: list, size: int) -> None:
    times, letters = zip(*rows, strict=True)
    table = pa.table({"ts": pa.array(times), "v": pa.array(letters, pa.string())})
    aggs = {"all": words("v"), "most": longest("v")}
    check(weft.Query("q", source="events", time="ts", windows=WINDOWS, aggs=aggs), table, size)


def test_a_million_keys_keep_their_codes() -> None:
    codes = KeyCodes(1)
    texts = pa.array([f"key {i}" for i in range(1_000_000)])
    first = codes.encode([texts], len(texts))
    again = codes.encode([texts.slice(999_990)], 10)
    assert first.tolist() == list(range(1_000_000))
    assert again.tolist() == list(range(999_990, 1_000_000))
    assert codes.decode(np.array([999_999]))[0].to_pylist() == ["key 999999"]
