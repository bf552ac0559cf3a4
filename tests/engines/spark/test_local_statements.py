"""Statements in this process: every answer is Spark's, and what may differ is refused."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from pyspark.sql.types import StructType

import weft
from engines.spark import statement_tables
from engines.spark.statement_check import assert_same_in_process, said, views
from engines.spark.test_statement_compositions import statements
from sampling import examples
from weft.statement.local.functions import FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# A column for each type; the rows cross what is special of one with what is special of others.
_TIMES = (
    dt.datetime(1969, 12, 31, 23, 59, 58, 500001, tzinfo=dt.UTC),
    dt.datetime(2024, 2, 29, 0, 0, tzinfo=dt.UTC),
    dt.datetime(2024, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    dt.datetime(1900, 3, 1, 12, 30, 15, tzinfo=dt.UTC),
    None,
)
_REALS = (0.0, -0.0, 1.5, -2.5, 2.675, 0.285, math.nan, math.inf, -1e300, 123456.789, 1e-7, None)
_WHOLE = (0, 1, -1, 7, -7, 2_000_000_000, None)
_SMALL = (3, -3, 127, -128, None)
_TEXTS = ("", " a b ", "Pump-01", "x%y", "it's", "10", None)
_DECIMALS = (Decimal("0.00"), Decimal("12.34"), Decimal("-0.05"), Decimal("99999.99"), None)
_WORDS = (["a", "b"], [], ["b", None], None)
VALUES = {
    "b": ([True, False, None], "boolean"),
    "y": (_SMALL, "tinyint"),
    "i": (_WHOLE, "int"),
    "l": ([None if w is None else w * 3_000_000_000 // 7 for w in _WHOLE], "bigint"),
    "d": (_REALS, "double"),
    "e": ([2.0, -3.25, 1e10, None, 0.5], "double"),
    "s": (_TEXTS, "string"),
    "u": (["ab", "Pump", "%", "Zürich 🦆", None], "string"),
    "m": (_DECIMALS, "decimal(7,2)"),
    "t": (_TIMES, "timestamp"),
    "v": ([_TIMES[1], None, _TIMES[0]], "timestamp"),
    "g": ([t.date() if t else None for t in _TIMES], "date"),
    "a": (_WORDS, "array<string>"),
}
ROWS = 97  # a prime above every length: rows meet in many combinations
EXPRESSIONS = Path(__file__).with_name("local_expressions.txt")
# What the two would compute in different ways, each with a word of the reason.
REFUSED = {
    "CAST(d AS STRING)": "CAST from double to string",
    "CAST(t AS STRING)": "CAST from timestamp to string",
    "i + s": "int \\+ string",
    "i = s": "int and string",
    "m % 2": "% of decimals",
    "CAST(m AS INT)": "CAST from decimal",
    "initcap(s)": "initcap is not among",
    "from_utc_timestamp(t, 'Europe/Berlin')": "from_utc_timestamp is not among",
    "s RLIKE 'a+'": "RLIKE",
    "s LIKE 'a\\\\_%'": "LIKE is of a text",
    "substring(s, -2, 2)": "substring",
    "a[5]": "out of bounds",
    "t + INTERVAL 1 MONTH": "INTERVAL 1 MONTH",
    "rand()": "rand is not among",
    "current_date": "no table that it reads has a column current_date",
    "nosuch(i)": "nosuch is not among",
    "round(d, -1)": "round",
    "date_format(t, 'EEE')": "date_format",
    "m * m * m * m * m * m": "more than 38 digits",
    "f": "type uint16",
}
# What Spark refuses on some rows, and weft does too.
FAILING = {
    "i / y + 1 / (i - i)": "DIVIDE_BY_ZERO",
    "l * 9000000000000": "Overflow",
    "CAST(l AS INT)": "out of range|can't be cast",
    "CAST(s AS INT)": "no plain int",
    "CAST(d AS BIGINT)": "out of the range",
    "y + y": "Overflow",
    "upper('stra\u00dfe')": "not ASCII",
}


def listed() -> list[str]:
    """Expressions that run in this process, one in each line."""
    return EXPRESSIONS.read_text().splitlines()


def value_rows() -> list[tuple[Any, ...]]:
    """Rows in which every column goes through its values at a pace of its own."""
    return [
        tuple(
            values[(at * (place + 1) + at // len(values)) % len(values)]
            for place, (values, _) in enumerate(VALUES.values())
        )
        for at in range(ROWS)
    ]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    schema = ", ".join(f"{name} {kind}" for name, (_, kind) in VALUES.items())
    return spark.createDataFrame(value_rows(), schema)


@pytest.fixture(scope="module")
def table(frame: DataFrame) -> pa.Table:
    return frame.toArrow()


def assert_equal(got: pa.Table, wanted: DataFrame, *, ordered: bool = True) -> None:
    assert_same_in_process(got, wanted.schema, said(wanted), ordered=ordered)


def test_every_function_and_operator_agrees_with_spark(
    spark: SparkSession, frame: DataFrame, table: pa.Table
) -> None:
    """One statement of Spark's and one of weft's for all of them: names, types and values."""
    text = f"SELECT {', '.join(listed())} FROM v_"
    named = f"SELECT {', '.join(f'{e} AS x{i}' for i, e in enumerate(listed()))} FROM v_"
    with views(spark, {"v_": frame}):
        wanted = spark.sql(named)
        names = spark.sql(text).columns
    schema, rows = wanted.schema, said(wanted)
    got = weft.sql(named, engine="local", v_=table)
    wrong = []
    for place, expression in enumerate(listed()):
        one, values = StructType(schema.fields[place : place + 1]), [(row[place],) for row in rows]
        try:
            assert_same_in_process(got.select([place]), one, values, ordered=True)
        except AssertionError as error:
            wrong.append(f"{expression}: {str(error)[:300]}")
        try:
            own = weft.sql(f"SELECT {expression} FROM v_", engine="local", v_=table).column_names
        except weft.UnsupportedError as refusal:
            own = [names[place]] if "only Spark makes" in str(refusal) else [str(refusal)]
        if own != [names[place]]:
            wrong.append(f"{expression}: named {own}, Spark {names[place]}")
    assert not wrong, "\n".join(wrong)


# Aggregates outside of blocks, and functions OVER rows: every one that is on the list.
GROUPED = """
SELECT b, count(*), count(1) AS ones, count(i), count(i, s) AS pairs, count(DISTINCT s),
  count(DISTINCT d) AS reals,
  sum(i), sum(y), sum(m), sum(e), sum(DISTINCT i) AS once, avg(i), avg(y), avg(e), mean(e) AS mean,
  avg(DISTINCT i) AS avg_once,
  min(i), max(d), min(d), max(s), min(s), max(t), min(g), max(m), max(b),
  stddev(e) AS s1, stddev_pop(e) AS s2, stddev_samp(i) AS s3, std(i) AS s4, variance(i) AS v1,
  var_pop(i) AS v2, var_samp(e) AS v3, count_if(i > 0) AS c1, bool_and(i > 0) AS a1,
  bool_or(i > 0) AS a2, every(b) AS a3,
  some(b) AS a4, any(i > 0) AS a5,
  bit_and(i) AS b1, bit_or(l) AS b2, bit_xor(y) AS b3,
  sum(i) FILTER (WHERE s <> '') AS kept, max(i) - min(i), coalesce(sum(m), 0) AS total
FROM v_ GROUP BY b
"""
OVER = """
SELECT i, s, t, row_number() OVER w AS n, rank() OVER (PARTITION BY b ORDER BY d DESC) AS r,
  dense_rank() OVER (ORDER BY s) AS dr, ntile(4) OVER w AS q,
  percent_rank() OVER (ORDER BY d) AS pr,
  cume_dist() OVER (ORDER BY t DESC NULLS FIRST) AS cd,
  lag(i) OVER w AS before, lead(i, 2, -1) OVER w AS later,
  sum(i) OVER (PARTITION BY y ORDER BY t) AS running, count(*) OVER (PARTITION BY b) AS size,
  max(s) OVER (ORDER BY l, s, t, d, y, m, u, v, g, e, b
    ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS top,
  avg(e) OVER (PARTITION BY b ORDER BY v
    RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS recent
FROM v_ WINDOW w AS (ORDER BY l, s, t, d, y, m, u, v, g, e, b)
"""


@pytest.mark.parametrize("text", [GROUPED, OVER], ids=["grouped", "over"])
def test_aggregates_agree_with_spark(
    text: str, spark: SparkSession, frame: DataFrame, table: pa.Table
) -> None:
    with views(spark, {"v_": frame}):
        assert_equal(weft.sql(text, engine="local", v_=table), spark.sql(text), ordered=False)


def test_no_function_is_on_the_list_that_was_not_tried() -> None:
    tried = " ".join((*listed(), GROUPED, OVER))
    untried = {n for n in FUNCTIONS if not re.search(rf"\b{n}\(", tried)}
    assert untried == {"window_time", "timestamp"}  # both in statements.sql


@pytest.mark.parametrize("expression", REFUSED)
def test_what_the_two_compute_differently_is_refused(expression: str, table: pa.Table) -> None:
    unsigned = table.append_column("f", pa.array([1] * ROWS, pa.uint16()))
    given_table = unsigned if expression == "f" else table
    with pytest.raises(weft.UnsupportedError, match=REFUSED[expression]) as refusal:
        weft.sql(f"SELECT {expression} AS x FROM v_", engine="local", v_=given_table)
    assert "hint: use engine='spark'" in str(refusal.value)


@pytest.mark.parametrize("expression", FAILING)
def test_rows_on_which_spark_ends_end_the_run(expression: str, table: pa.Table) -> None:
    with pytest.raises(weft.DataError, match=FAILING[expression]):
        weft.sql(f"SELECT {expression} AS x FROM v_", engine="local", v_=table)


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    return statement_tables.made(spark)


@pytest.fixture(scope="module")
def tables(frames: dict[str, DataFrame]) -> dict[str, pa.Table]:
    return {name: frame.toArrow() for name, frame in frames.items()}


@settings(
    max_examples=examples(8),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=statements())
def test_compositions_are_refused_or_give_what_spark_gives(
    spark: SparkSession,
    frames: dict[str, DataFrame],
    tables: dict[str, pa.Table],
    text: str,
) -> None:
    note(text)
    try:
        got = weft.sql(text, engine="local", **tables)
    except weft.UnsupportedError as refusal:
        # Nothing else in these statements is outside of what agrees.
        if any(word in str(refusal) for word in ("percentile", "struct", "does not read")):
            return
        raise
    with views(spark, frames):
        assert_equal(got, spark.sql(text), ordered=False)
