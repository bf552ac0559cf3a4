"""The stateful operator of rolling windows: a bucket of keys, its rows and events in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import Row

from weft.aggregates.base import add_custom
from weft.engines.local.anchors.rolling_state import RollingState
from weft.engines.local.state.arrow_shelf import read_table, table_chunk
from weft.engines.spark.streaming.columnar.byte_values import dump_changes, load_chunks
from weft.engines.spark.streaming.columnar.executor_batches import PAYLOAD
from weft.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        ListState,
        StatefulProcessorHandle,
        TimerValues,
    )

    from weft.engines.local.anchors.rolling_rows import RollingRows

# Complete rows in one blob, and figures for the progress report.
FIGURES = ("late", "held_rows", "state_bytes")
OUTPUT_SCHEMA = f"{PAYLOAD} binary, " + ", ".join(f"{name} bigint" for name in FIGURES)
_ASKED = "asked"
# How many changes are appended before all that is alive is written anew.
_MOST_CHANGES = 32


@dataclass(slots=True)
class _Bucket:
    state: RollingState
    chunks: dict[str, bytes]
    changes: int  # blobs in the log
    log_bytes: int


class RollingProcessor(StatefulProcessor):
    """Feeds the states of a partition's buckets, and moves their watermarks."""

    def __init__(self, described: bytes, fingerprint: str) -> None:
        self._described, self._fingerprint = described, fingerprint

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the log, and learn what is asked."""
        self._handle = handle
        self._log: ListState = handle.getListState("log", "changes BINARY")
        rows, customs = cloudpickle.loads(self._described)
        for own, function in customs:
            add_custom(own, function)
        self._rows: RollingRows = rows
        self._advanced: dict[int, int] = {}  # how far a bucket's watermark has been moved

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Take the rows of a bucket, and hand out those that the watermark has passed."""
        (bucket,) = key
        came = pa.concat_tables([read_table(row[PAYLOAD]) for row in rows])
        yield from self._moved(bucket, came, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Hand out rows of a bucket to which none came."""
        (bucket,) = key
        watermark_ms = timerValues.getCurrentWatermarkInMs()
        if self._advanced.get(bucket) != watermark_ms:
            yield from self._moved(bucket, None, watermark_ms)

    def close(self) -> None:
        """Nothing is held beyond a micro-batch."""

    def _moved(self, number: int, rows: pa.Table | None, watermark_ms: int) -> Iterator[Row]:
        self._advanced[number] = watermark_ms
        bucket = self._opened()
        state = bucket.state
        # There is no watermark before the first event was seen.
        complete = state.process(rows, watermark_ms * 1000 if watermark_ms > 0 else None)
        self._save(bucket)
        if state.waiting.num_rows:
            self._handle.registerTimer(max(watermark_ms, 0) + 1)
        yield Row(
            **{PAYLOAD: table_chunk(complete) if complete.num_rows else None},
            late=state.late,
            held_rows=len(state),
            state_bytes=state.nbytes,
        )

    def _opened(self) -> _Bucket:
        blobs = [bytes(row[0]) for row in self._log.get()]
        chunks = load_chunks(blobs)
        asked = chunks.pop(_ASKED, self._fingerprint.encode()).decode()
        if asked != self._fingerprint:
            raise DataError(
                "the checkpoint holds events of other rolling windows than those asked for",
                hint="go on with the windows, aggregates, keys, filter, columns and "
                "spark.sql.shuffle.partitions that it began with, or begin a new checkpoint",
            )
        state = RollingState.load(self._rows, chunks)
        return _Bucket(state, chunks, len(blobs), sum(map(len, blobs)))

    def _save(self, bucket: _Bucket) -> None:
        written, removed = bucket.state.changes()
        bucket.chunks |= written
        for name in removed:
            del bucket.chunks[name]
        asked = {_ASKED: self._fingerprint.encode()}
        alive = sum(map(len, bucket.chunks.values()))
        if bucket.changes < _MOST_CHANGES and bucket.log_bytes <= 2 * alive:
            self._log.appendValue((dump_changes(written | asked, removed),))
        else:
            self._log.put([(dump_changes(bucket.chunks | asked),)])
