"""Hypothesis strategies for joins: random inputs, windows, equalities, keys and aggregates."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from weft import agg
from weft.query import JoinInput, JoinQuery
from weft.window import LandmarkWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import AggregateCall

_FIELDS: list[pa.Field[Any]] = [
    pa.field("ts", pa.timestamp("us", "UTC")),
    pa.field("k", pa.int64()),
    pa.field("m", pa.string()),
    pa.field("g", pa.string()),
    pa.field("i", pa.int64()),
    pa.field("x", pa.float64()),
]
ROWS = pa.schema(_FIELDS)
ALIASES = ("a", "b", "c", "d")


def stream_windows() -> st.SearchStrategy[PeriodicWindow | LandmarkWindow]:
    """Sliding windows of a few units, tumbling ones among them, and at times a landmark."""
    periodic = st.builds(PeriodicWindow, st.integers(1, 8), st.integers(1, 4), st.integers(0, 3))
    return st.one_of(periodic, periodic, periodic, st.builds(LandmarkWindow))


@st.composite
def join_rows(draw: st.DrawFn, most: int = 12) -> pa.Table:
    """Rows of one input: few join values, so that they match, vanish and return; some NULLs."""
    count = draw(st.integers(0, most))
    columns: dict[str, st.SearchStrategy[Any]] = {
        "ts": st.one_of(st.integers(-4, 24), st.integers(-4, 24), st.none()),
        "k": st.one_of(st.integers(0, 3), st.integers(0, 3), st.none()),
        "m": st.sampled_from(["u", "v", None]),
        "g": st.sampled_from(["red", "blue", None]),
        "i": st.one_of(st.none(), st.integers(-9, 9)),
        "x": st.one_of(st.none(), st.sampled_from([0.5, -1.25, 1e6, float("nan")])),
    }
    arrays = [
        pa.array(draw(st.lists(values, min_size=count, max_size=count))).cast(ROWS.field(name).type)
        for name, values in columns.items()
    ]
    return pa.table(arrays, schema=ROWS)


def _calls(alias: str) -> list[AggregateCall]:
    return [
        agg.count(),
        agg.count(f"{alias}.i"),
        agg.sum(f"{alias}.i"),
        agg.sum(f"{alias}.x"),
        agg.avg(f"{alias}.i"),
        agg.min(f"{alias}.x"),
        agg.max(f"{alias}.i"),
        agg.max(f"{alias}.g"),
        agg.var(f"{alias}.i"),
        agg.first(f"{alias}.i"),
        agg.bit_xor(f"{alias}.i"),
        agg.count_distinct(f"{alias}.g"),
        agg.median(f"{alias}.i"),
        agg.sum(f"CAST({alias}.i AS DECIMAL(10, 2))"),
    ]


def _joint_calls(left: str, right: str) -> list[AggregateCall]:
    """Aggregates over columns of two inputs at once."""
    return [
        agg.sum(f"{left}.i * {right}.i"),
        agg.sum(f"{left}.i + 2 * {right}.i"),
        agg.sum(f"{left}.x * {right}.i"),
        agg.avg(f"{left}.i - {right}.i"),
        agg.min(f"{left}.x + {right}.x"),
        agg.max(f"coalesce({left}.i, {right}.i)"),
        agg.count(f"nullif({left}.g, {right}.g)"),
        agg.count_distinct(f"concat({left}.g, {right}.g)"),
        agg.max_by(f"{left}.i", f"{right}.i"),
        agg.sum(f"CASE WHEN {right}.i > 0 THEN {left}.i END"),
    ]


@st.composite
def join_queries(
    draw: st.DrawFn, most: int = 3, *, tables: bool = True, joint: bool = False
) -> JoinQuery:
    """An aggregation over the join of two to `most` inputs, tied in a chain or by one value.

    `joint` asks for aggregates over columns of two inputs at once too.
    """
    aliases = ALIASES[: draw(st.integers(2, most))]
    windows: list[Any] = [
        draw(st.one_of(stream_windows(), st.none()) if tables else stream_windows())
        for _ in aliases
    ]
    if not any(isinstance(w, PeriodicWindow) for w in windows):
        windows[draw(st.integers(0, len(aliases) - 1))] = PeriodicWindow(4, 2)
    filters = st.sampled_from([None, None, "i > 0", "g = 'red'"])
    inputs = tuple(
        JoinInput(alias, alias, "ts" if window is not None else None, window, draw(filters))
        for alias, window in zip(aliases, windows, strict=True)
    )
    on = []
    for left, right in pairwise(aliases):
        columns = draw(st.sampled_from([("k", "k"), ("k", "k"), ("m", "m"), ("k", "i")]))
        on.append((f"{left}.{columns[0]}", f"{right}.{columns[1]}"))
        if draw(st.integers(0, 3)) == 0:
            on.append((f"{left}.m", f"{right}.m"))
    keys = draw(st.lists(st.sampled_from([f"{a}.g" for a in aliases]), max_size=2, unique=True))
    calls = [c for alias in aliases for c in _calls(alias)]
    if joint:
        calls += [c for left, right in pairwise(aliases) for c in 2 * _joint_calls(left, right)]
    asked = draw(st.lists(st.sampled_from(calls), min_size=1, max_size=4, unique=True))
    return JoinQuery(
        "j",
        inputs,
        tuple(dict.fromkeys(on)),
        tuple((f"g{n}", key) for n, key in enumerate(keys)),
        tuple((f"a{n}", call) for n, call in enumerate(asked)),
    )


@st.composite
def joins_with_rows(
    draw: st.DrawFn, most: int = 3, *, tables: bool = True, joint: bool = False
) -> tuple[JoinQuery, Mapping[str, pa.Table]]:
    """A join and the rows of its inputs."""
    query = draw(join_queries(most, tables=tables, joint=joint))
    return query, {given.source: draw(join_rows()) for given in query.inputs}
