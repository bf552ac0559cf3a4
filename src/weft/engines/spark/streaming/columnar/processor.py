"""The stateful operator of the columnar strategy: the local engine's, one for a bucket of keys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import Row

from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.local.state.table_bytes import table_chunk
from weft.engines.spark.sql.fan_out import NODE
from weft.engines.spark.streaming.columnar.buckets import Logged, WatermarkedBuckets
from weft.engines.spark.streaming.columnar.byte_values import CODEC
from weft.engines.spark.streaming.columnar.executor_batches import PAYLOAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

    from weft.engines.local.operator import ScopeOperator
    from weft.engines.spark.columnar.hosted_operator import Host, HostedScope
    from weft.engines.spark.streaming.checkpoint.versions import Scopes, Versions
    from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
    from weft.plan import Emit

# Rows of closed windows in a blob for each query, which is told by the number of its first window;
# in the first of a bucket, figures for the progress report.
COMPLETE, FIRST = "complete_from", "first_window"
OUTPUT_SCHEMA = (
    f"scope int, {FIRST} int, {PAYLOAD} binary, {COMPLETE} string, "
    "late bigint, open_slices bigint, state_bytes bigint, "
    "windows string, window_bytes array<bigint>"
)
MOST_WINDOWS = 64  # whose shares of the state are told; a list of more is for nobody
_FIGURES = ("late", "open_slices", "state_bytes", "windows", "window_bytes")
SEED = "seed"  # the state that a bucket begins with
APPEND, UPDATE = "append", "update"
MODES = (APPEND, UPDATE)
_VERSION = "plan version"
_BATCH_ID = "streaming.sql.batchId"


@dataclass(slots=True)
class _Bucket:
    """The state of a bucket as it was found, and its operator."""

    host: Host
    found: Logged
    complete_from: str | None = None  # of queries that came with another version, as JSON


class BucketProcessor(WatermarkedBuckets):
    """Feeds the operators of a partition's buckets, and moves their watermarks."""

    def __init__(
        self,
        versions: Versions,
        buckets: Buckets,
        delay_us: int,
        mode: str = APPEND,
        trust: Trust = NO_PICKLES,
    ) -> None:
        self._versions, self._buckets, self._delay_us = versions, buckets, delay_us
        self._mode, self._trust = mode, trust

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; the plan is read with the first rows."""
        super().init(handle)
        self._read: tuple[int, Scopes] | None = None

    @property
    def _running(self) -> tuple[int, Scopes]:
        """The number and the scopes of the version that this micro-batch began with."""
        if self._read is None:
            self._read = self._versions.at(_batch_id())
        return self._read

    def handleInitialState(self, key: Any, initialState: Any, timerValues: TimerValues) -> None:
        """Begin with slices of a store, as if the operator had cut them."""
        self.begin_with(bytes(initialState[SEED]))
        self.wake_after(0)

    def moved(self, bucket: int, came: pa.Table | None, watermark_ms: int) -> Iterator[Row]:
        """Close what the watermark has passed, and take the events of a bucket."""
        scope = self._buckets.scope_of(bucket)
        _, scopes = self._running
        hosted = scopes.get(scope)
        if hosted is None:  # its last query is gone
            self.forget()
            return
        # The watermark is the latest event of the micro-batches before, less the delay.
        latest_us = (watermark_ms + 1) * 1000 + self._delay_us
        opened = self._opened(hosted, scope, latest_us)
        operator, late = opened.host.operator, opened.host.operator.late
        closed = None
        # First, so that what is too late does not depend on when a bucket was last called.
        if watermark_ms > 0:  # there is none before the first event was seen
            closed = opened.host.advance(watermark_ms * 1000)
        if came is not None:
            opened.host.process(came)
        if self._mode == UPDATE and came is not None:
            closed = _together(closed, opened.host.changed(came))
        self._save(opened)
        if not opened.host.is_empty:
            self.wake_after(watermark_ms)
        (first, payload), *others = _blobs(closed, hosted.emits)
        yield Row(
            scope=scope,
            **{FIRST: first, PAYLOAD: payload, COMPLETE: opened.complete_from},
            late=operator.late - late,
            open_slices=operator.open_slices,
            state_bytes=operator.nbytes,
            **self._shares(scope, operator),
        )
        for first, payload in others:
            told = dict.fromkeys(_FIGURES)
            yield Row(scope=scope, **{FIRST: first, PAYLOAD: payload, COMPLETE: None}, **told)

    def _shares(self, scope: int, operator: ScopeOperator) -> dict[str, Any]:
        """Tell how much of its state each window reads, in the place of all windows' that it has.

        The names are the same in every bucket, so that the figures can be added up place by place.
        """
        from weft.engines.local.state.window_bytes import window_bytes

        scopes = sorted(self._running[1].items())
        names = [(at, emit.query, emit.label) for at, own in scopes for emit in own.emits]
        if len(names) > MOST_WINDOWS:
            return {"windows": None, "window_bytes": None}
        told = iter(window_bytes(operator))
        return {
            "windows": json.dumps([[query, label] for _, query, label in names]),
            "window_bytes": [next(told) if at == scope else 0 for at, _, _ in names],
        }

    def _opened(self, hosted: HostedScope, scope: int, latest_us: int) -> _Bucket:
        found, (version, _) = self.logged(), self._running
        written_by = int(found.chunks.pop(_VERSION, str(version).encode()))
        if found.is_new:
            return _Bucket(hosted.open(), found)
        if written_by == version:
            return _Bucket(hosted.reopen(found.chunks, self._trust), found)
        before = self._versions.of(written_by)[scope]
        host = hosted.taking_over(before.reopen(found.chunks, self._trust), latest_us)
        known = {(emit.query, emit.label) for emit in before.emits}
        added = [(e.query, e.label) for e in hosted.emits if (e.query, e.label) not in known]
        limits = [[*who, host.operator.complete_from_us.get(who)] for who in added]
        return _Bucket(host, found, json.dumps(limits))

    def _save(self, bucket: _Bucket) -> None:
        changes = bucket.host.operator.changes(self._trust)
        if changes.written or changes.removed:
            version, _ = self._running
            self.log(bucket.found, changes, {_VERSION: str(version).encode()})


def _blobs(closed: pa.Table | None, emits: Sequence[Emit]) -> list[tuple[int | None, bytes | None]]:
    """Write the rows of each query by themselves, so that nobody opens those of another."""
    if closed is None or not closed.num_rows:
        return [(None, None)]
    numbers: dict[str, list[int]] = {}
    for number, emit in enumerate(emits):
        numbers.setdefault(emit.query, []).append(number)
    found: list[tuple[int | None, bytes | None]] = []
    for own in numbers.values():
        rows = closed if len(numbers) == 1 else closed.filter(_are_among(closed[NODE], own))
        if rows.num_rows:
            found.append((min(own), table_chunk(rows, CODEC)))
    return found


def _are_among(nodes: pa.ChunkedArray[Any], own: Sequence[int]) -> pa.Array[Any]:
    numbers = nodes.to_numpy()  # a scope has those of a query side by side
    return pa.array((numbers >= min(own)) & (numbers <= max(own)))


def _together(a: pa.Table | None, b: pa.Table) -> pa.Table:
    return b if a is None else pa.concat_tables([a, b])


def _batch_id() -> int:
    context = TaskContext.get()
    told = None if context is None else context.getLocalProperty(_BATCH_ID)
    return 0 if told is None else int(told)
