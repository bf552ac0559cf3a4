"""Random statements, made of blocks in every place a block can stand, against stock Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from engines.spark import statement_tables
from engines.spark.statement_check import assert_same, said, views
from sampling import examples
from weft.statement import run_statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# Expressions that are keys, each with the name it is selected under.
KEYS = ("device AS k", "upper(site) AS k", "status AS k", "CASE WHEN temp > 25 THEN 'hot' END AS k")
WINDOWS = (
    "window(ts, '1 hour')",
    "window(ts, '90 minutes', '30 minutes')",
    "window(ts, '6 hours', '2 hours', '20 minutes')",
    "window(ts, '1 day', '7 hours')",
    "session_window(ts, '45 minutes')",
)
VALUES = (
    "COUNT(*)",
    "COUNT(DISTINCT site)",
    "SUM(temp)",
    "AVG(hum)",
    "MAX(temp) - MIN(temp)",
    "COUNT_IF(status = 'ok')",
    "SUM(temp) FILTER (WHERE status <> 'fail')",
    "coalesce(STDDEV(temp), 0)",
    "CASE WHEN COUNT(temp) > 2 THEN MIN(temp) ELSE 0 END",
    "SUM(size(tags))",
    "ROUND(VAR_POP(temp), 3)",
    "MAX_BY(temp, struct(ts, temp))",
    "percentile(temp, 0.5)",
)
CONDITIONS = (
    "temp > 20",
    "status = 'ok'",
    "device IS NOT NULL",
    "site IN ('berlin', 'osaka')",
    "meta.ver <> 0 AND 10 / meta.ver > 1",
    "ts >= TIMESTAMP '2024-03-29 20:00:00'",
)
HAVINGS = (
    "COUNT(*) > 1",
    "v1 IS NOT NULL",
    "MAX(temp) > 20 OR k IS NULL",
    "v1 > 2 AND k IS NOT NULL",
)
RELATIONS = (
    "readings",
    "readings AS r",
    "base",
    "(SELECT * FROM readings WHERE temp IS NOT NULL) AS s",
    "readings JOIN (SELECT device AS known, owner FROM devices) d ON device = known",
    "readings LATERAL VIEW OUTER explode(tags) e AS tag",
)
WITH_BASE = "base AS (SELECT * FROM readings WHERE hum > 35)"


@st.composite
def blocks(draw: st.DrawFn) -> str:
    """A SELECT with columns k, s (the start of its window), v1 and v2."""
    key = draw(st.sampled_from(KEYS))
    window = draw(st.sampled_from(WINDOWS))
    name = window.partition("(")[0]
    first, second = (draw(st.sampled_from(VALUES)) for _ in range(2))
    text = f"SELECT {key}, {name}.start AS s, {first} AS v1, {second} AS v2"
    text += f" FROM {draw(st.sampled_from(RELATIONS))}"
    kept = draw(st.lists(st.sampled_from(CONDITIONS), max_size=2, unique=True))
    if kept:
        text += f" WHERE {' AND '.join(kept)}"
    by = draw(st.sampled_from((key.removesuffix(" AS k"), "1")))
    grouped = draw(st.sampled_from(("{}", "{}", "{}", "ROLLUP ({})", "CUBE ({}, status)")))
    text += f" GROUP BY {grouped.format(by)}, {window}"
    # Spark takes no aggregate in HAVING of grouping sets that it has not selected as well.
    havings = HAVINGS if grouped == "{}" else ()
    having = draw(st.sampled_from((None, None, *havings)))
    return text + (f" HAVING {having}" if having else "")


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A statement over some blocks: alone, united, joined, aggregated once more, or filtered by."""
    some = [draw(blocks()) for _ in range(draw(st.integers(2, 3)))]
    form = draw(st.sampled_from(("union", "join", "with", "again", "in", "over", "scalar")))
    if form == "union":
        words = draw(st.sampled_from((" UNION ALL ", " UNION ", " EXCEPT ")))
        body = words.join(some)
    elif form == "join":
        sides = [f"({block}) AS b{i}" for i, block in enumerate(some)]
        ties = [f"b{i}.k <=> b0.k AND b{i}.s = b0.s" for i in range(1, len(sides))]
        kind = draw(st.sampled_from(("JOIN", "LEFT JOIN", "FULL OUTER JOIN")))
        body = f"SELECT b0.*, b1.v1 AS w1, b1.v2 * 2 AS w2 FROM {sides[0]}"
        body += "".join(
            f" {kind} {side} ON {tie}" for side, tie in zip(sides[1:], ties, strict=True)
        )
    elif form == "with":
        named = ", ".join(f"b{i} AS ({block})" for i, block in enumerate(some))
        picked = " UNION ALL ".join(
            f"SELECT k, s, v1 FROM b{i} WHERE v1 > 1" for i in range(len(some))
        )
        body = f"WITH {named} SELECT k, COUNT(*) AS n, MAX(v1) AS top FROM ({picked}) GROUP BY k"
    elif form == "again":
        body = (
            f"SELECT k, window.end AS until, SUM(v1) AS total FROM ({some[0]}) "
            "GROUP BY k, window(s, '1 day', '12 hours') UNION ALL "
            f"SELECT k, window.end, MAX(v2) FROM ({some[0]}) GROUP BY k, window(s, '2 days')"
        )
    elif form == "in":
        body = "SELECT DISTINCT upper(device) AS d FROM readings "
        body += f"WHERE device IN (SELECT k FROM ({some[0]})) "
        body += f"OR ts < (SELECT MAX(s) FROM ({some[1]}))"
    elif form == "over":
        # A total and a key that is NULL are alike but for their values.
        body = "SELECT k, s, v1, LAG(v1) OVER (PARTITION BY k ORDER BY s, v1) AS before "
        body += f"FROM ({some[0]}) UNION ALL SELECT k, s, v2, v1 FROM ({some[1]})"
    else:
        body = f"SELECT *, (SELECT MAX(v1) FROM ({some[1]})) AS top FROM ({some[0]})"
    return f"WITH {WITH_BASE} ({body})" if "FROM base" in body else body


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    return statement_tables.made(spark)


@settings(
    max_examples=examples(8),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=statements())
def test_compositions_give_what_spark_gives(
    spark: SparkSession, tables: dict[str, DataFrame], text: str
) -> None:
    note(text)
    with views(spark, tables):
        wanted = spark.sql(text)
        rows = said(wanted)
    results, notes = run_statements(text, tables)
    for told in notes:
        note(str(told))
    (got,) = results.values()
    assert_same(got, wanted, rows, ordered=False)
