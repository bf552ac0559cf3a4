"""Rewritten SQL gives the rows of the statement it came from, in Spark and in DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from engines.spark import statement_check
from engines.spark.statement_check import described, views
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.session import to_spark
from weft.planners.portfolio import PLANNERS
from weft.statement.spellings import in_sparks_words
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATEMENTS = {
    "literals that look like numbers": """
        SELECT sku, concat('7L ', `9L`) AS tag, COUNT(*) AS n, MAX(CAST(5 AS BIGINT)) AS five,
               MAX(i + 2147483647L) AS far
        FROM readings TIMESTAMP BY ts
        WHERE sku = '12L' OR sku = 'it''s 3L' OR sku = 'a\\\\4L' OR i = 5L
        GROUP BY sku, concat('7L ', `9L`), HoppingWindow(second, 9, 4)""",
    "one tumbling window": """
        SELECT device, COUNT(*) AS n FROM readings TIMESTAMP BY ts
        GROUP BY device, TumblingWindow(second, 7)""",
    "one hop, no key": """
        SELECT SUM(i) AS s, AVG(x) AS mean FROM readings TIMESTAMP BY ts WHERE i > 0
        GROUP BY HoppingWindow(second, 10, 4)""",
    "many windows, all aggregates": """
        SELECT device, System.Window().Id, MIN(x) AS lo, MAX(x) AS hi, COUNT(i) AS n, SUM(i) AS s,
               AVG(i) AS mean, STDDEV(x) AS sd, VAR_POP(x) AS var, FIRST(i) AS one, LAST(i) AS two,
               MIN_BY(i, x) AS low, MAX_BY(i, x) AS high, BOOL_AND(i > 0) AS every,
               BOOL_OR(i > 7) AS any, BIT_XOR(i) AS bits
        FROM readings TIMESTAMP BY ts
        GROUP BY device, Windows(Window('4s', TumblingWindow(second, 4)),
                                 Window('it''s 12', TumblingWindow(second, 12)),
                                 Window('9/6', HoppingWindow(second, 9, 6)),
                                 Window('24/12', HoppingWindow(second, 24, 12)))""",
}


def readings() -> pa.Table:
    random = np.random.default_rng(2)
    times = random.integers(-30_000_000, 60_000_000, 150)
    return pa.table(
        {
            "ts": pa.array(times, mask=random.random(150) < 0.05).cast(pa.timestamp("us", "UTC")),
            "device": pa.array(random.choice(["a", "b"], 150), mask=random.random(150) < 0.2),
            "sku": pa.array(random.choice(["12L", "12", "it's 3L", "a\\4L", "4"], 150)),
            "9L": pa.array(random.choice(["8L", "8"], 150)),
            "i": pa.array(random.integers(-9, 10, 150), mask=random.random(150) < 0.1),
            "x": pa.array(random.integers(-900, 900, 150) / 8, mask=random.random(150) < 0.1),
        }
    )


@pytest.mark.parametrize("planner", ["independent", "factor", "slice"])
@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_duckdb_runs_the_text(statement: str, planner: str) -> None:
    table = readings()
    workload = weft.parse(statement)
    (wanted,) = ReferenceEngine().answer(workload, {"readings": table}).values()
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    connection.register("readings", table)
    text = weft.rewrite(statement, "duckdb", planner=planner)
    # DuckDB adds integers up in 128 bits, which Arrow has no type for but decimals.
    got = connection.sql(text).to_arrow_table().cast(wanted.schema)
    assert_same_rows(workload.queries[0], got, wanted, "duckdb")


@pytest.mark.spark
@pytest.mark.parametrize("planner", ["independent", "factor", "slice"])
@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS.keys())
def test_spark_runs_the_text(spark: SparkSession, statement: str, planner: str) -> None:
    table = readings()
    workload = weft.parse(statement)
    (wanted,) = ReferenceEngine().answer(workload, {"readings": table}).values()
    to_spark(table, spark).createOrReplaceTempView("readings")
    got = spark.sql(weft.rewrite(statement, planner=planner)).toArrow()
    assert_same_rows(workload.queries[0], got, wanted, "spark")


AGGREGATES = [
    "COUNT(*)", "COUNT(x)", "SUM(i)", "MIN(x)", "MAX(i)", "AVG(x)", "VAR_SAMP(x)", "STDDEV_POP(x)",
    "FIRST(i)", "LAST(x)", "MAX_BY(i, x)", "BOOL_OR(i > 3)", "BIT_AND(i)",
]  # fmt: skip


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Write a statement over some tumbling and hopping windows, with or without key and filter."""
    spans = st.tuples(st.integers(1, 24), st.integers(1, 24))
    windows = draw(st.lists(spans.filter(lambda s: s[0] >= s[1]), min_size=1, max_size=5))
    calls = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True))
    by = draw(st.sampled_from(["device, ", ""]))
    listed = ", ".join(
        f"Window('{n}: {range_s}/{slide_s}', HoppingWindow(second, {range_s}, {slide_s}))"
        for n, (range_s, slide_s) in enumerate(windows)
    )
    named = ", ".join(f"{call} AS a{n}" for n, call in enumerate(calls))
    where = draw(st.sampled_from(["", "WHERE x > -20 OR i IS NULL "]))
    return (
        f"SELECT {by}System.Window().Id, {named} FROM readings TIMESTAMP BY ts {where}"
        f"GROUP BY {by}Windows({listed})"
    )


@settings(max_examples=25, deadline=None)
@given(statement=statements(), planner=st.sampled_from(["auto", *PLANNERS]))
def test_duckdb_runs_the_text_of_random_statements(statement: str, planner: str) -> None:
    note(statement)
    test_duckdb_runs_the_text(statement, planner)


@pytest.mark.spark
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(statement=statements(), planner=st.sampled_from(["auto", *PLANNERS]))
def test_spark_runs_the_text_of_random_statements(
    spark: SparkSession, statement: str, planner: str
) -> None:
    note(statement)
    test_spark_runs_the_text(spark, statement, planner)


# Statements of Spark: the text keeps Spark's columns, and what Spark makes of groups.
QUERIES = {
    "blocks joined": """
        WITH base AS (SELECT ts, device, i, x FROM readings WHERE device IS NOT NULL),
        near AS (SELECT device, window.end AS at, COUNT(*) AS n, MAX(x) - MIN(x) AS span FROM base
                 WHERE i > -5 GROUP BY device, window(ts, '4 seconds')),
        far AS (SELECT device, window.end AS at, SUM(i) AS s, STDDEV(x) AS sd FROM base
                GROUP BY device, window(ts, '24 seconds', '4 seconds') HAVING COUNT(*) > 2)
        SELECT near.device AS device, near.at AS at, n, span, s, round(sd, 6) AS sd
        FROM near JOIN far ON near.device = far.device AND near.at = far.at""",
    "a hop with conditions and an order": """
        SELECT device, window.start AS s, MAX(i) FILTER (WHERE x > 0) + COUNT(*) AS a
        FROM readings WHERE i <> 3 GROUP BY device, window(ts, '10 seconds', '3 seconds')
        HAVING MIN(x) < 10 ORDER BY s, device NULLS FIRST""",
    "a union under a filter, names of the first branch": """
        SELECT w, top FROM (
            SELECT '6' AS w, MAX(x) AS top FROM readings GROUP BY window(ts, '6 seconds')
            UNION ALL
            SELECT '12', MAX(x) * 2 FROM readings GROUP BY window(ts, '12 seconds')
        ) WHERE top > 20""",
    "grouping sets": """
        SELECT device, sku, window.start AS s, COUNT(*) AS n, AVG(i) AS mean, MIN(x) AS lo,
               GROUPING(sku) AS g, GROUPING_ID() AS gid
        FROM readings GROUP BY ROLLUP(device, sku), window(ts, '12 seconds') HAVING COUNT(*) > 1""",
    "a cube of hops beside another window of the finest keys": """
        SELECT device AS a, sku AS b, window.end AS e, SUM(i) AS s FROM readings
        GROUP BY CUBE(device, sku), window(ts, '9 seconds', '3 seconds')
        UNION ALL
        SELECT device, sku, window.end, SUM(i) FROM readings
        GROUP BY device, sku, window(ts, '18 seconds', '3 seconds')""",
    "an alias of a listed column, and a window of windows": """
        WITH base AS (SELECT ts, device, i FROM readings),
        near AS (SELECT window(ts, '6 seconds', '3 seconds') AS w, upper(device) AS d, SUM(i) AS s
                 FROM base GROUP BY w, d)
        SELECT window.start AS since, d, SUM(s) AS s FROM near
        GROUP BY d, window(window_time(w), '24 seconds', '12 seconds')""",
}
# What DuckDB has no words for, or other ones.
OF_SPARK = {
    "pairs, values, sketches": """
        SELECT device, window.start AS s, corr(x, i) AS c, regr_slope(x, i) AS r, skewness(x) AS sk,
               kurtosis(x) AS ku, sort_array(collect_set(sku)) AS skus, size(collect_list(i)) AS n,
               COUNT(DISTINCT sku) AS d, listagg(sku, '+') WITHIN GROUP (ORDER BY sku) AS l,
               hll_sketch_estimate(hll_sketch_agg(i)) AS h
        FROM readings GROUP BY device, window(ts, '12 seconds', '4 seconds')""",
    "a spelling of others": """
        SELECT window_start, window_end, device, COUNT(*) AS n FROM
          CUMULATE(TABLE readings, DESCRIPTOR(ts), INTERVAL '4' SECONDS, INTERVAL '12' SECONDS)
        GROUP BY device, window_start, window_end""",
    "a block that is left": """
        SELECT device, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '6 seconds')
        UNION ALL
        SELECT device, COUNT(*) FROM readings GROUP BY device, window(ts, '12 seconds')
        UNION ALL
        SELECT device, COUNT(*) FROM readings GROUP BY device, session_window(ts, '2 seconds')""",
}
# What a text alone does not tell: names that Spark makes, digits of decimals, kinds of times.
WITH_TABLES = {
    "decimals and names": """
        SELECT device, window.start, AVG(CAST(x AS DECIMAL(9, 3))), SUM(CAST(x AS DECIMAL(9, 3))),
               SUM(DISTINCT i), AVG(DISTINCT CAST(x AS DECIMAL(9, 3))), COUNT(DISTINCT x), COUNT(*)
        FROM readings GROUP BY device, window(ts, '12 seconds', '4 seconds')""",
    "times without a zone": """
        SELECT device AS d, window, MAX(x) AS hi FROM
          (SELECT CAST(ts AS TIMESTAMP_NTZ) AS ts, device, x FROM readings)
        GROUP BY d, window(ts, '12 seconds', '4 seconds')""",
    "days of the session": """
        SELECT date_trunc('DAY', ts) AS day, device, COUNT(*) AS n FROM readings
        WHERE ts IS NOT NULL GROUP BY day, device
        UNION ALL
        SELECT date_trunc('HOUR', ts), device, COUNT(*) FROM readings
        WHERE ts IS NOT NULL GROUP BY ALL""",
}


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, (tuple(row.values()) for row in table.to_pylist())))


def in_duckdb(text: str) -> pa.Table:
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    connection.register("readings", readings())
    return connection.sql(text).to_arrow_table()


# Many events for a key: slices of few keys are regrouped from those of many.
CROWDED = weft.Statistics(rate=10_000.0, keys=4)


@pytest.mark.spark
@pytest.mark.parametrize(
    "statement", {**QUERIES, **OF_SPARK, **WITH_TABLES}.values(),
    ids=[*QUERIES, *OF_SPARK, *WITH_TABLES],
)  # fmt: skip
def test_any_query_is_rewritten_block_by_block(spark: SparkSession, statement: str) -> None:
    frame = to_spark(readings(), spark)
    known = {"readings": frame} if statement in WITH_TABLES.values() else {}
    with views(spark, {"readings": frame}):
        wanted = spark.sql(in_sparks_words(statement) or statement)
        text = weft.rewrite(statement, statistics=CROWDED, **known)
        assert "weft_block_0" in text
        got = spark.sql(text)
        assert [d[:2] for d in described(got)] == [d[:2] for d in described(wanted)]
        statement_check.assert_same_rows(got, statement_check.said(wanted), ordered=False)
    if statement in QUERIES.values():
        other = in_duckdb(weft.rewrite(statement, "duckdb", statistics=CROWDED))
        assert other.column_names == wanted.columns
        table = wanted.toArrow()
        assert rows_of(other.cast(table.schema)) == rows_of(table)


def test_sets_of_fewer_keys_are_regrouped_in_the_text() -> None:
    text = weft.rewrite(QUERIES["grouping sets"], statistics=CROWDED)
    assert text.count("FROM weft_events_0") == 1
    assert text.count("FROM weft_0_0_level_1\n") == 3


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (
            "SELECT window(ts, '1 minute') AS w, MAX(v) + 1 AS m FROM r GROUP BY w",
            "-- block 1 is left: names of columns take the table to know",
        ),
        (
            "SELECT MAX(v) AS m FROM r GROUP BY window(ts, '1 minute')",
            "-- block 1 is left: no other block has its events and keys",
        ),
        (
            "SELECT MAX(v) + 1 FROM r GROUP BY window(ts, '2 minutes', '1 minute')",
            "name them with AS, or give the table",
        ),
        (
            "SELECT mode(v) AS c FROM r GROUP BY window(ts, '2 minutes', '1 minute')",
            "tally(weft_c0) cannot be written as plain SQL",
        ),
        (
            "SELECT COUNT(*) AS n FROM r GROUP BY session_window(ts, '1 minute')",
            "-- block 1 is left: no other block has its events and keys",
        ),
        ("SELECT * FROM r TABLESAMPLE (5 ROWS)", "SELECT"),
    ],
)
def test_what_is_not_shared_stays_as_it_is(statement: str, reason: str) -> None:
    text = weft.rewrite(statement)
    assert reason in text
    assert text.splitlines()[-1] == statement
    with pytest.raises(weft.UnsupportedError, match=r"another engine|no block") as refused:
        weft.rewrite(
            "SELECT 1" if "SAMPLE" in statement else f"{statement} HAVING first(v) > 1", "duckdb"
        )
    assert "hint: " in str(refused.value)


def test_several_statements_keep_their_names() -> None:
    text = weft.rewrite(
        "-- name: a\nSELECT COUNT(*) AS n FROM r GROUP BY window(ts, '2 minutes', '1 minute');"
        "-- name: b\nSELECT MAX(v) AS top FROM r GROUP BY window(ts, '2 minutes')"
    )
    assert [line for line in text.splitlines() if line.startswith("-- name")] == [
        "-- name: a",
        "-- name: b",
    ]
    assert text.count(";") == 2


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "SELECT COUNT(*) AS n FROM r TIMESTAMP BY ts GROUP BY SessionWindow(minute, 1)",
            "SESSION 1m cannot be written as plain SQL\n"
            "hint: run the statement with weft.sql, which has every window",
        ),
        (
            "SELECT MEDIAN(v) AS n FROM r TIMESTAMP BY ts GROUP BY TumblingWindow(minute, 1)",
            "values(v) cannot be written as plain SQL\n"
            "hint: run the statement with weft.sql, which has every aggregate",
        ),
        (
            "SELECT COUNT(*) AS n FROM r [RANGE 1 MINUTE SLIDE 1 MINUTE]",
            "the event time of 'r' is not named\nhint: name it: window(ts, ...) or TIMESTAMP BY ts",
        ),
    ],
)
def test_what_plain_sql_cannot_say(statement: str, message: str) -> None:
    with pytest.raises(weft.WeftError) as refused:
        weft.rewrite(statement)
    assert str(refused.value) == message


def test_unknown_dialects_and_tables_of_others_are_refused() -> None:
    with pytest.raises(weft.QueryError, match="unknown dialect 'oracle'"):
        weft.rewrite("SELECT COUNT(*) AS n FROM r GROUP BY window(ts, '1 minute')", "oracle")
    with pytest.raises(weft.QueryError, match="not DataFrames of Spark"):
        weft.rewrite("SELECT * FROM r", r=readings())
