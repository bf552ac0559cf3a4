"""Streams that are stopped between two writes which belong together: rows are those of the oracle.

Every place of `weft.engines.failpoints` is stopped at, under both strategies and with every kind of
sink that keeps rows by the number of their micro-batch; each stream is started again until it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from pyspark.errors import StreamingQueryException

import weft
from oracles.streams import MILLISECOND_US, NativeOracle, StreamOracle
from weft import agg
from weft.engines.failpoints import POINTS, stopping
from weft.engines.spark.streaming.checkpoint.control import Control
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint
from weft.engines.spark.streaming.checkpoint.versions import announced
from weft.engines.spark.streaming.sinks import TableSink
from weft.sessions.replay import closed_join_rows
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow]
S = 1_000_000
DELAY_US = 5 * S
STOPPED = "stopped on purpose"
HOPS = {"10s": weft.tumbling("10 seconds"), "40s/10s": weft.hopping("40 seconds", "10 seconds")}
Stop = tuple[str, int]


def asked(name: str, windows: dict[str, Any], **more: Any) -> weft.Query:
    settings = {"keys": ["k"], "aggs": {"n": agg.count(), "lo": agg.min("v")}, **more}
    return weft.Query(name, source="r", time="ts", windows=windows, watermark=DELAY_US, **settings)


LOWS = asked("lows", HOPS)
HOT = asked("hot", {"20s": weft.tumbling("20 seconds")}, where="v > 18")
LATER_SQL = """-- name: later
SELECT k, COUNT(*) AS n, MIN(v) AS lo FROM r GROUP BY k, window(ts, '20 seconds')"""
MIGRATED = asked("migrated", {"30s": weft.tumbling("30 seconds")})


def in_disorder(table: pa.Table, late_s: int = 30) -> pa.Table:
    """Some events come later than the delay allows."""
    random = np.random.default_rng(11)
    times = table["ts"].cast(pa.int64()).to_numpy()
    late = random.integers(0, late_s * S, table.num_rows) * (random.random(table.num_rows) < 0.3)
    return table.take(pa.array(np.argsort(times + late, kind="stable")))


def stop() -> None:
    raise RuntimeError(STOPPED)


def stopped_at(stops: list[Stop], start: Callable[[], StreamingQuery]) -> None:
    """Start a stream again and again, and stop it at one place after the other."""
    for point, times in stops:
        with (
            stopping(point, stop, times),
            pytest.raises((RuntimeError, StreamingQueryException), match=STOPPED),
        ):
            start().awaitTermination()


def rows_in(place: Any) -> pa.Table:
    """Read what a directory has; Spark writes instants without a zone."""
    rows = ds.dataset(place, partitioning="hive").to_table()
    instant = pa.timestamp("us", "UTC")
    types = [instant if pa.types.is_timestamp(f.type) else f.type for f in rows.schema]
    return rows.cast(pa.schema(list(zip(rows.schema.names, types, strict=True))))


def test_every_place_is_stopped_at() -> None:
    named = {
        point
        for stops in (FIRST, REQUESTED, MIGRATING, OF_TABLES, OF_JOINS, OF_UPDATES)
        for point, _ in stops
    }
    assert named | {"snapshot.begun"} == POINTS.keys()  # snapshots are no streams


def first_batch(kept: Checkpoint, query: str) -> int:
    """Return the first micro-batch that ran with a query."""
    return min(
        batch
        for number, batch in announced(kept.versions)
        if query in {own.name for own in kept.record_of(number).plan.queries}
    )


FIRST = [
    ("version.planned", 1), ("version.written", 1), ("state.committed", 2), ("rows.written", 1),
    ("rows.kept", 1), ("batch.done", 1),
]  # fmt: skip
REQUESTED = [("version.planned", 1), ("version.written", 1), ("request.answered", 1)]
MIGRATING = [("version.planned", 1), ("version.written", 1), ("batch.done", 1)]


@pytest.mark.soak
def test_a_columnar_stream_of_several_queries_while_they_come_and_go(
    streams: Any, readings: pa.Table
) -> None:
    place = streams.place
    streams.cut(in_disorder(readings), 14)
    kept, control = Checkpoint(Place.of(place / "c")), Control(Place.of(place / "c") / "weft")

    def start(*queries: weft.Query) -> StreamingQuery:
        sources = {"r": streams.read()}
        return weft.start(
            weft.Workload(queries), sources, place / "out", place / "c", "once", "columnar"
        )

    stopped_at(FIRST, lambda: start(LOWS, HOT))
    request = control.ask("add", LATER_SQL)
    stopped_at(REQUESTED, lambda: start(LOWS, HOT))
    answer = control.answered(request, 0)
    assert answer is not None
    assert answer.ok, answer
    stopped_at(MIGRATING, lambda: start(LOWS, HOT, MIGRATED))
    plan, cut_off = kept.record_of(0).plan, kept.next_batch - 1
    start(LOWS, MIGRATED).awaitTermination()  # a micro-batch that had begun with `hot` comes first
    oracle = StreamOracle(plan, DELAY_US, MILLISECOND_US).played(streams.files())
    assert oracle.late["lows"] > 20
    wanted = oracle.tables(readings.schema)
    assert_same_rows(LOWS, rows_in(place / "out" / "query=lows"), wanted["lows"])
    until = StreamOracle(plan, DELAY_US, MILLISECOND_US).played(streams.files()[:cut_off])
    hot = until.tables(readings.schema)["hot"]
    assert hot.num_rows > 0
    assert_same_rows(HOT, rows_in(place / "out" / "query=hot"), hot)
    (later,) = weft.parse(LATER_SQL).queries
    limits = control.complete_from()
    for query in (later.with_time("ts"), MIGRATED):
        # Its windows are no shorter than those that were there: the same events are late.
        rows = oracle.asked_besides(query, "lows", readings.schema)
        (since,) = limits[query.name].values()
        starts, ends = (rows[f"window_{at}"].cast(pa.int64()) for at in ("start", "end"))
        # What had closed before it came is told to nobody; its first micro-batch moves the
        # watermark over the events of the one before.
        before = streams.files()[: first_batch(kept, query.name) - 1]
        closed = StreamOracle(plan, DELAY_US, MILLISECOND_US).played(before).watermark_us
        is_told = pc.and_(pc.greater_equal(starts, since or 0), pc.greater(ends, closed))
        rows = rows.filter(is_told)
        assert rows.num_rows > 0
        assert_same_rows(query, rows_in(place / "out" / f"query={query.name}"), rows)


OF_TABLES = [
    ("version.written", 1), ("state.committed", 2), ("rows.kept", 1), ("rows.kept", 2),
    ("batch.done", 2),
]  # fmt: skip


def test_a_native_stream_into_one_table_for_two_queries(streams: Any, readings: pa.Table) -> None:
    place = streams.place
    streams.cut(in_disorder(readings, late_s=300), 9)
    highs = asked("highs", HOPS, where="v > 18")

    def start() -> StreamingQuery:
        return weft.start(
            weft.Workload([LOWS, highs]), {"r": streams.read()}, TableSink("stopped"), place / "c",
            "once", "native", planner="slice",
        )  # fmt: skip

    try:
        stopped_at(OF_TABLES, start)
        start().awaitTermination()
        rows = streams.spark.table("stopped").toArrow()
        with pytest.raises(StreamingQueryException, match="table stopped has the micro-batches of"):
            weft.start(
                LOWS, {"r": streams.read()}, TableSink("stopped"), place / "other", "once"
            ).awaitTermination()
    finally:
        streams.spark.sql("DROP TABLE IF EXISTS stopped")
    plan = Checkpoint(Place.of(place / "c")).record_of(0).plan
    oracle = NativeOracle(plan, DELAY_US, MILLISECOND_US).played(streams.files())
    assert oracle.late["lows"] > 20
    for query in (LOWS, highs):
        own = rows.filter(pc.equal(rows["query"], query.name))
        assert_same_rows(query, own, oracle.tables(readings.schema)[query.name])


OF_JOINS = [("state.committed", 2), ("rows.written", 1), ("batch.done", 1)]


def test_a_join_of_two_streams_into_files(streams: Any, readings: pa.Table) -> None:
    place = streams.place
    sql = """SELECT a.k, COUNT(*) AS n FROM a TIMESTAMP BY ts [RANGE 20 SECONDS SLIDE 10 SECONDS],
             b TIMESTAMP BY ts [RANGE 30 SECONDS SLIDE 10 SECONDS] WHERE a.k = b.k GROUP BY a.k"""
    tables = {"a": readings.slice(0, 300).sort_by("ts"), "b": readings.slice(300).sort_by("ts")}
    for name, table in tables.items():
        streams.cut(table, 4, name)

    def start() -> StreamingQuery:
        read = {n: streams.read(n).withWatermark("ts", "5 seconds") for n in tables}
        return weft.start(weft.parse(sql), read, place / "out", place / "c", "once", planner="LAP")

    stopped_at(OF_JOINS, start)
    start().awaitTermination()
    (query,) = weft.parse(sql)
    everything = weft.run(query, tables, engine="reference")
    wanted = closed_join_rows(query.with_watermark(DELAY_US), everything, tables)
    assert wanted.num_rows > 20
    assert_same_rows(query, rows_in(place / "out"), wanted)


OF_UPDATES = [("rows.written", 2), ("rows.kept", 1), ("batch.done", 1)]


def test_updates_of_open_windows_into_files(streams: Any, readings: pa.Table) -> None:
    place = streams.place
    streams.cut(in_disorder(readings), 6)

    def start() -> StreamingQuery:
        return weft.start(
            LOWS, {"r": streams.read()}, place / "out", place / "c", "once", mode="update"
        )

    stopped_at(OF_UPDATES, start)
    start().awaitTermination()
    plan = Checkpoint(Place.of(place / "c")).record_of(0).plan
    oracle = StreamOracle(plan, DELAY_US, MILLISECOND_US).played(streams.files())
    oracle.watermark_us = 2**62  # what is open was told as well
    rows = rows_in(place / "out")
    identity = ["k", "window", "window_start", "window_end"]
    assert rows.group_by([*identity, "batch"]).aggregate([]).num_rows == rows.num_rows
    last = rows.sort_by("batch").group_by(identity, use_threads=False)
    told = last.aggregate([("n", "last"), ("lo", "last")])
    told = told.rename_columns([*identity, "n", "lo"])
    assert_same_rows(LOWS, told, oracle.tables(readings.schema)["lows"])
