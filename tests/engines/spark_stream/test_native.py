"""The native strategy for streams: one read, two states, the rows of the reference engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weft
from weft import agg
from weft.engines.spark.streaming import engine as stream_engine
from weft.engines.spark.streaming.columnar import strategy as columnar_strategy
from weft.engines.spark.streaming.progress import Progress
from weft.testing import assert_same_rows

pytestmark = pytest.mark.spark
S = 1_000_000

WINDOWS = {
    "10s": weft.tumbling("10 seconds"),
    "15s": weft.tumbling("15 seconds"),
    "20s": weft.tumbling("20 seconds"),
    "25s/10s": weft.hopping("25 seconds", "10 seconds", "3 seconds"),
    "1m/12s": weft.cumulating("1 minute", "12 seconds"),
    "4s/20s": weft.hopping("4 seconds", "20 seconds"),
}
AGGS = {
    "n": agg.count(),
    "s": agg.sum("v"),
    "lo": agg.min("v"),
    "mean": agg.avg("v"),
    "sd": agg.stddev("v"),
    "last": agg.last("v"),
}


def query_over(windows: dict[str, Any], name: str = "q", **more: Any) -> weft.Query:
    asked = {"keys": ["k"], "aggs": AGGS, "watermark": "5 seconds", **more}
    return weft.Query(name, source="r", time="ts", windows=windows, **asked)


@pytest.mark.parametrize("planner", ["slice", "independent"])
def test_closed_windows_have_the_rows_of_the_reference_engine(
    streams: Any, readings: pa.Table, planner: str
) -> None:
    streams.write(readings, 5)
    query = query_over(WINDOWS)
    tables = {"r": streams.read()}
    result = weft.run(weft.Workload([query]), tables, planner=planner, strategy="native")
    assert result.isStreaming
    done = streams.ran(result)
    wanted = weft.run(weft.Workload([query]), {"r": readings}, engine="reference")
    expected = streams.closed(wanted, 5 * S)
    assert 0 < expected.num_rows < wanted.num_rows
    assert_same_rows(query, done.rows, expected)
    assert done.input_rows == readings.num_rows
    assert done.state_operators == (1 if planner == "independent" else 2)


def test_without_rocksdb_what_is_columnar_for_its_cost_alone_runs_native(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 5)
    hops = {f"{n}m/1s": weft.hopping(f"{n} minutes", "1 second") for n in (1, 5)}
    query = query_over(WINDOWS | hops)
    plan = weft.optimize(query, micro_batch="1 hour")
    assert {choice.strategy for choice in plan.strategies} == {"columnar"}
    done = streams.ran(weft.run(query, {"r": streams.read()}))
    wanted = weft.run(query, {"r": readings}, engine="reference")
    assert_same_rows(query, done.rows, streams.closed(wanted, 5 * S))
    assert done.state_operators == 2, "slices, and all windows"
    visits = query_over({"visit": weft.session("10 seconds")})
    for asked, forced in ((visits, None), (plan, None), (query, "columnar")):
        with pytest.raises(weft.UnsupportedError, match="keeps its state in RocksDB"):
            weft.run(asked, {"r": streams.read()}, strategy=forced)


def test_an_older_spark_gets_a_native_plan_where_columns_would_cost_less(
    streams: Any, readings: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (stream_engine, columnar_strategy):
        monkeypatch.setattr(module, "state_obstacle", lambda: "no state for rows")
    streams.write(readings, 5)
    query = query_over({"1m/1s": weft.hopping("1 minute", "1 second")})
    assert weft.optimize(query, micro_batch="1 hour").strategies[0].strategy == "columnar"
    done = streams.ran(weft.run(query, {"r": streams.read()}))
    wanted = weft.run(query, {"r": readings}, engine="reference")
    assert_same_rows(query, done.rows, streams.closed(wanted, 5 * S))
    visits = query_over({"visit": weft.session("10 seconds")})
    with pytest.raises(weft.UnsupportedError, match="no state for rows"):
        weft.run(visits, {"r": streams.read()})


def test_late_events_are_reported_and_change_nothing(streams: Any, readings: pa.Table) -> None:
    on_time = readings.sort_by("ts")
    streams.write(on_time, 2, disorder_s=0)
    late = on_time.slice(0, 20)
    streams.append(late)
    streams.append(on_time.slice(on_time.num_rows - 1))  # so that another micro-batch follows
    query = query_over({"10s": weft.tumbling("10 seconds")}, aggs={"n": agg.count()})
    tables = {"r": streams.read()}
    done = streams.ran(weft.run(weft.Workload([query]), tables, strategy="native"))
    wanted = weft.run(weft.Workload([query]), {"r": on_time}, engine="reference")
    assert_same_rows(query, done.rows, streams.closed(wanted, 5 * S))
    dropped = sum(Progress.of(p).late for p in done.progress)
    assert 0 < dropped <= late.num_rows


def test_days_of_a_time_zone_and_a_time_in_microseconds(streams: Any, readings: pa.Table) -> None:
    """Clocks go back in Berlin on 29 October 2023; that day has 25 hours."""
    start_us = 1_698_400_000 * S
    slow = pc.add(pc.multiply(pc.subtract(in_us(readings), in_us(readings)[0]), 700), start_us)
    events = readings.set_column(0, "ts", slow).sort_by("ts")
    streams.write(events, 2, disorder_s=0)
    query = query_over(
        {"day": weft.calendar("day", "Europe/Berlin"), "6h": weft.tumbling("6 hours")},
        aggs={"n": agg.count(), "s": agg.sum("k")},
    )
    tables = {"r": streams.read()}
    result = weft.run(weft.Workload([query]), tables, planner="slice", strategy="native")
    done = streams.ran(result)
    wanted = weft.run(weft.Workload([query]), {"r": events}, engine="reference")
    expected = streams.closed(wanted, 5 * S)
    assert "day" in expected["window"].to_pylist()
    assert_same_rows(query, done.rows, expected)


def in_us(table: pa.Table) -> pa.ChunkedArray:
    return table["ts"].cast(pa.int64())


def test_every_door_gives_a_stream_for_a_stream(streams: Any, readings: pa.Table) -> None:
    streams.write(readings, 1)
    timed = streams.read().withWatermark("ts", "5 seconds")
    sql = "SELECT k, MIN(v) AS lo FROM r GROUP BY k, window(ts, '20 seconds')"
    assert weft.sql(sql, r=timed).isStreaming
    rows = weft.aggregate(
        timed, by=["k"], windows={"20s": weft.tumbling("20 seconds")}, aggs={"lo": agg.min("v")}
    )
    assert rows.isStreaming
    assert rows.schema["window_end"].metadata == {"spark.watermarkDelayMs": 0}
