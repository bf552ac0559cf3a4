"""Rolling windows over streams: rows of a batch, exact restarts, late rows that are counted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weft
from asked_features import assert_same_by_id
from weft.engines.spark.session import to_spark
from weft.engines.spark.streaming.columnar.strategy import ROCKS_STORE, stored_in
from weft.engines.spark.streaming.settings import setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Ran, Streams

pytestmark = pytest.mark.spark
S = 1_000_000
START_US = 1_700_000_000 * S
DELAY_S = 6
JOINED = weft.agg.custom(
    "joined_in_stream",
    lift=lambda q: str(q),
    combine=lambda a, b: a + b,
    lower=lambda text: text,
    identity="",
    commutative=False,
    idempotent=False,
)
ASKED: dict[str, Any] = {
    "time": "ts",
    "by": {"user": "user", "shop": "shop % 2"},
    "windows": {"5s": "5 seconds", "2m": "2 minutes", "last": weft.rows(3)},
    "aggs": {
        "n": weft.agg.count(),
        "some": weft.agg.count("x"),
        "total": weft.agg.sum("x"),
        "whole": weft.agg.sum("q * 2"),
        "lo": weft.agg.min("x"),
        "word": weft.agg.max("w"),
        "newest": weft.agg.last("q"),
        "kinds": weft.agg.count_distinct("w"),
        "middle": weft.agg.median("q"),
        "words": JOINED("q"),
    },
    "where": "q > -7",
}


def payments(rows: int, seed: int = 1) -> pa.Table:
    """Rows with ties, NULL times and keys, NaN, and a column that no feature reads."""
    draw = np.random.default_rng(seed)
    times = START_US + np.sort(draw.integers(0, 600, rows)) * S // 2
    x = draw.choice([1.5, -2.25, 3e-9, math.nan], rows, p=[0.4, 0.4, 0.19, 0.01])
    return pa.table(
        {
            "id": np.arange(rows),
            "user": pa.array(
                draw.choice(["ann", "bob", "eve"], rows), mask=draw.random(rows) < 0.1
            ),
            "shop": pa.array(draw.choice(3, rows), pa.int32()),
            "ts": pa.array(times, pa.timestamp("us", "UTC"), mask=draw.random(rows) < 0.03),
            "q": pa.array(draw.integers(-9, 9, rows), mask=draw.random(rows) < 0.1),
            "x": pa.array(x, mask=draw.random(rows) < 0.1),
            "w": pa.array(draw.choice(["red", "blue", "äther"], rows)),
            "note": pa.array([[i, None] for i in range(rows)]),
        }
    )


def disordered(rows: pa.Table) -> pa.Table:
    """Bring rows into an order in which they are late, but never by more than the delay."""
    times = rows["ts"].cast(pa.int64()).fill_null(START_US).to_numpy()
    late = np.random.default_rng(3).integers(0, DELAY_S * S, rows.num_rows)
    return rows.take(np.argsort(times + late, kind="stable"))


def complete(rows: pa.Table, seen: pa.Table) -> pa.Table:
    """Keep the rows that the last watermark over what was seen has passed."""
    latest_us = pc.max(seen["ts"].cast(pa.int64())).as_py()
    times = rows["ts"].cast(pa.int64())
    passed = pc.less(times, latest_us // 1000 * 1000 - DELAY_S * S)
    return rows.filter(pc.fill_null(passed, True))


def told(ran: Ran, figure: str) -> list[int]:
    observed = [p.observedMetrics["weft"] for p in ran.progress if "weft" in p.observedMetrics]
    return [one[figure] or 0 for one in observed]


@pytest.mark.usefixtures("rocks")
@pytest.mark.parametrize("round", [None, "20 seconds"])
def test_rows_of_a_stream_that_is_restarted_equal_a_batch(
    streams: Streams, spark: SparkSession, round: str | None
) -> None:
    # So many that what is alive is written anew, and events of whole slices are folded.
    rows = disordered(payments(4_500))
    streams.cut(rows.slice(0, 3_000), 3)
    asked = {**ASKED, "round": round}
    first = streams.ran(weft.rolling(streams.read(), watermark=f"{DELAY_S} seconds", **asked))
    for at in (3_000, 3_750):
        streams.append(rows.slice(at, 750))
    second = streams.ran(weft.rolling(streams.read(), watermark=f"{DELAY_S} seconds", **asked))
    want = weft.rolling(to_spark(rows, spark), **asked).toArrow()
    assert_same_by_id(pa.concat_tables([first.rows, second.rows]), complete(want, rows))
    assert first.rows.num_rows > 2_000
    assert second.rows.num_rows > 1_000
    assert sum(told(first, "late") + told(second, "late")) == 0
    assert max(told(second, "held_rows")) < 3_000


@pytest.mark.usefixtures("rocks")
def test_late_rows_are_dropped_and_counted_and_other_windows_are_refused(
    streams: Streams, spark: SparkSession
) -> None:
    times = [START_US + second * S for second in (0, 10, 100, 101, 1, 200, 300)]
    table = pa.table({"id": range(7), "ts": pa.array(times, pa.timestamp("us", "UTC"))})
    streams.cut(table.slice(0, 3), 1)
    for at, rows in ((3, 1), (4, 2), (6, 1)):
        streams.append(table.slice(at, rows))
    source = streams.read().withWatermark("ts", "20 seconds")
    asked: dict[str, Any] = {"windows": {"50s": "50 seconds"}, "aggs": {"n": weft.agg.count()}}
    ran = streams.ran(weft.rolling(source, **asked))
    assert ran.rows.sort_by("id").to_pydict() == {
        "id": [0, 1, 2, 3, 5],
        "ts": [table["ts"][i].as_py() for i in (0, 1, 2, 3, 5)],
        "n_50s": [1, 2, 1, 2, 1],
    }
    assert sum(told(ran, "late")) == 1
    # The state is that of the last range and of what waits, whatever came before.
    assert told(ran, "held_rows")[-1] <= 2
    streams.append(table.slice(6, 1))
    other = {**asked, "windows": {"60s": "60 seconds"}}
    refused = "of other rolling windows than those asked for"
    with pytest.raises(Exception, match=refused):
        streams.ran(weft.rolling(source, **other))
    # With other partitions keys would look for their events in other buckets.
    with (
        setting(spark, "spark.sql.shuffle.partitions", "3"),
        pytest.raises(Exception, match=refused),
    ):
        streams.ran(weft.rolling(source, **asked))


def test_what_a_stream_needs_is_told(spark: SparkSession) -> None:
    asked: dict[str, Any] = {"windows": {"1m": "1 minute"}, "aggs": {"n": weft.agg.count()}}
    rate = spark.readStream.format("rate").load()
    with pytest.raises(weft.UnsupportedError, match="keeps its state in RocksDB"):
        weft.rolling(rate, **asked)
    with (
        stored_in(ROCKS_STORE, spark),
        pytest.raises(weft.QueryError, match="the stream 'events' has no watermark"),
    ):
        weft.rolling(rate, **asked)


def test_verify_proves_that_streams_batches_and_sessions_agree_ties_included(
    spark: SparkSession,
) -> None:
    rows = payments(300, seed=5)
    plan = weft.rolling(rows, explain=True, **ASKED)
    report = weft.verify(plan, {"events": rows}, ("reference", "local", "spark", "spark-stream"))
    assert report.ok, report.differences
    assert report.rows == 300
    assert report.engines[-3:] == ("spark-stream", "as_of", "session")


FRAMES = """
SELECT id, user, round(v, 1) AS v,
       SUM(v) OVER w AS hour, (SUM(v) OVER w) - v AS others,
       COUNT(*) OVER (PARTITION BY user ORDER BY ts RANGE BETWEEN INTERVAL 30 SECONDS PRECEDING
                      AND INTERVAL 5 SECONDS PRECEDING) AS earlier,
       MAX(v) OVER (PARTITION BY user ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS top
FROM r WHERE v > 1 AND ts IS NOT NULL
WINDOW w AS (PARTITION BY user ORDER BY ts
             RANGE BETWEEN INTERVAL 50 SECONDS PRECEDING AND CURRENT ROW)
"""


@pytest.mark.usefixtures("rocks")
def test_statements_with_frames_over_a_stream_give_the_rows_of_a_batch(
    streams: Streams, spark: SparkSession
) -> None:
    draw, rows = np.random.default_rng(8), 300
    times = START_US + np.arange(rows) * S + draw.integers(0, S, rows)
    table = pa.table(
        {
            "id": np.arange(rows),
            "user": pa.array(draw.choice(["ann", "bob"], rows)),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "v": pa.array(draw.normal(5.0, 3.0, rows)),
        }
    )
    streams.cut(table, 2)
    source = streams.read().withWatermark("ts", f"{DELAY_S} seconds")
    found = weft.sql(FRAMES, r=source)
    want = spark.sql(FRAMES.replace("FROM r", "FROM {r}"), r=to_spark(table, spark)).toArrow()
    assert found.columns == want.column_names
    # Spark filters before it looks for the latest time.
    kept = table.filter(pc.greater(table["v"], 1.0))
    seen = complete(kept, kept)["id"]
    want = want.filter(pc.is_in(want["id"], seen.combine_chunks()))
    assert_same_by_id(streams.ran(found).rows, want)
    with pytest.raises(weft.QueryError, match="has no watermark"):
        weft.sql(FRAMES, r=streams.read())
    # Rows without a time are peers of one another: none of them is ever complete.
    timeless = kept.slice(0, 1).set_column(2, "ts", pa.array([None], table["ts"].type))
    streams.cut(timeless, 1, "timeless")
    source = streams.read("timeless").withWatermark("ts", "1 second")
    found = weft.sql(FRAMES.replace("AND ts IS NOT NULL", ""), r=source)
    with pytest.raises(Exception, match="has no time to be ordered by"):
        streams.ran(found, checkpoint="timeless_checkpoint")
