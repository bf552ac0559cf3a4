from __future__ import annotations

import math

import pyarrow as pa
import pytest

import weft
from weft.compare import first_difference
from weft.testing import assert_same_rows

QUERY = weft.Query(
    "q",
    source="t",
    keys=["k"],
    windows={"w": weft.tumbling(10)},
    aggs={
        "n": weft.agg.count(),
        "x": weft.agg.sum("x"),
        "d": weft.agg.approx_count_distinct("x"),
        "top": weft.agg.max("x"),
    },
)
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("window", pa.string()),
        ("window_start", pa.timestamp("us", "UTC")),
        ("window_end", pa.timestamp("us", "UTC")),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("d", pa.int64()),
        ("top", pa.float64()),
    ]
)
ROW = {
    "k": "a",
    "window": "w",
    "window_start": 0,
    "window_end": 10,
    "n": 1,
    "x": 1.0,
    "d": 100,
    "top": 0.0,
}


def table(*rows: dict) -> pa.Table:
    return pa.Table.from_pylist([{**ROW, **row} for row in rows], SCHEMA)


def test_order_of_rows_does_not_matter() -> None:
    a, b = {"k": "a"}, {"k": None}
    assert first_difference(QUERY, table(a, b), table(b, a), "x") is None


@pytest.mark.parametrize(
    ("got", "wanted"),
    [
        ({"x": 1.0 + 1e-12}, {"x": 1.0}),
        ({"x": math.nan}, {"x": math.nan}),
        ({"x": None}, {"x": None}),
        ({"x": math.inf}, {"x": math.inf}),
        ({"d": 103}, {"d": 100}),
        ({"n": 2**62 + 1}, {"n": 2**62 + 1}),
    ],
)
def test_what_counts_as_the_same(got: dict, wanted: dict) -> None:
    assert_same_rows(QUERY, table(got), table(wanted))


@pytest.mark.parametrize(
    ("got", "wanted", "column"),
    [
        ({"n": 2}, {}, "n"),
        ({"n": 10**10 + 1}, {"n": 10**10}, "n"),
        ({"top": 1.0 + 1e-12}, {"top": 1.0}, "top"),
        ({"x": 1.0 + 1e-6}, {}, "x"),
        ({"x": None}, {}, "x"),
        ({"x": math.nan}, {}, "x"),
        ({"x": math.inf}, {"x": -math.inf}, "x"),
        ({"d": 120}, {}, "d"),
    ],
)
def test_the_first_difference_is_named(got: dict, wanted: dict, column: str) -> None:
    found = first_difference(QUERY, table(got), table(wanted), "local")
    assert found is not None
    assert (found.query, found.engine, found.column, found.key) == ("q", "local", column, ("a",))
    with pytest.raises(AssertionError, match=f"{column} is"):
        assert_same_rows(QUERY, table(got), table(wanted))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("odd", [{"k": "b"}, {"k": None}, {"window_start": 10, "window_end": 20}])
def test_a_row_that_only_one_side_has_is_named(odd: dict, swap: bool) -> None:
    more, fewer = table({}, odd), table({})
    found = first_difference(QUERY, *((fewer, more) if swap else (more, fewer)), "local")
    assert found is not None
    assert found.column == ""
    assert found.key == (odd.get("k", "a"),)
    assert (found.got, found.wanted) == (
        ("no such row", "a row") if swap else ("a row", "no such row")
    )


def test_a_column_of_another_type_or_none_at_all_is_a_difference() -> None:
    text = table({}).set_column(4, "n", pa.array(["1"]))
    found = first_difference(QUERY, text, table({}), "local")
    assert found is not None
    assert (found.column, found.wanted, found.got) == ("n", "int64", "string")
    missing = first_difference(QUERY, table({}).drop_columns(["n"]), table({}), "local")
    assert missing is not None
    assert missing.got == "no such column"


def test_columns_without_any_value_are_equal() -> None:
    nulls = table({}).set_column(0, "k", pa.nulls(1))
    assert first_difference(QUERY, nulls, nulls, "local") is None


def test_empty_results_are_equal() -> None:
    assert first_difference(QUERY, table().slice(0, 0), table().slice(0, 0), "x") is None
