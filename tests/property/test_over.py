"""Aggregates OVER frames on the engines of this process: what SQL says, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from sampling import examples

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 1_000_000
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.none() | st.integers(-6, 12),  # seconds; several rows have one time, or none
        st.none() | st.integers(-5, 5),
    ),
    max_size=14,
)
BOUNDS = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted).filter(lambda b: b[0] < b[1])
FOLDED: dict[str, Callable[[list[int]], Any]] = {
    "SUM(x)": lambda xs: sum(xs) if xs else None,
    "COUNT(x)": len,
    "MAX(x)": lambda xs: max(xs, default=None),
    "COUNT(DISTINCT x)": lambda xs: len(set(xs)),
    "COUNT(x) FILTER (WHERE x > 0)": lambda xs: sum(x > 0 for x in xs),
}


def table_of(rows: list[tuple[Any, Any, Any]], *, distinct: bool) -> pa.Table:
    if distinct:  # ROWS depend on the order of rows of one time
        rows = [(k, at, x) for at, (k, _, x) in enumerate(rows)]
    times = [None if t is None else t * SECOND for _, t, _ in rows]
    return pa.table(
        {
            "k": pa.array([k for k, _, _ in rows], pa.string()),
            "ts": pa.array(times, pa.timestamp("us")),
            "x": pa.array([x for _, _, x in rows], pa.int64()),
        }
    )


def inside(row: dict[str, Any], other: dict[str, Any], near: int, far: int, sign: int) -> bool:
    """Tell whether RANGE BETWEEN far PRECEDING AND near PRECEDING of a row holds another."""
    if row["k"] != other["k"]:
        return False
    if row["ts"] is None or other["ts"] is None:
        return row["ts"] is None and other["ts"] is None
    distance = sign * (row["ts"] - other["ts"]).total_seconds()
    return near <= distance <= far


@pytest.mark.parametrize("engine", ["local", "reference"])
@given(rows=ROWS, bounds=BOUNDS, descends=st.booleans())
@settings(max_examples=examples(40))
def test_range_frames_hold_what_sql_says(
    engine: str, rows: list[Any], bounds: list[int], descends: bool
) -> None:
    near, far = bounds
    table = table_of(rows, distinct=False)
    last = f"INTERVAL {near} SECONDS PRECEDING" if near else "CURRENT ROW"
    over = (
        f"OVER (PARTITION BY k ORDER BY ts {'DESC' if descends else ''} "
        f"RANGE BETWEEN INTERVAL {far} SECONDS PRECEDING AND {last})"
    )
    items = ", ".join(f"{call} {over} AS c{i}" for i, call in enumerate(FOLDED))
    got = weft.sql(f"SELECT x, {items} FROM t", t=table, engine=engine)
    listed = table.to_pylist()
    sign = -1 if descends else 1
    held = [
        [o["x"] for o in listed if inside(row, o, near, far, sign) and o["x"] is not None]
        for row in listed
    ]
    for i, fold in enumerate(FOLDED.values()):
        assert got[f"c{i}"].to_pylist() == [fold(xs) for xs in held]


@pytest.mark.parametrize("engine", ["local", "reference"])
@given(rows=ROWS, bounds=BOUNDS)
@settings(max_examples=examples(40))
def test_rows_frames_hold_what_sql_says(engine: str, rows: list[Any], bounds: list[int]) -> None:
    near, far = bounds
    table = table_of(rows, distinct=True)
    over = f"OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN {far} PRECEDING AND {near} PRECEDING)"
    items = ", ".join(f"{call} {over} AS c{i}" for i, call in enumerate(FOLDED))
    got = weft.sql(f"SELECT *, {items} FROM t WHERE x IS NOT NULL", t=table, engine=engine)
    listed = [row for row in table.to_pylist() if row["x"] is not None]
    held = []
    for row in listed:
        before = [o["x"] for o in listed if o["k"] == row["k"] and o["ts"] <= row["ts"]]
        held.append(before[max(len(before) - 1 - far, 0) : max(len(before) - near, 0)])
    for i, fold in enumerate(FOLDED.values()):
        assert got[f"c{i}"].to_pylist() == [fold(xs) for xs in held]


@given(rows=ROWS)
@settings(max_examples=examples(40))
def test_a_sliding_window_has_a_row_for_every_change(rows: list[Any]) -> None:
    table = table_of(rows, distinct=False)
    got = weft.sql(
        "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k, SlidingWindow(second, 4)", t=table
    )
    coming = weft.sql("SELECT k, COUNT(*) AS n FROM t [RANGE 4 SECONDS] GROUP BY k", t=table)
    known = [(k, t, x) for k, t, x in rows if t is not None]
    changes = {(k, t) for k, t, _ in known} | {(k, t + 4) for k, t, _ in known}
    want = {}
    for key, at in changes:
        xs = [x for k, t, x in known if k == key and at - 4 < t <= at]
        if xs:
            kept = [x for x in xs if x is not None]
            want[key, at] = (len(xs), sum(kept) if kept else None)
    ends = [round(end.timestamp()) if end else None for end in utc(got["window_end"])]
    found = zip(got["k"].to_pylist(), ends, got["n"].to_pylist(), got["s"].to_pylist(), strict=True)
    assert {(k, t): (n, s) for k, t, n, s in found} == want
    assert got.num_rows == len(want)
    counts = {(k, t): sum(o == k and t - 4 <= at <= t for o, at, _ in known) for k, t, _ in known}
    ends = [round(end.timestamp()) for end in utc(coming["window_end"])]
    assert (
        dict(
            zip(
                zip(coming["k"].to_pylist(), ends, strict=True),
                coming["n"].to_pylist(),
                strict=True,
            )
        )
        == counts
    )


def utc(column: Any) -> list[Any]:
    return column.cast(pa.timestamp("us", "UTC")).to_pylist()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT rank() OVER (ORDER BY ts) AS r FROM t", "is no aggregate"),
        ("SELECT sum(x) OVER (ORDER BY ts) AS r FROM t", "a frame that begins before its row"),
        ("SELECT sum(x) OVER (ORDER BY ts ROWS 1 PRECEDING) FROM t", "has no name"),
        ("SELECT sum(x) OVER (ORDER BY k RANGE 1 PRECEDING) AS s FROM t", "cannot be ordered"),
        ("SELECT sum(x) OVER (ORDER BY ts RANGE 1 PRECEDING) AS s FROM t", "before an instant"),
        ("SELECT sum(x) OVER (ORDER BY ts ROWS 1 PRECEDING) AS s FROM u", "no table 'u'"),
        ("SELECT k FROM t, u [RANGE 1 MINUTE] GROUP BY k, SlidingWindow(minute, 1)", "one table"),
    ],
)
def test_what_is_not_computed_is_refused(sql: str, message: str) -> None:
    with pytest.raises(weft.WeftError, match=message) as caught:
        weft.sql(sql, engine="reference", t=table_of([("a", 1, 1)], distinct=False))
    assert "hint:" in str(caught.value)


def test_explain_shows_the_plans_of_frames() -> None:
    sql = "SELECT MAX(x) OVER (ORDER BY ts ROWS 1 PRECEDING) AS s FROM t"
    text = str(weft.explain(sql, t=table_of([("a", 1, 1)], distinct=False)))
    assert "ROWS 2 up to t" in text
