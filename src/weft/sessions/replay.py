"""Tables played back as streams: what `weft.verify` compares streaming results by."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.engines.local.values.frame import plain
from weft.engines.local.windows.events import read_times
from weft.engines.local.windows.timed_plan import is_timed
from weft.engines.reference.engine import event_rows
from weft.engines.reference.events import events_by_key
from weft.engines.reference.streams import ended, watermark_of
from weft.engines.spark.common_rows import matching
from weft.engines.spark.session import spark_schema
from weft.engines.spark.versions import collected as collected_rows
from weft.frames import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from weft.engines.spark.streaming.streams import Picked
    from weft.plan import Plan
    from weft.query import JoinQuery, Query

FILES = 3
_FIRST_MTIME_S = 1_700_000_000
_MILLISECOND_US = 1000
_NUMBER = "_weft_number"


@contextmanager
def replayed(
    tables: Mapping[str, pa.Table],
    times: Mapping[str, str],
    session: SparkSession,
    files: int = FILES,
) -> Iterator[dict[str, DataFrame]]:
    """Play tables back as streams, a micro-batch for each of some files.

    Where `times` name the column, rows come in the order of time, else as they are.
    """
    with tempfile.TemporaryDirectory(prefix="weft-replay-") as place:
        streams = {}
        for name, table in tables.items():
            ordered = table.sort_by(times[name]) if name in times else table
            streams[name] = _stream(ordered, Path(place) / name, session, files)
        yield streams


def _stream(table: pa.Table, directory: Path, session: SparkSession, files: int) -> DataFrame:
    directory.mkdir()
    size = max(1, -(-table.num_rows // files))
    for at in range(files):
        path = directory / f"{at}.parquet"
        pq.write_table(table.slice(at * size, size), path)
        # Spark takes files in the order in which they were last changed.
        os.utime(path, (_FIRST_MTIME_S + at,) * 2)
    reader = session.readStream.schema(spark_schema(table.schema))
    return reader.option("maxFilesPerTrigger", 1).parquet(str(directory))


def collected(rows: DataFrame, results: Mapping[str, Picked]) -> dict[str, pa.Table]:
    """Run a stream once over all that is there; return each result that is read off its rows."""
    parts: dict[str, list[pa.Table]] = {name: [] for name in results}

    def keep(batch: DataFrame, batch_id: int) -> None:
        kept = batch.persist()
        try:
            # A count runs every partition, and the results of no rows need not be asked for.
            if kept.count() or not batch_id:
                for name, result in results.items():
                    parts[name].append(collected_rows(result(kept)))
        finally:
            kept.unpersist()

    run_to_end(rows.writeStream.outputMode("append").foreachBatch(keep))
    return {name: pa.concat_tables(own) for name, own in parts.items()}


def run_to_end(writer: DataStreamWriter) -> StreamingQuery:
    """Run a stream over all that is there, with a checkpoint for the time being."""
    with tempfile.TemporaryDirectory(prefix="weft-checkpoint-") as checkpoint:
        running = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        running.awaitTermination()
    return running


def drained(plan: Plan, streams: Mapping[str, DataFrame], strategy: str) -> float:
    """Run a plan of one query over all that is there, its rows going nowhere; return the seconds.

    The first micro-batch, which compiles and starts workers, is left out, and counted as the mean
    of the others.
    """
    from weft.engines.spark.streaming.columnar.strategy import stored_for
    from weft.engines.spark.streaming.engine import SparkStreamEngine

    session = next(iter(streams.values())).sparkSession
    with stored_for(strategy, session):
        (rows,) = SparkStreamEngine(strategy).run(plan, streams).values()
        running = run_to_end(rows.writeStream.format("noop"))
        _, *spent_ms = [p.batchDuration for p in running.recentProgress]
    return sum(spent_ms) / len(spent_ms) * (len(spent_ms) + 1) / 1000


def closed_rows(query: Query, rows: pa.Table, events: pa.Table) -> pa.Table:
    """Keep the rows of windows that a stream of these events has closed at their end.

    The watermark follows the latest event, in whole milliseconds; what ends later waits on. Where
    events end a window, the reference engine tells which have ended.
    """
    assert query.time is not None
    watermark_us = last_watermark_us(events, query.time, query.watermark_us)
    if watermark_us is None:
        return rows.slice(0, 0)
    label, _, end = query.window_columns
    kept = _ended_by(watermark_us, rows, end)
    by_events = [name for name, window in query.windows if not is_timed(window)]
    if not by_events:
        return kept
    those = pc.is_in(kept[label], pa.array(by_events))
    ended = _ended_by_events(query, kept.filter(those), events, watermark_us)
    return pa.concat_tables([kept.filter(pc.invert(those)), ended])


def closed_join_rows(query: JoinQuery, rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Keep the rows of instants that have passed on all streams of a join when they end."""
    last = [
        last_watermark_us(tables[i.source], i.time, i.watermark_us)
        for i in query.inputs
        if i.time is not None
    ]
    passed = [watermark_us for watermark_us in last if watermark_us is not None]
    if len(passed) < len(last):
        return rows.slice(0, 0)
    return _ended_by(min(passed), rows, query.window_columns[2])


def last_watermark_us(events: pa.Table, time: str, delay_us: int | None) -> int | None:
    """Return the watermark when these events have come, in whole milliseconds; None without any."""
    times, valid = read_times(plain(events.column(time)), time)
    known = times if valid is None else times[valid]
    if not known.size:
        return None
    return watermark_of(int(known.max()), delay_us or 0, _MILLISECOND_US)


def _ended_by(watermark_us: int, rows: pa.Table, end: str) -> pa.Table:
    ends = rows[end].cast(pa.int64())
    return rows.filter(pc.less_equal(ends, pa.scalar(watermark_us, pa.int64())))


def _ended_by_events(query: Query, rows: pa.Table, events: pa.Table, watermark_us: int) -> pa.Table:
    """Keep the rows of windows that events have ended, by plain loops over the events."""
    assert query.time is not None
    groups, _ = events_by_key(event_rows(events), query.time, query.where, query.keys)
    closed = [
        (*key, label, i.start_us, i.end_us)
        for label, window in query.windows
        for key, own in groups.items()
        if not is_timed(window)
        for i in ended(window, own, watermark_us)
    ]
    identity = [*(name for name, _ in query.keys), *query.window_columns]
    columns = zip(*closed, strict=True) if closed else ([] for _ in identity)
    arrays = [
        pa.array(values, pa.int64()).cast(rows.schema.field(name).type)
        if name in query.window_columns[1:]
        else pa.array(values, rows.schema.field(name).type)
        for name, values in zip(identity, map(list, columns), strict=True)
    ]
    ended_rows = _numbered(pa.table(arrays, names=identity), identity)
    kept = matching(_numbered(rows, identity), ended_rows, [*identity, _NUMBER])
    return kept.drop_columns([_NUMBER])


def _numbered(rows: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Number the rows that are alike in these columns, in their order.

    Events of one instant may make several instances of a window that begin and end alike, of which
    the first end before the others.

    >>> _numbered(pa.table({"k": ["a", "b", "a"]}), ["k"])[_NUMBER].to_pylist()
    [0, 0, 1]
    """
    own = in_parts(rows, identity)
    places = own.append_column(_NUMBER, pa.array(np.arange(own.num_rows)))
    alike = places.group_by(own.column_names, use_threads=False).aggregate([(_NUMBER, "list")])
    lists = alike[f"{_NUMBER}_list"].combine_chunks()
    sizes = pc.list_value_length(lists).to_numpy()
    numbers = np.empty(own.num_rows, np.int64)
    firsts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    numbers[pc.list_flatten(lists).to_numpy()] = np.arange(own.num_rows) - firsts
    return rows.append_column(_NUMBER, pa.array(numbers))
