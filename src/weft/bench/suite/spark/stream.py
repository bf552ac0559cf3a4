"""Spark Structured Streaming: one read and two states against a union of streaming windows.

Ten million readings of ten devices at a thousand a second, in eight parquet files that are a
micro-batch each, on two cores.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weft import agg
from weft.bench.frame import Bar, Case, Column, Contender, Entry, Limit, Race, Sheet, Table
from weft.generate import sensors
from weft.planners.portfolio import optimize
from weft.query import Query, Workload
from weft.running import run
from weft.statistics import Statistics
from weft.window import Window, hopping, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from weft.bench.frame import Row, Runner

EVENTS, QUICK_EVENTS = 10_000_000, 80_000
BATCHES = 8
_CORES = 2
_RATE, _DEVICES = 1000.0, 10
_NEEDS = ("pyspark",)
_WATERMARK = "10 seconds"
_WEIGHTS = 1009
_FIRST_MTIME_S = 1_700_000_000


class Inputs(NamedTuple):
    """A directory of files, and what is asked of them as a stream."""

    directory: Path
    query: Query


class Ran(NamedTuple):
    """What a stream answered, and what its progress reports say of it."""

    answer: tuple[int, int]  # rows, and a checksum of them
    batch_ms: tuple[int, ...]  # of micro-batches with events
    state_rows: int  # most at any time
    state_bytes: int


@cache
def _files(events: int, devices: int = _DEVICES, rate: float = _RATE) -> Path:
    """Write readings as files that Spark takes one by one, in order."""
    return _files_of(sensors(events, 7, devices=devices, rate=rate), [events // BATCHES] * BATCHES)


def _files_of(table: pa.Table, sizes: Sequence[int]) -> Path:
    import pyarrow.parquet as pq

    directory, begin = Path(tempfile.mkdtemp(prefix="weft-stream-bench-")), 0
    for at, size in enumerate(sizes):
        path = directory / f"{at:03}.parquet"
        pq.write_table(table.slice(begin, size), path)
        os.utime(path, (_FIRST_MTIME_S + at,) * 2)
        begin += size
    return directory


def _windows(count: int) -> dict[str, Window]:
    """Tumbling windows of 10 s, 15 s, 20 s and so on."""
    ranges = [f"{10 + 5 * at} seconds" for at in range(count)]
    return {text: tumbling(text) for text in ranges}


def _query(windows: int) -> Query:
    return _asking(_windows(windows))


def _asking(windows: dict[str, Window]) -> Query:
    return Query(
        "lows",
        source="readings",
        time="ts",
        keys=["device"],
        windows=windows,
        aggs={"lo": agg.min("temp")},
        watermark=_WATERMARK,
    )


def _inputs(events: int, windows: int) -> Inputs:
    return Inputs(_files(events), _query(windows))


def _stream(directory: Path) -> DataFrame:
    from weft.engines.spark.session import local_session

    session = local_session(_CORES)
    schema = session.read.parquet(str(directory)).schema
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))


def _answer_columns(query: Query) -> list[SparkColumn]:
    """Count the rows, and add up a hash of what each is of and of its values."""
    from pyspark.sql import functions as F

    weight = F.pmod(F.xxhash64(*(F.col(name) for name in query.columns)), F.lit(_WEIGHTS))
    return [F.count(F.lit(1)).alias("rows"), F.sum(weight).alias("checksum")]


@cache
def _expected(inputs: Inputs) -> tuple[int, int]:
    """Let the local engine answer in one batch, as far as windows of the stream close."""
    import pyarrow.parquet as pq

    from weft.engines.spark.session import local_session, to_spark
    from weft.sessions.replay import closed_rows

    query = inputs.query
    events = pq.read_table(inputs.directory)
    rows = closed_rows(query, run(Workload([query]), {query.source: events}), events)
    answer = to_spark(rows, local_session(_CORES)).agg(*_answer_columns(query)).collect()[0]
    return answer["rows"], answer["checksum"]


def _run(query: Query, rows: DataFrame) -> Ran:
    """Run a streaming DataFrame over all files; rows go nowhere, and are counted on their way."""
    from weft.sessions.replay import run_to_end

    counted = rows.observe("answer", *_answer_columns(query))
    progress = list(run_to_end(counted.writeStream.format("noop")).recentProgress)
    seen = [p.observedMetrics["answer"] for p in progress]
    return Ran(
        (sum(row["rows"] for row in seen), sum(row["checksum"] or 0 for row in seen)),
        tuple(p.batchDuration for p in progress if p.numInputRows),
        max(sum(s.numRowsTotal for s in p.stateOperators) for p in progress),
        max(sum(s.memoryUsedBytes for s in p.stateOperators) for p in progress),
    )


def _shared(inputs: Inputs) -> Ran:
    known = Statistics(rate=_RATE, keys=_DEVICES)
    rows = run(Workload([inputs.query]), {"readings": _stream(inputs.directory)}, statistics=known)
    return _run(inputs.query, rows)


def _stock(inputs: Inputs) -> Ran:
    from weft.engines.spark.stock import stock

    events = _stream(inputs.directory).withWatermark("ts", _WATERMARK)
    return _run(inputs.query, stock(inputs.query, events))


def _answering(run: Callable[[Inputs], Ran]) -> Callable[[Inputs], Runner]:
    return lambda inputs: lambda: run(inputs).answer


def _case(events: int, windows: int) -> Case:
    return Case(f"{events:,} events", {"events": events, "windows": windows}, events)


TUMBLING_20 = Race(
    name="spark-stream/tumbling_20",
    question="What do 20 tumbling windows of a stream cost, of 10 s to 105 s, when one costs 1?",
    inputs=_inputs,
    expected=_expected,
    contenders={
        "stock": Contender(_answering(_stock), _NEEDS, runs=1),
        "weft": Contender(_answering(_shared), _NEEDS),
    },
    baseline="stock",
    full=(_case(EVENTS, 20),),
    quick=(_case(QUICK_EVENTS, 3),),
    bars=(Bar("weft", "stock", 10.0),),
    rounds=3,
    item="event",
)


def _state(quick: bool) -> Sheet:
    """Compare the states of all windows with that of the single finest aggregate."""
    events, windows = (QUICK_EVENTS, 3) if quick else (EVENTS, 20)
    every = _inputs(events, windows)
    finest = Inputs(every.directory, _asking({"slices": tumbling("5 seconds")}))
    one, all_ = _stock(finest), _shared(every)
    wrong = (*_wrong("5 s", one, finest), *_wrong(f"{windows} windows", all_, every))
    row: Row = {
        "windows": windows,
        "state rows": all_.state_rows,
        "of one": one.state_rows,
        "rows ratio": all_.state_rows / one.state_rows,
        "bytes ratio": all_.state_bytes / one.state_bytes,
    }
    return Sheet((row,), wrong)


def _wrong(what: str, ran: Ran, inputs: Inputs) -> tuple[str, ...]:
    wanted = _expected(inputs)
    return () if ran.answer == wanted else (f"{what}: {ran.answer}, and not {wanted}",)


STATE = Table(
    name="spark-stream/state",
    question="How much more than a single aggregate of 5 s do 20 windows keep in their states?",
    columns=(
        Column("windows", ",d"),
        Column("state rows", ",d"),
        Column("of one", ",d"),
        Column("rows ratio", ".3g"),
        Column("bytes ratio", ".3g"),
    ),
    compute=_state,
    limits=(
        Limit("rows ratio", at_most=1.5, at_quick=False),
        Limit("bytes ratio", at_most=1.5, at_quick=False),
    ),
    needs=_NEEDS,
)


def _one_more(quick: bool) -> Sheet:
    """Time the micro-batches of 20 and of 21 windows, turn by turn."""
    events, rounds = (QUICK_EVENTS, 1) if quick else (EVENTS, 3)
    times: dict[int, list[int]] = {20: [], 21: []}
    wrong: tuple[str, ...] = ()
    for _ in range(rounds):
        for windows, own in times.items():
            asked = _inputs(events, windows)
            ran = _shared(asked)
            own += ran.batch_ms[1:]
            wrong += _wrong(f"{windows} windows", ran, asked)
    medians = {windows: statistics.median(own) for windows, own in times.items()}
    row: Row = {
        "20 windows ms": medians[20],
        "21 windows ms": medians[21],
        "ratio": medians[21] / medians[20],
    }
    return Sheet((row,), wrong)


ONE_MORE = Table(
    name="spark-stream/one_more_window",
    question="What does the 21st window add to the time of a micro-batch?",
    columns=(
        Column("20 windows ms", ",.0f"),
        Column("21 windows ms", ",.0f"),
        Column("ratio", ".3f"),
    ),
    compute=_one_more,
    limits=(Limit("ratio", at_most=1.03, at_quick=False),),
    needs=_NEEDS,
)


@dataclass(frozen=True, slots=True)
class _Hosted:
    """The columnar strategy with as many buckets of keys as told."""

    buckets: int

    def __call__(self, inputs: Inputs) -> Ran:
        from weft.engines.spark.streaming.checkpoint.versions import Versions
        from weft.engines.spark.streaming.columnar import strategy as columnar
        from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
        from weft.engines.spark.streaming.columnar.parcels import Parcel
        from weft.engines.spark.streaming.streams import streams_of

        source = _stream(inputs.directory)
        (stream,) = streams_of(optimize(Workload([inputs.query]), "slice", "spark"))
        parcels = tuple(map(Parcel.of, stream.scopes))
        with columnar.stored_for("columnar", source.sparkSession):
            post = columnar.posted(stream, source, parcels, Buckets(self.buckets))
            hosted = columnar.hosted_of(stream, post)
            only = {at: one.dump() for at, one in hosted.items()}
            rows = columnar.transformed(post, Versions(None, only=only), stream.watermark_us)
            results = columnar.results_of(stream, hosted, post.time_type)
            return _run(inputs.query, results[inputs.query.name](rows))


def _many_keys(events: int, keys: int) -> Inputs:
    return Inputs(_files(events, keys, rate=events / 100), _query(3))


def _keys_case(events: int, keys: int) -> Case:
    return Case(f"{keys:,} keys", {"events": events, "keys": keys}, events)


KEYS_10000 = Race(
    name="spark-stream/keys_10000",
    question="What does columnar state of a bucket save against state for each of 10,000 keys?",
    inputs=_many_keys,
    expected=_expected,
    contenders={
        "state per key": Contender(_answering(_Hosted(1 << 24)), _NEEDS, runs=1),
        "buckets": Contender(_answering(_Hosted(2 * _CORES)), _NEEDS),
        "native": Contender(_answering(_shared), _NEEDS),
    },
    baseline="state per key",
    full=(_keys_case(800_000, 10_000),),
    quick=(_keys_case(8_000, 50),),
    bars=(Bar("buckets", "state per key", 5.0),),
    rounds=3,
    item="event",
)


_HOP_RATE, _HOP_KEYS = 1000.0, 1_000
_HOUR_S, _TICK_S = 3_600, 10


@cache
def _hour_and_ticks(hour_s: int, ticks: int) -> Path:
    """Write what a long window reads as one file, and micro-batches of ten seconds after it."""
    rate = round(_HOP_RATE)
    sizes = [hour_s * rate, *[_TICK_S * rate] * ticks]
    return _files_of(sensors(sum(sizes), 7, devices=_HOP_KEYS, rate=_HOP_RATE), sizes)


def _columnar(inputs: Inputs) -> Ran:
    from weft.engines.spark.streaming.columnar.strategy import stored_for

    known, source = Statistics(rate=_HOP_RATE, keys=_HOP_KEYS), _stream(inputs.directory)
    asked = Workload([inputs.query])
    with stored_for("columnar", source.sparkSession):
        rows = run(asked, {"readings": source}, statistics=known, strategy="columnar")
        return _run(inputs.query, rows)


def _ranges(quick: bool) -> Sheet:
    """Time the micro-batches of a short and of a long hop that slide alike, turn by turn."""
    hour_s, ticks, rounds = (30, 3, 1) if quick else (_HOUR_S, 20, 3)
    directory = _hour_and_ticks(hour_s, ticks)
    short, long = (10, 30) if quick else (60, _HOUR_S)
    times: dict[int, list[int]] = {short: [], long: []}
    wrong: tuple[str, ...] = ()
    for _ in range(rounds):
        for seconds, own in times.items():
            hop = hopping(f"{seconds} seconds", "1 second")
            asked = Inputs(directory, _asking({"hop": hop}))
            ran = _columnar(asked)
            own += ran.batch_ms[2:]  # the first one has the hour, and the next one new workers
            wrong += _wrong(f"{seconds} s by 1 s", ran, asked)
    medians = {seconds: statistics.median(own) for seconds, own in times.items()}
    row: Row = {
        "short ms": medians[short],
        "long ms": medians[long],
        "ratio": medians[long] / medians[short],
    }
    return Sheet((row,), wrong)


RANGES = Table(
    name="spark-stream/ranges",
    question="What does a micro-batch of a hop of 3600 s by 1 s cost, when one of 60 s costs 1?",
    columns=(
        Column("short ms", ",.0f"),
        Column("long ms", ",.0f"),
        Column("ratio", ".3f"),
    ),
    compute=_ranges,
    limits=(Limit("ratio", at_most=1.5, at_quick=False),),
    needs=_NEEDS,
)

ENTRIES: tuple[Entry, ...] = (TUMBLING_20, STATE, ONE_MORE, KEYS_10000, RANGES)
