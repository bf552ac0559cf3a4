"""Functions OVER frames through the front door: what Spark gives, and what it cannot give."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

import weft
from engines.spark.statement_check import assert_same, views
from engines.spark.test_features import distinct_times, events
from weft.engines.spark.session import to_spark
from weft.statement import run_statements
from weft.statement.notes import OverNote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
HOUR = "PARTITION BY user ORDER BY ts RANGE BETWEEN INTERVAL 40 SECONDS PRECEDING AND CURRENT ROW"
ROWS = "PARTITION BY user, shop ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW"

# A statement, and how many of its functions OVER frames, equal ones once, are taken over.
STATEMENTS = {
    "many aggregates and ranges beside a star": (
        f"""SELECT *, COUNT(*) OVER ({HOUR}) AS n, SUM(q) OVER ({HOUR}) AS s, AVG(q) OVER ({HOUR}),
            MIN(w) OVER ({HOUR}) lo, MAX(ts) OVER ({HOUR}) hi, STDDEV(q) OVER ({HOUR}) sd,
            COUNT(q) FILTER (WHERE q > 0) OVER ({HOUR}) some, BIT_XOR(q) OVER ({HOUR}) bits,
            BOOL_OR(q > 3) OVER ({HOUR}) AS any, PERCENTILE(q, 0.25) OVER ({HOUR}) AS p,
            COUNT_IF(q < 0) OVER (PARTITION BY user ORDER BY ts RANGE INTERVAL '5' SECOND PRECEDING)
            FROM t""",
        11,
    ),
    "rows and ranges that end before their row": (
        """SELECT id, SUM(q) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '60' SECOND PRECEDING
                                   AND INTERVAL '10' SECOND PRECEDING) AS before,
            SUM(id) OVER (PARTITION BY shop ORDER BY id ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING) r,
            COUNT(q) OVER (PARTITION BY shop ORDER BY id ROWS 2 PRECEDING) AS last3
           FROM t WHERE shop > 0""",
        3,
    ),
    "orders of other kinds": (
        """SELECT id, SUM(q) OVER (PARTITION BY user ORDER BY shop RANGE 1 PRECEDING) AS a,
            SUM(q) OVER (PARTITION BY user ORDER BY ts DESC
                         RANGE BETWEEN INTERVAL 20 SECONDS PRECEDING AND CURRENT ROW) AS b,
            SUM(q) OVER (PARTITION BY user ORDER BY ts NULLS LAST
                         RANGE BETWEEN INTERVAL 20 SECONDS PRECEDING AND CURRENT ROW) AS c,
            SUM(q) OVER (PARTITION BY x ORDER BY CAST(ts AS DATE) RANGE 1 PRECEDING) AS d,
            SUM(q) OVER (PARTITION BY CAST(shop AS DECIMAL(5,1)) ORDER BY q + 1 RANGE 2 PRECEDING),
            SUM(q) OVER (PARTITION BY user ORDER BY id DESC RANGE 5 PRECEDING) AS f
           FROM t""",
        5,
    ),
    "what is left stays with Spark in the same statement": (
        f"""SELECT id, RANK() OVER (PARTITION BY user ORDER BY ts, id) AS place,
            SUM(q) OVER ({HOUR}) AS s, LAG(q) OVER (PARTITION BY user ORDER BY id) AS l,
            SUM(q) OVER (PARTITION BY user ORDER BY ts) AS running, SUM(q) OVER () AS whole,
            SUM(q) OVER (PARTITION BY user ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) m,
            SUM(q) OVER (PARTITION BY user ORDER BY ts
                         RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS month,
            APPROX_COUNT_DISTINCT(q) OVER ({ROWS}) AS about
           FROM t""",
        1,
    ),
    "expressions, aliases, a named window, order and limit": (
        f"""SELECT id, q * 2 AS twice, ROUND(SUM(q) OVER w / COUNT(*) OVER w, 2) AS mean,
            SUM(q * 2) OVER w AS doubled, doubled - twice AS others,
            CASE WHEN COUNT(*) OVER w > 2 THEN 'many' ELSE w END AS kind,
            q - (SELECT MAX(q) FROM t) + MAX(q) OVER w AS d,
            AGGREGATE(SEQUENCE(1, shop + 1), 0, (a, b) -> a + b) AS steps
           FROM t AS r WINDOW w AS ({ROWS}) ORDER BY doubled DESC, r.id LIMIT 50""",
        4,
    ),
    "qualify and distinct": (
        f"""SELECT DISTINCT user, MAX(q) OVER ({HOUR}) AS top FROM t
            QUALIFY COUNT(*) OVER ({HOUR}) > 3 AND top > -2""",
        2,
    ),
    "over groups, in a subquery, under a join and a union": (
        """WITH daily AS (SELECT user, shop, SUM(q) AS total FROM t WHERE id < 300
                          GROUP BY user, shop HAVING COUNT(*) > 1),
            rolled AS (SELECT user, shop, SUM(total) OVER (PARTITION BY user ORDER BY shop
                              RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS two FROM daily)
           SELECT r.*, s.best FROM rolled r LEFT JOIN
             (SELECT shop, MAX(SUM(q)) OVER (ORDER BY shop ROWS 1 PRECEDING) AS best
              FROM t GROUP BY shop) s USING (shop)
           UNION ALL SELECT shop, user, two, 0 FROM rolled WHERE two > 0""",
        2,
    ),
    "over the results of a shared block": (
        """SELECT shop, window.start AS at, SUM(COUNT(*)) OVER (PARTITION BY shop
             ORDER BY window.start RANGE INTERVAL 30 SECONDS PRECEDING) AS n
           FROM t GROUP BY shop, window(ts, '20 seconds', '10 seconds')""",
        1,
    ),
    "decimals, dates and booleans": (
        f"""SELECT SUM(CAST(q AS DECIMAL(7,2))) OVER ({ROWS}) AS d, AVG(CAST(q AS DECIMAL(7,2)))
             OVER ({ROWS}) AS a, MIN(CAST(ts AS DATE)) OVER ({ROWS}) AS m, MAX(q > 0) OVER ({ROWS}),
             BOOL_AND(q > -9) OVER ({ROWS}) AS b, SUM(CAST(q AS INT)) OVER ({ROWS}) AS i,
             named_struct('a', q, 'b', array(w)) AS s, MAX_BY(w, id) OVER ({ROWS}) AS newest
            FROM t""",
        7,
    ),
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    return {"t": to_spark(events(500, 11), spark).cache()}


def counted(notes: tuple[object, ...]) -> int:
    return sum(note.taken for note in notes if isinstance(note, OverNote))


@pytest.mark.parametrize("name", STATEMENTS)
def test_frames_give_what_spark_gives(
    name: str, spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    sql, taken = STATEMENTS[name]
    with views(spark, tables):
        wanted = spark.sql(sql)
        wanted.collect()
    results, notes = run_statements(sql, tables)
    (got,) = results.values()
    assert counted(notes) == taken, "\n".join(map(str, notes))
    assert_same(got, wanted, ordered="LIMIT 50" in sql)


def test_frames_that_spark_refuses_are_those_of_rolling(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    weft.agg.custom(
        "wordy",
        lift=lambda w: str(w),
        combine=lambda a, b: max(a, b, key=lambda s: (len(s), s)),
        lower=lambda text: text,
        identity="",
        commutative=True,
        idempotent=True,
    )
    rows = distinct_times(events(300, 12))
    frame = to_spark(rows, spark)
    with caplog.at_level(logging.INFO, "weft"):
        got = weft.sql(
            f"""SELECT id, COUNT(DISTINCT w) OVER ({HOUR}) AS kinds, MEDIAN(q) OVER ({HOUR}) AS mid,
                PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY q) OVER ({HOUR}) AS high,
                WORDY(w) OVER ({HOUR}) AS words,
                SUM(q) OVER (PARTITION BY user ORDER BY ts RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING
                             AND INTERVAL 10 SECONDS PRECEDING) AS earlier
               FROM t""",
            t=frame,
        ).toArrow()
    assert "is taken over" in caplog.text
    aggs = {
        "kinds": weft.agg.count_distinct("w"),
        "mid": weft.agg.median("q"),
        "high": weft.agg.percentile("q", 0.9),
        "words": "wordy(w)",
    }
    asked = {"time": "ts", "by": ["user"], "windows": {"w": "40 seconds"}}
    want = weft.rolling(rows, aggs=aggs, **asked)
    order = {name: got.sort_by("id")[name].to_pylist() for name in got.column_names}
    for name in aggs:
        assert order[name] == want[f"{name}_w"].to_pylist(), name


def test_a_statement_that_neither_takes_is_refused_as_spark_does(spark: SparkSession) -> None:
    frame = to_spark(events(10, 13), spark)
    with pytest.raises(weft.QueryError, match="Distinct window functions are not supported"):
        weft.sql("SELECT COUNT(DISTINCT w) OVER (ORDER BY ts) AS n FROM t", t=frame)


@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
def test_days_of_a_zone_are_sparks(zone: str, spark: SparkSession) -> None:
    frame = to_spark(events(60, 14), spark)
    sql = "SELECT SUM(q) OVER (ORDER BY ts RANGE INTERVAL {} PRECEDING) AS s FROM t"
    for length, taken in (("1 DAY", 0), ("23 HOURS", 1)):
        results, notes = run_statements(sql.format(length), {"t": frame})
        assert counted(notes) == taken
        with views(spark, {"t": frame}):
            assert_same(results["q1"], spark.sql(sql.format(length)), ordered=False)


def test_explain_says_what_is_taken_over(tables: dict[str, DataFrame]) -> None:
    sql = (
        f"SELECT SUM(q) OVER ({HOUR}) AS s, RANK() OVER (PARTITION BY user ORDER BY ts) AS r FROM t"
    )
    text = str(weft.explain(sql, **tables))
    assert f"SUM(q) OVER ({HOUR}) is taken over" in text
    assert "RANK() OVER (PARTITION BY user ORDER BY ts) runs as Spark runs it" in text
    assert "TRAIL 40s [t-40s, t]" in text
