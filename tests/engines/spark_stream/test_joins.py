"""Joins of streams: watermarks on both sides, rows of closed instants, those of the definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weft
from weft.engines.spark.session import to_spark
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint
from weft.errors import QueryError, UnsupportedError
from weft.starting import record_for
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark
S = 1_000_000
START_US = 1_700_000_000 * S
DELAY_S = 4
ROWS = 120

SELECTED = "SELECT a.g, COUNT(*) AS n, SUM(b.x) AS s, MAX(b.x) AS top"
TIED = "WHERE a.k = b.k GROUP BY a.g"
SLIDING = "TIMESTAMP BY ts [RANGE 9 SECONDS SLIDE 3 SECONDS]"
UNEVEN = "TIMESTAMP BY ts [RANGE 7 SECONDS SLIDE 5 SECONDS]"
LANDMARK = "TIMESTAMP BY ts [UNTIL NOW]"
BOTH = f"{SELECTED} FROM a {SLIDING}, b {UNEVEN} {TIED}"
SINCE = f"{SELECTED} FROM a {SLIDING}, b {LANDMARK} {TIED}"
STATIC = f"{SELECTED} FROM a {SLIDING}, b {TIED}"


def rows_of(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(START_US + random.integers(0, 60 * S, ROWS))
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "k": random.integers(0, 4, ROWS),
            "g": random.integers(0, 2, ROWS),
            "x": random.integers(-9, 9, ROWS),
        }
    )


TABLES = {"a": rows_of(1), "b": rows_of(2)}


def stream(streams: Any, name: str, files: int = 2) -> DataFrame:
    streams.write(TABLES[name], files, name, disorder_s=DELAY_S)
    frame: DataFrame = streams.read(name).withWatermark("ts", f"{DELAY_S} seconds")
    return frame


def closed(sql: str, watermarked: str) -> tuple[Any, pa.Table]:
    """Return the query, and the rows of its instants that the least watermark has passed."""
    workload = weft.parse(sql)
    rows = weft.run(workload, TABLES, engine="reference")
    latest = min(pc.max(TABLES[name]["ts"].cast(pa.int64())).as_py() for name in watermarked)
    watermark_us = latest // 1000 * 1000 - DELAY_S * S
    kept = rows.filter(pc.less_equal(rows["window_end"].cast(pa.int64()), watermark_us))
    assert 0 < kept.num_rows < rows.num_rows
    return next(iter(workload)), kept


@pytest.mark.parametrize(
    ("sql", "planner", "states"),
    [
        pytest.param(BOTH, "EAP11", 6, id="early"),
        pytest.param(BOTH, "LAP", 2, id="late", marks=pytest.mark.soak),
        pytest.param(SINCE, "EAP11", 5, id="landmark, early"),
        pytest.param(SINCE, "LAP", 3, id="landmark, late", marks=pytest.mark.soak),
    ],
)
def test_two_streams_give_the_rows_of_closed_instants(
    streams: Any, sql: str, planner: str, states: int
) -> None:
    tables = {name: stream(streams, name) for name in TABLES}
    done = streams.ran(weft.sql(sql, planner=planner, **tables))
    query, expected = closed(sql, "ab")
    assert_same_rows(query, done.rows, expected)
    assert done.state_operators == states


@pytest.mark.soak
@pytest.mark.parametrize(("sql", "planner", "states"), [(STATIC, "EAP11", 3), (SINCE, "EAP10", 3)])
def test_a_stream_meets_a_table_and_a_landmark_of_a_table(
    streams: Any, sql: str, planner: str, states: int
) -> None:
    table = to_spark(TABLES["b"], streams.spark)
    done = streams.ran(weft.sql(sql, planner=planner, a=stream(streams, "a"), b=table))
    query, expected = closed(sql, "a")
    assert_same_rows(query, done.rows, expected)
    assert done.state_operators == states


@pytest.mark.soak
def test_two_streams_and_a_table_are_verified(streams: Any) -> None:
    """Streams that `verify` plays back have a watermark without delay; its tables stay tables."""
    assert streams.spark
    sql = f"""{SELECTED}, SUM(b.x * c.x) AS both FROM a {SLIDING}, b {UNEVEN}, c
              WHERE a.k = b.k AND b.g = c.k GROUP BY a.g"""
    given = {**TABLES, "c": TABLES["b"].slice(0, 9).drop_columns(["ts"])}
    report = weft.verify(
        weft.parse(sql), given, engines=("reference", "spark-stream"), planner="EAP110"
    )
    assert report.ok, report.differences
    assert report.rows > 50


def test_a_started_join_goes_on_and_no_other_takes_its_checkpoint(streams: Any) -> None:
    collected: list[pa.Table] = []
    tables = {"a": stream(streams, "a"), "b": to_spark(TABLES["b"], streams.spark)}
    place = streams.place / "started"
    running = weft.start(
        weft.parse(STATIC),
        tables,
        sinks=lambda rows, _: collected.append(rows.toArrow()),
        checkpoint=place,
        trigger="once",
        planner="LAP",
    )
    running.awaitTermination()
    query, expected = closed(STATIC, "a")
    assert_same_rows(query, pa.concat_tables(collected), expected)
    checkpoint = Checkpoint(Place.of(place))
    assert record_for(weft.parse(STATIC), tables, checkpoint).plan.joins == (query,)
    with pytest.raises(QueryError, match="join 'q1' is another"):
        record_for(weft.parse(STATIC.replace("MAX", "MIN")), tables, checkpoint)


def test_windows_beside_a_join_are_planned_for_its_kind_of_state(streams: Any) -> None:
    tables = {"a": stream(streams, "a"), "b": to_spark(TABLES["b"], streams.spark)}
    join = weft.parse(STATIC)

    def windows(**asked: Any) -> weft.Query:
        aggs = {"n": weft.agg.count()}
        return weft.Query("w", source="a", time="ts", keys=["g"], windows=asked, aggs=aggs)

    def strategy(*queries: Any) -> str:
        checkpoint = Checkpoint(Place.of(streams.place / "new"))
        return record_for(weft.Workload([*queries]), tables, checkpoint).strategy

    hops = windows(m=weft.hopping("1 minute", "1 second"), h=weft.hopping("5 minutes", "1 second"))
    assert strategy(hops) == "columnar"
    assert strategy(*join, hops) == "native"
    with pytest.raises(UnsupportedError, match="keep different states"):
        strategy(*join, windows(visit=weft.session("10 seconds")))


def test_streams_that_would_be_kept_for_ever_or_never_close_are_refused(streams: Any) -> None:
    timed = stream(streams, "a")
    bare, table = streams.read("a"), to_spark(TABLES["b"], streams.spark)
    with pytest.raises(QueryError, match="the stream 'a' has no watermark"):
        weft.sql(STATIC, a=bare, b=table)
    with pytest.raises(UnsupportedError, match="b is a stream without a window"):
        weft.sql(STATIC, a=timed, b=timed)
    with pytest.raises(UnsupportedError, match="has a window that moves, so none ever closes"):
        weft.sql(SINCE, a=table, b=timed)
    with pytest.raises(UnsupportedError, match="joins of streams are native plans"):
        weft.run(weft.parse(STATIC), {"a": timed, "b": table}, strategy="columnar")
