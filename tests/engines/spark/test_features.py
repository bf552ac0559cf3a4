"""Windows at anchors on Spark: equal to the local engine, to stock frames and to a stock join."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import weft
from asked_features import assert_same_by_id
from weft.engines.spark.anchors.executor import Described, TrailStream
from weft.engines.spark.session import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
SECOND = 1_000_000
JOINED = weft.agg.custom(
    "joined_words",
    lift=lambda q: str(q),
    combine=lambda a, b: a + b,
    lower=lambda text: text,
    identity="",
    commutative=False,
    idempotent=False,
)
AGGS = {
    "n": weft.agg.count(),
    "some": weft.agg.count("x"),
    "total": weft.agg.sum("x"),
    "whole": weft.agg.sum("q"),
    "mean": weft.agg.avg("q"),
    "spread": weft.agg.stddev("q"),
    "lo": weft.agg.min("x"),
    "word": weft.agg.max("w"),
    "newest": weft.agg.last("q"),
    "kinds": weft.agg.count_distinct("w"),
    "about": weft.agg.approx_count_distinct("q"),
    "middle": weft.agg.median("q"),
    "near": weft.agg.approx_percentile("q", 0.9),
    "twice": weft.agg.sum("q * 2"),
    "words": JOINED("q"),
}
WINDOWS = {"5s": "5 seconds", "40s": "40 seconds", "10m": "10 minutes", "last": weft.rows(3)}


def events(rows: int, seed: int, span_s: int = 300) -> pa.Table:
    """Events with ties, NULL times and keys, NaN and infinity; `id` numbers them."""
    draw = np.random.default_rng(seed)
    times = draw.choice(span_s * SECOND // 500_000, rows) * 500_000 + draw.choice([0, 0, 1], rows)
    x = draw.choice(
        [1.5, -2.25, 1e16, -1e16, 3e-9, math.nan, math.inf],
        rows,
        p=[0.3, 0.3, 0.1, 0.1, 0.18, 0.01, 0.01],
    )
    return pa.table(
        {
            "id": np.arange(rows),
            "user": pa.array(
                draw.choice(["ann", "bob", "eve", "joe"], rows), mask=draw.random(rows) < 0.1
            ),
            "shop": pa.array(draw.choice(3, rows), pa.int32()),
            "ts": pa.array(times, pa.timestamp("us", "UTC"), mask=draw.random(rows) < 0.03),
            "q": pa.array(draw.integers(-9, 9, rows), mask=draw.random(rows) < 0.1),
            "x": pa.array(x, mask=draw.random(rows) < 0.1),
            "w": pa.array(draw.choice(["red", "blue", "äther"], rows)),
        }
    )


def distinct_times(table: pa.Table) -> pa.Table:
    """Without ties: what the order of one instant decides is the same on all engines."""
    times = pa.array(np.arange(table.num_rows) * 700_001, pa.timestamp("us", "UTC"))
    return table.set_column(table.column_names.index("ts"), "ts", times)


@pytest.mark.parametrize("closed", ["both", "left", "right", "neither"])
def test_rolling_equals_the_local_engine(spark: SparkSession, closed: Any) -> None:
    ranges = {name: window for name, window in WINDOWS.items() if name != "last"}
    aggs = {name: call for name, call in AGGS.items() if name != "words"}
    options = {"time": "ts", "by": ["user", "shop"], "windows": ranges, "aggs": aggs}
    rows = events(700, 1)
    got = weft.rolling(to_spark(rows, spark), closed=closed, where="q > -7", **options).toArrow()
    assert_same_by_id(got, weft.rolling(rows, closed=closed, where="q > -7", **options))


@pytest.mark.parametrize("by", [["user"], [], {"user": "lower(user)"}])
def test_what_depends_on_order_equals_the_local_engine(spark: SparkSession, by: Any) -> None:
    rows = distinct_times(events(400, 2))
    options = {"time": "ts", "by": by, "windows": WINDOWS, "aggs": AGGS}
    got = weft.rolling(to_spark(rows, spark), **options).toArrow()
    assert_same_by_id(got, weft.rolling(rows, **options))


@pytest.mark.parametrize("closed", ["left", "both"])
def test_as_of_equals_the_local_engine(spark: SparkSession, closed: Any) -> None:
    known = distinct_times(events(900, 3, span_s=600))
    points = events(200, 4, span_s=600).select(["id", "user", "ts", "shop"])
    points = points.append_column("list", pa.array([[i, None] for i in range(200)]))
    points = points.rename_columns(["id", "user", "at", "shop", "list"])
    options = {"time": "ts", "at": "at", "windows": WINDOWS, "aggs": AGGS, "closed": closed}
    for by in (["user"], ["user", "shop"], {"shop": "q"}):
        got = weft.as_of(to_spark(points, spark), to_spark(known, spark), by=by, **options)
        assert_same_by_id(got.toArrow(), weft.as_of(points, known, by=by, **options))


def test_several_sources_meet_points_by_keys_of_their_own(spark: SparkSession) -> None:
    sources = {name: events(500, seed) for name, seed in (("a", 5), ("b", 6), ("c", 7))}
    points = events(150, 8).select(["id", "user", "shop", "ts"])

    def asked(tables: dict[str, Any]) -> dict[str, weft.Events]:
        counted = {"n": weft.agg.count(), "x": weft.agg.sum("q")}
        return {
            "a": weft.Events(tables["a"], by=["user"], aggs=counted),
            "b": weft.Events(tables["b"], by=["shop"], aggs=counted, round="4 seconds"),
            "c": weft.Events(tables["c"], by=["user"], aggs=counted, where="q > 0", closed="both"),
        }

    options = {"time": "ts", "at": "ts", "windows": {"20s": "20 seconds", "1m": "1 minute"}}
    frames = {name: to_spark(table, spark) for name, table in sources.items()}
    got = weft.as_of(to_spark(points, spark), asked(frames), **options)
    # Those of one set of keys share a shuffle.
    assert executed(got).count("Exchange hashpartitioning") == 2
    assert_same_by_id(got.toArrow(), weft.as_of(points, asked(sources), **options))


def executed(frame: DataFrame) -> str:
    text: str = frame._jdf.queryExecution().simpleString()
    return text


def test_rolling_equals_a_stock_frame(spark: SparkSession) -> None:
    data = to_spark(events(800, 9), spark).where("ts IS NOT NULL AND NOT isnan(x) AND x < 1e300")
    got = weft.rolling(
        data,
        time="ts",
        by=["user"],
        windows={"40s": "40 seconds"},
        aggs={"n": weft.agg.count(), "lo": weft.agg.min("x"), "whole": weft.agg.sum("q")},
    )
    stamped = data.withColumn("us", F.unix_micros("ts"))
    frame = Window.partitionBy("user").orderBy("us").rangeBetween(-40 * SECOND, 0)
    want = stamped.select(
        *data.columns,
        F.count(F.lit(1)).over(frame).alias("n_40s"),
        F.min("x").over(frame).alias("lo_40s"),
        F.sum("q").over(frame).alias("whole_40s"),
    )
    assert_same_by_id(got.toArrow(), want.toArrow())


def test_as_of_equals_a_stock_join(spark: SparkSession) -> None:
    known = to_spark(events(600, 10), spark)
    points = to_spark(events(120, 11).select(["id", "user", "ts"]), spark)
    got = weft.as_of(
        points,
        known,
        time="ts",
        at="ts",
        by=["user"],
        windows={"40s": "40 seconds"},
        aggs={"n": weft.agg.count(), "whole": weft.agg.sum("q")},
    )
    p, e = points.alias("p"), known.alias("e")
    on = "p.user <=> e.user AND e.ts >= p.ts - INTERVAL 40 SECONDS AND e.ts < p.ts"
    joined = p.join(e, F.expr(on), "left").groupBy("p.id", "p.user", "p.ts")
    want = joined.agg(F.count("e.ts").alias("n_40s"), F.sum("e.q").alias("whole_40s"))
    assert_same_by_id(got.toArrow(), want.toArrow())


def test_an_executor_keeps_what_later_points_need_and_no_more(spark: SparkSession) -> None:
    rows = 20_000
    data = pa.table(
        {
            "p0": np.arange(rows),
            "time": np.arange(rows) * SECOND,
            "a0": np.ones(rows),
        }
    )
    plan = weft.rolling(
        pa.table({"time": [0], "a0": [1.0]}),
        time="time",
        windows={"1m": "1 minute", "last": weft.rows(5)},
        aggs={"s": weft.agg.sum("a0")},
        explain=True,
    )
    outputs = tuple((0, at, call) for _, at, call in plan.features.outputs)
    types = (pa.float64(), pa.float64())
    stream = TrailStream(Described((), True, ("p0",), (list(plan.trails),), outputs, types))
    found = []
    for start in range(0, rows, 1_000):
        found.append(stream.process(data.slice(start, 1_000)))
        assert stream.held <= 62  # a minute, and the last row, whose peers may come
    found.append(stream.process(None, final=True))
    made = pa.concat_tables(found)
    assert made["p0"].to_pylist() == list(range(rows))
    assert made["f0"].to_pylist() == [min(i + 1, 61) for i in range(rows)]
    assert made["f1"].to_pylist() == [min(i + 1, 5) for i in range(rows)]


def test_functions_that_spark_alone_knows_are_taken(spark: SparkSession) -> None:
    data = to_spark(events(60, 12), spark)
    found = weft.rolling(
        data,
        time="ts",
        by={"letter": "substring_index(w, 'e', 1)"},
        windows={"1m": "1 minute"},
        aggs={"bits": weft.agg.sum("bit_count(q)")},
        where="q BETWEEN -8 AND 8",
    )
    assert found.schema["bits_1m"].dataType.simpleString() == "bigint"
    assert found.count() == 60


def test_inputs_that_an_aggregate_does_not_take_are_refused(spark: SparkSession) -> None:
    data = to_spark(events(5, 1), spark)
    with pytest.raises(weft.QueryError, match=r"sum\(w\) cannot be computed: w is of type string"):
        weft.rolling(data, time="ts", windows={"1m": "1 minute"}, aggs={"s": weft.agg.sum("w")})


def test_features_of_points_take_no_stream(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    asked = {"windows": {"1m": "1 minute"}, "aggs": {"n": weft.agg.count()}}
    with pytest.raises(weft.UnsupportedError, match="the points are a stream"):
        weft.as_of(stream.limit(0), stream, at="timestamp", **asked)


def test_keys_of_other_types_are_refused(spark: SparkSession) -> None:
    rows = to_spark(events(5, 1), spark)
    points = rows.selectExpr("id", "ts", "CAST(shop AS string) AS shop")
    with pytest.raises(weft.DataError, match="'shop' is of type string in the points"):
        weft.as_of(
            points,
            rows,
            time="ts",
            at="ts",
            by=["shop"],
            windows={"1m": "1 minute"},
            aggs={"n": weft.agg.count()},
        )
