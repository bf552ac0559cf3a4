"""Expressions over columns give what the reference engine gives row by row, errors included."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft import DataError, WeftError
from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.values.frame import Frame
from weft.engines.scalar.expressions import compiled
from weft.engines.scalar.rows import rows_of

RELAXED = settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int32()),
        ("x", pa.float64()),
        ("f", pa.bool_()),
        ("s", pa.string()),
    ]
)
rows = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-9, 9),
        "j": st.none() | st.integers(-3, 3),
        "x": st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.25, 7.0, math.nan, math.inf]),
        "f": st.none() | st.booleans(),
        "s": st.none() | st.sampled_from(["", "a", "ab", "B%", "ä", " pad "]),
    }
)


def grown(numbers, conditions):
    pairs = st.tuples(numbers, numbers)
    wider = st.one_of(
        st.tuples(numbers, st.sampled_from(["+", "-", "*", "/", "%", "DIV"]), numbers).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        numbers.map(lambda n: f"abs({n})"),
        numbers.map(lambda n: f"(-{n})"),
        pairs.map(lambda p: f"coalesce({p[0]}, {p[1]})"),
        pairs.map(lambda p: f"nullif({p[0]}, {p[1]})"),
        pairs.map(lambda p: f"greatest({p[0]}, {p[1]})"),
        pairs.map(lambda p: f"least({p[0]}, {p[1]})"),
        numbers.map(lambda n: f"CAST({n} AS BIGINT)"),
        numbers.map(lambda n: f"CAST({n} AS DOUBLE)"),
        numbers.map(lambda n: f"floor({n})"),
        st.tuples(conditions, numbers, numbers).map(
            lambda t: f"CASE WHEN {t[0]} THEN {t[1]} ELSE {t[2]} END"
        ),
        st.tuples(conditions, numbers).map(lambda t: f"CASE WHEN {t[0]} THEN {t[1]} END"),
        st.tuples(conditions, numbers, numbers).map(lambda t: f"if({t[0]}, {t[1]}, {t[2]})"),
    )
    tests = st.one_of(
        st.tuples(numbers, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), numbers).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        numbers.map(lambda n: f"({n} IS NULL)"),
        st.tuples(numbers, numbers, numbers).map(lambda t: f"({t[0]} BETWEEN {t[1]} AND {t[2]})"),
        st.tuples(numbers, numbers).map(lambda t: f"({t[0]} IN ({t[1]}, 2, NULL))"),
        st.tuples(conditions, st.sampled_from(["AND", "OR"]), conditions).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        conditions.map(lambda c: f"(NOT {c})"),
        st.sampled_from(["s LIKE 'a%'", "s LIKE '_'", "s = 'ab'", "s > 'a'", "f IS TRUE"]),
        st.sampled_from(["length(s) > 1", "upper(s) = 'AB'", "trim(s) = 'pad'", "s || 'x' = 'ax'"]),
    )
    return wider, tests


def expressions(depth: int = 3) -> st.SearchStrategy[str]:
    numbers = st.sampled_from(["i", "j", "x", "1", "2", "0", "1.5"])
    conditions = st.sampled_from(["f", "i > 0", "x > 1", "TRUE", "s IS NULL"])
    for _ in range(depth):
        wider, tests = grown(numbers, conditions)
        numbers, conditions = numbers | wider, conditions | tests
    return numbers | conditions


def same(a, b) -> bool:
    if isinstance(a, float | int) and isinstance(b, float | int):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=1e-12)
    return a == b and (a is None) == (b is None)


@RELAXED
@given(text=expressions(), events=st.lists(rows, min_size=1, max_size=8))
def test_an_expression_over_columns_is_that_over_rows(text: str, events: list[dict]) -> None:
    table = pa.Table.from_pylist(events, SCHEMA)
    frame = Frame.of(table, SCHEMA.names)
    try:
        wanted = [compiled(text)(event) for event in rows_of(table)]
    except WeftError as error:
        with pytest.raises(type(error)):
            evaluate(text, frame)
        return
    got = evaluate(text, frame).to_pylist()
    assert len(got) == len(wanted)
    assert all(map(same, got, wanted)), (text, got, wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i % 3", [-2, None, 1]),
        ("i DIV 3", [-1, None, 2]),
        ("i / 2", [-2.5, None, 3.5]),
        ("b <> 0 AND i / b > 1", [False, None, True]),
        ("CASE WHEN b <> 0 THEN i / b ELSE 0 END", [0.0, None, 3.5]),
        ("ts >= '1970-01-01T00:00:01'", [False, True, None]),
        ("hour(ts)", [0, 0, None]),
        ("round(i / 2)", [-3.0, None, 4.0]),
        ("i > 6.5", [False, None, True]),
        ("i * 0.5", [Decimal("-2.5"), None, Decimal("3.5")]),
    ],
)
def test_examples(text: str, wanted: list) -> None:
    frame = Frame(
        {
            "i": pa.array([-5, None, 7]),
            "b": pa.array([0, 1, 2]),
            "ts": pa.array([0, 1_000_000, None], pa.timestamp("us", "UTC")),
        },
        3,
    )
    assert evaluate(text, frame).to_pylist() == wanted


def test_division_by_zero_and_sums_beyond_64_bits_are_errors() -> None:
    frame = Frame({"i": pa.array([2**62, 1]), "z": pa.array([0, 1])}, 2)
    with pytest.raises(DataError, match="division by zero"):
        evaluate("i / z", frame)
    with pytest.raises(DataError, match="overflow"):
        evaluate("i * 4", frame)
    with pytest.raises(DataError, match="no column 'nope'"):
        evaluate("nope + 1", frame)
