"""Rows and types are those of stock Spark: its own windows, united, on either strategy."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import weft
from sampling import examples
from weft import agg
from weft.engines.spark.session import to_spark
from weft.plan import STRATEGIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
S = 1_000_000


def readings(rows: int = 400, keys: int = 3) -> pa.Table:
    random = np.random.default_rng(1)
    times = 1_700_000_000 * S + random.integers(0, 600 * S, rows)
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(random.integers(0, keys, rows)),
            "v": pa.array(random.normal(20, 5, rows)),
        }
    )


def stock(frame: DataFrame, windows: list[tuple[str, str, str]]) -> DataFrame:
    """Spark's own way: one aggregation per window, united."""
    parts = [
        frame.groupBy("k", F.window("ts", *window)).agg(
            F.count("*").alias("n"),
            F.sum("v").alias("s"),
            F.min("v").alias("lo"),
            F.avg("v").alias("mean"),
            F.stddev("v").alias("sd"),
        )
        for window in windows
    ]
    return reduce(lambda a, b: a.union(b), parts).selectExpr(
        "k",
        "window.start AS window_start",
        "window.end AS window_end",
        "n",
        "s",
        "lo",
        "mean",
        "sd",
    )


def assert_as_stock(frame: DataFrame, windows: list[tuple[str, str, str]], strategy: str) -> None:
    result = weft.aggregate(
        frame,
        time="ts",
        by=["k"],
        windows={str(i): weft.hopping(*w) for i, w in enumerate(windows)},
        aggs={
            "n": agg.count(),
            "s": agg.sum("v"),
            "lo": agg.min("v"),
            "mean": agg.avg("v"),
            "sd": agg.stddev("v"),
        },
        strategy=strategy,
    )
    order = [("window_end", "ascending"), ("window_start", "ascending"), ("k", "ascending")]
    got = result.drop("window").toArrow().sort_by(order)
    wanted = stock(frame, windows).toArrow().sort_by(order)
    assert got.schema.names == wanted.schema.names
    assert got.schema.types == wanted.schema.types
    for name in ("k", "window_start", "window_end", "n", "lo"):
        assert got[name] == wanted[name]
    for name in ("s", "mean", "sd"):
        np.testing.assert_allclose(got[name], wanted[name], rtol=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_are_those_of_stock_spark(spark: SparkSession, strategy: str) -> None:
    windows = [
        ("20 seconds", "20 seconds", "0 seconds"),
        ("60 seconds", "60 seconds", "7 seconds"),
        ("50 seconds", "20 seconds", "0 seconds"),
    ]
    assert_as_stock(to_spark(readings(), spark), windows, strategy)


@settings(max_examples=examples(3), deadline=None)
@given(
    shapes=st.sets(
        st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 11)),
        min_size=1,
        max_size=4,
    ),
    strategy=st.sampled_from(STRATEGIES),
)
def test_rows_of_random_windows_are_those_of_stock_spark(
    spark: SparkSession, shapes: set[tuple[int, int, int]], strategy: str
) -> None:
    pairs = {(5 * max(a, b), 5 * min(a, b), c % (5 * min(a, b))) for a, b, c in shapes}
    windows = [(f"{r} seconds", f"{s} seconds", f"{o} seconds") for r, s, o in sorted(pairs)]
    assert_as_stock(to_spark(readings(), spark), windows, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sessions_are_those_of_stock_spark(spark: SparkSession, strategy: str) -> None:
    frame = to_spark(readings(100), spark)
    result = weft.aggregate(
        frame,
        time="ts",
        by=["k"],
        windows={"s": weft.session("5 seconds")},
        aggs={"n": agg.count()},
        strategy=strategy,
    )
    wanted = frame.groupBy("k", F.session_window("ts", "5 seconds")).agg(F.count("*").alias("n"))
    wanted = wanted.selectExpr(
        "k", "session_window.start AS window_start", "session_window.end AS window_end", "n"
    )
    order = [("window_start", "ascending"), ("k", "ascending")]
    got = result.drop("window").toArrow().sort_by(order)
    assert got == wanted.toArrow().sort_by(order)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_types_are_those_of_stock_spark(spark: SparkSession, strategy: str) -> None:
    frame = spark.sql(
        "SELECT timestamp'2024-01-01' AS ts, cast(i AS int) AS i, cast(i AS smallint) AS s, "
        "cast(i / 7 AS decimal(12, 2)) AS d, cast(i AS float) AS f FROM range(1, 33) AS t(i)"
    )
    asked = {"sum": agg.sum, "avg": agg.avg, "min": agg.min}
    aggs = {f"{f}_{c}": call(c) for c in "isdf" for f, call in asked.items()}
    windows = {"1h": weft.tumbling("1 hour"), "2h": weft.tumbling("2 hours")}
    aggs |= {"n": agg.count("i")}
    got = weft.aggregate(frame, time="ts", windows=windows, aggs=aggs, strategy=strategy)
    functions = [getattr(F, f)(c).alias(f"{f}_{c}") for c in "isdf" for f in asked]
    wanted = frame.agg(*functions, F.count("i").alias("n"))
    result = got.drop("window", "window_start", "window_end")
    assert [f.dataType for f in result.schema] == [f.dataType for f in wanted.schema]
    (expected,) = wanted.collect()
    assert [tuple(row) for row in result.collect()] == [tuple(expected)] * 2
