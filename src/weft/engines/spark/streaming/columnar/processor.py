"""The stateful operator of the columnar strategy: the local engine's, one for a bucket of keys.

A micro-batch costs a bucket a handful of calls to the state store, however many keys it has: one
to read what earlier micro-batches wrote, one to append what this one changed. When the log of
changes outweighs what is alive in it, it is written anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import Row

from weft.engines.local.state.arrow_shelf import read_table, table_chunk
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.spark.streaming.columnar.byte_values import dump_changes, load_chunks
from weft.engines.spark.streaming.columnar.executor_batches import PAYLOAD

try:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
except ImportError:  # before 4.0: there are native streams alone
    StatefulProcessor = object  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        ListState,
        StatefulProcessorHandle,
        TimerValues,
    )

    from weft.engines.spark.columnar.hosted_operator import Host, HostedScope
    from weft.engines.spark.streaming.checkpoint.versions import Versions

# Rows of closed windows in one blob, and figures for the progress report.
COMPLETE = "complete_from"
OUTPUT_SCHEMA = (
    f"scope int, {PAYLOAD} binary, {COMPLETE} string, "
    "late bigint, open_slices bigint, state_bytes bigint"
)
SEED = "seed"  # the state that a bucket begins with
APPEND, UPDATE = "append", "update"
MODES = (APPEND, UPDATE)
_VERSION = "plan version"
# How many changes are appended before all that is alive is written anew.
_MOST_CHANGES = 32
_BATCH_ID = "streaming.sql.batchId"


@dataclass(slots=True)
class _Bucket:
    """The state of a bucket as it was found, and its operator."""

    host: Host
    chunks: dict[str, bytes]
    changes: int  # blobs in the log
    log_bytes: int
    complete_from: str | None = None  # of queries that came with another version, as JSON


class BucketProcessor(StatefulProcessor):
    """Feeds the operators of a partition's buckets, and moves their watermarks."""

    def __init__(
        self,
        versions: Versions,
        buckets: int,
        delay_us: int,
        mode: str = APPEND,
        trust: Trust = NO_PICKLES,
    ) -> None:
        self._versions, self._buckets, self._delay_us = versions, buckets, delay_us
        self._mode, self._trust = mode, trust

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; the plan is the one that this micro-batch began with."""
        self._handle = handle
        self._log: ListState = handle.getListState("log", "changes BINARY")
        self._version, self._scopes = self._versions.at(_batch_id())
        self._advanced: dict[int, int] = {}  # how far a bucket's watermark has been moved

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Take the events of a bucket, and close what the watermark has passed."""
        (bucket,) = key
        events = pa.concat_tables([read_table(row[PAYLOAD]) for row in rows])
        yield from self._moved(bucket, events, timerValues.getCurrentWatermarkInMs())

    def handleInitialState(self, key: Any, initialState: Any, timerValues: TimerValues) -> None:
        """Begin with slices of a store, as if the operator had cut them."""
        self._log.put([(bytes(initialState[SEED]),)])
        self._handle.registerTimer(1)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Close what the watermark has passed in a bucket that had no events."""
        (bucket,) = key
        watermark_ms = timerValues.getCurrentWatermarkInMs()
        if self._advanced.get(bucket) != watermark_ms:
            yield from self._moved(bucket, None, watermark_ms)

    def close(self) -> None:
        """Nothing is held beyond a micro-batch."""

    def _moved(self, number: int, events: pa.Table | None, watermark_ms: int) -> Iterator[Row]:
        self._advanced[number] = watermark_ms
        scope = number // self._buckets
        hosted = self._scopes.get(scope)
        if hosted is None:  # its last query is gone
            self._log.clear()
            return
        # The watermark is the latest event of the micro-batches before, less the delay.
        latest_us = (watermark_ms + 1) * 1000 + self._delay_us
        bucket = self._opened(hosted, scope, latest_us)
        operator, late = bucket.host.operator, bucket.host.operator.late
        if events is not None:
            bucket.host.process(events)
        closed = None
        if watermark_ms > 0:  # there is none before the first event was seen
            closed = bucket.host.advance(watermark_ms * 1000)
        if self._mode == UPDATE and events is not None:
            closed = _together(closed, bucket.host.changed(events))
        self._save(bucket)
        if not bucket.host.is_empty:
            self._handle.registerTimer(max(watermark_ms, 0) + 1)
        yield Row(
            scope=scope,
            **{
                PAYLOAD: table_chunk(closed) if closed is not None and closed.num_rows else None,
                COMPLETE: bucket.complete_from,
            },
            late=operator.late - late,
            open_slices=operator.open_slices,
            state_bytes=operator.nbytes,
        )

    def _opened(self, hosted: HostedScope, scope: int, latest_us: int) -> _Bucket:
        blobs = [bytes(row[0]) for row in self._log.get()]
        chunks = load_chunks(blobs)
        written_by = int(chunks.pop(_VERSION, str(self._version).encode()))
        size = len(blobs), sum(map(len, blobs))
        if not blobs:
            return _Bucket(hosted.open(), chunks, *size)
        if written_by == self._version:
            return _Bucket(hosted.reopen(chunks, self._trust), chunks, *size)
        before = self._versions.of(written_by)[scope]
        host = hosted.taking_over(before.reopen(chunks, self._trust), latest_us)
        known = {(emit.query, emit.label) for emit in before.emits}
        added = [(e.query, e.label) for e in hosted.emits if (e.query, e.label) not in known]
        limits = [[*who, host.operator.complete_from_us.get(who)] for who in added]
        return _Bucket(host, chunks, *size, json.dumps(limits))

    def _save(self, bucket: _Bucket) -> None:
        changes = bucket.host.operator.changes(self._trust)
        if not changes.written and not changes.removed:
            return
        changes.apply(bucket.chunks)
        version = {_VERSION: str(self._version).encode()}
        alive = sum(map(len, bucket.chunks.values()))
        if bucket.changes < _MOST_CHANGES and bucket.log_bytes <= 2 * alive:
            self._log.appendValue((dump_changes(changes.written | version, changes.removed),))
        else:
            self._log.put([(dump_changes(bucket.chunks | version),)])


def _together(a: pa.Table | None, b: pa.Table) -> pa.Table:
    return b if a is None else pa.concat_tables([a, b])


def _batch_id() -> int:
    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty(_BATCH_ID)
    return 0 if told is None else int(told)
