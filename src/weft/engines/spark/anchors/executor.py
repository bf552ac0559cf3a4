"""What runs on executors: rows sorted by key and time stream through, points come out complete.

Held are the rows of one chunk and, of the last key, the events that later points may still need:
those within the longest range, and those of the last rows asked for. A chunk is at least as long
as what is held, so that no row is looked at more than a few times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from weft.aggregates.base import add_custom
from weft.engines.local.anchors.order import LEAST
from weft.engines.local.anchors.rolling_rows import EVENT, TIME
from weft.engines.local.anchors.trails import Anchored, trail_columns
from weft.engines.local.values.frame import plain
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import read_times
from weft.engines.spark.anchors.shipment import POINT, SIDE
from weft.engines.spark.columnar.arrow_batches import CHUNK_BYTES, CHUNK_ROWS, in_batches
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from weft.aggregates import AggregateCall
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools, Int64s
    from weft.plan.anchors import Trail


@dataclass(frozen=True)
class Described:
    """What an executor needs to know."""

    keys: tuple[str, ...]
    rolling: bool
    payload: tuple[str, ...]
    trails: tuple[list[Trail], ...]  # of each source
    outputs: tuple[tuple[int, int, AggregateCall], ...]  # source, place of the trail, call
    types: tuple[pa.DataType, ...]


@dataclass(frozen=True, slots=True)
class Feeder:
    """Runs on executors: one partition of rows in order in, points with features out."""

    described: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Feed the rows chunk by chunk."""
        stream: TrailStream | None = None
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            waiting.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            stream = stream or self._opened()
            if rows >= max(CHUNK_ROWS, stream.held) or (
                size >= CHUNK_BYTES and rows >= stream.held
            ):
                yield from in_batches(stream.process(pa.Table.from_batches(waiting)))
                waiting, rows, size = [], 0, 0
        if stream is not None and (rows or stream.held):
            last = pa.Table.from_batches(waiting) if waiting else None
            yield from in_batches(stream.process(last, final=True))

    def _opened(self) -> TrailStream:
        described, customs = cloudpickle.loads(self.described)
        for own, function in customs:
            add_custom(own, function)
        return TrailStream(described)


class TrailStream:
    """Rows in, in the order of (key, time); out come the points whose windows are complete."""

    def __init__(self, described: Described) -> None:
        self._of = described
        self._kept: pa.Table | None = None
        self._pending = np.empty(0, np.bool_)  # rows kept that are points not handed out yet

    @property
    def held(self) -> int:
        """The number of rows that are kept."""
        return 0 if self._kept is None else self._kept.num_rows

    def process(self, chunk: pa.Table | None, *, final: bool = False) -> pa.Table:
        """Take rows that follow; return points with features, all that are left when `final`."""
        parts = [part for part in (self._kept, chunk) if part is not None]
        rows = _Rows.of(pa.concat_tables(parts).combine_chunks(), self._of)
        points = rows.points
        points[: self.held] = self._pending
        # Events at the last instant may still come, and a point there may have to see them.
        last = (rows.runs == rows.runs[-1]) & (rows.times_us == rows.times_us[-1])
        ready = points if final else points & ~last
        found = self._features(rows, np.flatnonzero(ready))
        if final:
            self._kept = None
            return found
        needed = points & last
        for source, trails in enumerate(self._of.trails):
            needed |= _needed(rows, rows.events(source), trails)
        kept = np.flatnonzero(needed)
        self._kept, self._pending = rows.table.take(kept), (points & last)[kept]
        return found

    def _features(self, rows: _Rows, ready: Int64s) -> pa.Table:
        at: Array = pa.array(ready)
        columns = {name: plain(rows.table.column(name)).take(at) for name in self._of.payload}
        values: list[Array] = [None] * len(self._of.outputs)
        for source, trails in enumerate(self._of.trails):
            own = [i for i, output in enumerate(self._of.outputs) if output[0] == source]
            events = np.flatnonzero(rows.events(source))
            anchored = _anchored(rows, events, ready, rolling=self._of.rolling)
            outputs = [(str(i), self._of.outputs[i][1], self._of.outputs[i][2]) for i in own]
            types = {str(i): self._of.types[i] for i in own}
            found = trail_columns(anchored, trails, outputs, rows.arguments(events), types)
            for i, column in zip(own, found, strict=True):
                values[i] = column
        named = {f"f{i}": column for i, column in enumerate(values)}
        return pa.table({**columns, **named})


def _anchored(rows: _Rows, events: Int64s, ready: Int64s, *, rolling: bool) -> Anchored:
    starts = stops = None
    if rolling:
        is_event = rows.events(0)
        stops = np.cumsum(is_event, dtype=np.int64)[ready]
        starts = stops - is_event[ready]
    return Anchored(
        rows.runs[events],
        rows.times_us[events],
        rows.runs[ready],
        rows.times_us[ready],
        starts,
        stops,
    )


def _needed(rows: _Rows, events: Bools, trails: list[Trail]) -> Bools:
    """Mark the events of the last key that points yet to come may look at."""
    last_us = int(rows.times_us[-1])
    own = events & (rows.runs == rows.runs[-1])
    first_us = min(
        (t.window.interval(last_us)[0] for t in trails if isinstance(t.window, Trailing)),
        default=last_us,
    )
    needed: Bools = own & (rows.times_us >= max(first_us, LEAST))
    most = max(
        (t.window.rows_back for t in trails if not isinstance(t.window, Trailing)), default=0
    )
    if most:
        tied = int(np.count_nonzero(own & (rows.times_us == last_us)))
        needed[np.flatnonzero(own)[-most - tied :]] = True
    return needed


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """A table of rows in order: whose they are, when they happened, what they are."""

    table: pa.Table
    rolling: bool
    runs: Int64s  # numbers of neighbouring rows of one key
    times_us: Int64s  # the least where there is none
    sides: Int64s | None
    is_event: Bools | None  # of rows that are both

    @staticmethod
    def of(table: pa.Table, described: Described) -> _Rows:
        codes = KeyCodes(len(described.keys)).encode(
            [plain(table.column(name)) for name in described.keys], table.num_rows
        )
        runs = np.zeros(table.num_rows, np.int64)
        np.cumsum(codes[1:] != codes[:-1], out=runs[1:])
        times, valid = read_times(plain(table.column(TIME)), TIME)
        timed = np.ones(times.size, np.bool_) if valid is None else valid
        if valid is not None:
            times = np.where(valid, times, LEAST)
        if not described.rolling:
            sides = plain(table.column(SIDE)).to_numpy(zero_copy_only=False)
            return _Rows(table, False, runs, times, sides, None)
        if EVENT in table.column_names:
            timed = timed & plain(table.column(EVENT)).to_numpy(zero_copy_only=False)
        return _Rows(table, True, runs, times, None, timed)

    @property
    def points(self) -> Bools:
        """Which rows are points."""
        if self.sides is None:
            return np.ones(self.runs.size, np.bool_)
        return np.equal(self.sides, POINT)

    def events(self, source: int) -> Bools:
        """Which rows are events of a source."""
        if self.sides is None:
            assert self.is_event is not None
            return self.is_event
        return np.equal(self.sides, POINT + 1 + source)

    def arguments(self, events: Int64s) -> _Arguments:
        """Return the columns of some events, by name."""
        return _Arguments(self.table, pa.array(events), {})


@dataclass(frozen=True, slots=True, eq=False)
class _Arguments:
    table: pa.Table
    at: Array
    found: dict[str, Array]

    def __call__(self, name: str) -> Array:
        if name not in self.found:
            self.found[name] = plain(self.table.column(name)).take(self.at)
        return self.found[name]
