"""`weft.start`: several queries and sinks from one read, restarts, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

import weft
from weft import agg
from weft.engines.spark.streaming.sinks import TableSink
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
S = 1_000_000


def workload_of(*queries: weft.Query) -> weft.Workload:
    return weft.Workload(queries)


LOWS = weft.Query(
    "lows",
    source="r",
    time="ts",
    keys=["k"],
    windows={"20s": weft.tumbling("20 seconds"), "1m": weft.tumbling("1 minute")},
    aggs={"lo": agg.min("v")},
    watermark="5 seconds",
)
COUNTS = weft.Query(
    "counts",
    source="r",
    time="ts",
    keys={"warm": "v > 20", "k": "k"},
    where="k < 2",
    windows={"30s": weft.hopping("30 seconds", "10 seconds")},
    aggs={"n": agg.count(), "mean": agg.avg("v")},
    watermark="5 seconds",
)


def expected(streams: Any, query: weft.Query, events: pa.Table) -> pa.Table:
    rows = weft.run(workload_of(query), {"r": events}, engine="reference")
    return streams.closed(rows, 5 * S)


def test_a_session_that_weft_starts_does_not_plan_anew_after_every_exchange(
    spark: SparkSession,
) -> None:
    if is_remote():
        pytest.skip("a server keeps its own settings")
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"


def test_two_queries_with_other_keys_and_filters_read_the_source_once(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 3)
    collected: list[pa.Table] = []

    def collect(rows: DataFrame, batch_id: int) -> None:
        collected.append(rows.toArrow())

    started = weft.start(
        workload_of(LOWS, COUNTS),
        {"r": streams.read()},
        sinks={"lows": streams.place / "lows", "counts": collect},
        checkpoint=streams.place / "checkpoint",
        trigger="once",
        planner="slice",
        strategy="native",
    )
    started.awaitTermination()
    progress = started.recentProgress
    assert sum(p.numInputRows for p in progress) == readings.num_rows
    assert max(len(p.stateOperators) for p in progress) == 2
    lows = streams.spark.read.parquet(str(streams.place / "lows")).drop("batch").toArrow()
    assert_same_rows(LOWS, lows, expected(streams, LOWS, readings))
    assert_same_rows(COUNTS, pa.concat_tables(collected), expected(streams, COUNTS, readings))


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_keys_are_not_computed_of_events_that_a_filter_drops(
    streams: Any, readings: pa.Table, strategy: str
) -> None:
    """Of those they may fail: a division by zero ends a query of Spark's."""
    zeros = pa.array([0.0 if n % 5 == 0 else 2.0 for n in range(readings.num_rows)])
    events = readings.set_column(readings.column_names.index("v"), "v", zeros)
    streams.write(events, 2)
    shares = weft.Query(
        "shares",
        source="r",
        time="ts",
        keys={"share": "CAST(10 / v AS INT)"},
        where="v <> 0",
        windows={"20s": weft.tumbling("20 seconds")},
        aggs={"n": agg.count()},
        watermark="5 seconds",
    )
    weft.start(
        workload_of(LOWS, shares),
        {"r": streams.read()},
        streams.place / "out",
        streams.place / "c",
        "once",
        strategy,
    ).awaitTermination()
    rows = streams.spark.read.parquet(str(streams.place / "out" / "query=shares")).drop("batch")
    kept = events.filter(pc.not_equal(events["v"], 0.0))
    wanted = weft.run(workload_of(shares), {"r": kept}, engine="reference")
    closed = expected(streams, LOWS, events)["window_end"]
    known = pc.is_in(wanted["window_end"], closed)
    assert rows.count() == wanted.filter(known).num_rows > 0


def test_a_stream_goes_on_where_it_stopped_and_is_refused_with_another_workload(
    streams: Any, readings: pa.Table
) -> None:
    half = readings.num_rows // 2
    readings = readings.sort_by("ts")
    streams.write(readings.slice(0, half), 1)
    place = streams.place

    def run(query: weft.Query) -> None:
        weft.start(
            query, {"r": streams.read()}, place / "out", place / "c", "once"
        ).awaitTermination()

    run(LOWS)
    first = streams.spark.read.parquet(str(place / "out")).count()
    changed = weft.Query(
        "lows",
        source="r",
        time="ts",
        keys=["k"],
        windows={"20s": weft.hopping("20 seconds", "5 seconds"), "1m": weft.tumbling("1 minute")},
        aggs={"lo": agg.min("v")},
        watermark="5 seconds",
    )
    with pytest.raises(weft.QueryError) as refusal:
        run(changed)
    assert "window '20s' of query 'lows' was TUMBLE 20s and now is HOP 20s/5s" in str(refusal.value)
    with pytest.raises(weft.QueryError, match="the strategy was native and now is columnar"):
        weft.start(
            workload_of(LOWS), {"r": streams.read()}, place / "out", place / "c", "once", "columnar"
        )
    for frame, told in (
        (streams.read().withColumn("v", F.col("v").cast("int")), "was double and now is int"),
        (streams.read().drop("v"), "is gone"),
    ):
        with pytest.raises(weft.QueryError, match=f"column 'v' of 'r' {told}"):
            weft.start(LOWS, {"r": frame}, place / "out", place / "c", "once")
    (place / "in" / "0000.parquet").rename(place / "first.parquet")
    (place / "in").rmdir()
    streams.write(readings.slice(half), 1)
    (place / "in" / "0000.parquet").rename(place / "in" / "0001.parquet")
    (place / "first.parquet").rename(place / "in" / "0000.parquet")
    run(LOWS)
    rows = streams.spark.read.parquet(str(place / "out")).drop("batch").toArrow()
    assert 0 < first < rows.num_rows
    assert_same_rows(LOWS, rows, expected(streams, LOWS, readings))


def test_a_shared_sink_has_the_name_of_the_query(streams: Any, readings: pa.Table) -> None:
    streams.write(readings, 1)
    place = streams.place
    weft.start(
        workload_of(LOWS, COUNTS), {"r": streams.read()}, place / "out", place / "c", "once"
    ).awaitTermination()
    rows = streams.spark.read.parquet(str(place / "out"))
    assert {row[0] for row in rows.select("query").distinct().collect()} == {"lows", "counts"}


def test_refusals(streams: Any, readings: pa.Table) -> None:
    streams.write(readings, 1)
    plain = weft.Query(
        "q",
        source="r",
        time="ts",
        windows={"1m": weft.tumbling("1 minute")},
        aggs={"n": agg.count()},
    )
    tables = {"r": streams.read()}
    with pytest.raises(weft.QueryError, match="has no watermark"):
        weft.run(workload_of(plain), tables)
    with pytest.raises(weft.QueryError, match="has a watermark of 1s, and a query asks for 5s"):
        weft.run(workload_of(LOWS), {"r": streams.read().withWatermark("ts", "1 second")})
    with pytest.raises(weft.QueryError, match="no query of that name\nhint: did you mean 'lows'"):
        weft.start(workload_of(LOWS), tables, {"low": "x"}, streams.place / "c")
    with pytest.raises(weft.QueryError, match="query 'counts' has no sink"):
        weft.start(workload_of(LOWS, COUNTS), tables, {"lows": "x"}, streams.place / "c2")
    (streams.place / "c3" / "offsets" / "0").mkdir(parents=True)
    with pytest.raises(weft.QueryError, match="that weft did not start"):
        weft.start(workload_of(LOWS), tables, "x", streams.place / "c3")


def test_a_checkpoint_runs_one_stream_at_a_time(streams: Any, readings: pa.Table) -> None:
    streams.write(readings, 1)

    def start(trigger: str | None = None) -> Any:
        place = streams.place
        return weft.start(LOWS, {"r": streams.read()}, place / "out", place / "c", trigger)

    running = start()
    with pytest.raises(weft.UnsupportedError, match="a stream runs with the checkpoint"):
        start()
    running.stop()
    start("once").awaitTermination()  # at once, whether or not the end was told


def test_a_table_sink_and_updates_of_open_windows(streams: Any, readings: pa.Table) -> None:
    """One stream, two sinks: a table of the catalog, and a function that sees every update."""
    streams.write(readings, 2)
    query = weft.Query(
        "lows",
        source="r",
        time="ts",
        keys=["k"],
        windows={"1m": weft.tumbling("1 minute")},
        aggs={"lo": agg.min("v"), "n": agg.count()},
        watermark="5 seconds",
    )
    place, seen = streams.place, []

    def write(rows: DataFrame, batch_id: int) -> None:
        seen.append(rows.toArrow())
        for _ in range(2):  # as if the micro-batch were run again
            TableSink("lows_by_minute").write(rows, batch_id, None)

    weft.start(
        workload_of(query), {"r": streams.read()}, write, place / "c", "once", mode="update"
    ).awaitTermination()
    table = streams.spark.table("lows_by_minute").drop("batch").toArrow()
    streams.spark.sql("DROP TABLE lows_by_minute")
    rows = pa.concat_tables(seen)
    assert table.num_rows == rows.num_rows
    everything = weft.run(workload_of(query), {"r": readings}, engine="reference")
    # The last word on each window is its row in batch, whether or not it has closed.
    identity = ["k", "window", "window_start", "window_end"]
    last = rows.group_by(identity).aggregate([("lo", "min"), ("n", "max")])
    last = last.rename_columns([*identity, "lo", "n"])
    assert_same_rows(query, last, everything)
    assert rows.num_rows > everything.num_rows


def test_update_mode_needs_the_columnar_strategy(streams: Any, readings: pa.Table) -> None:
    streams.write(readings, 1)
    with pytest.raises(weft.UnsupportedError, match="and no updates"):
        weft.start(
            workload_of(LOWS), {"r": streams.read()}, "x", "c", strategy="native", mode="update"
        )
