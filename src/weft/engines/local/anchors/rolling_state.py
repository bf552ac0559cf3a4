"""Rolling windows over a stream: rows wait for the watermark, and events stay as long as needed.

A row is complete when the watermark has passed its time: no event comes any more that its windows
hold. Rows that come later than that are late, and dropped. Of events that were handed out those
stay that a row to come may look at; where windows are rounded, those of slices that lie wholly
before the watermark are folded into one partial per key and slice.

The state is written in chunks. A micro-batch adds one with the rows that came; when these outweigh
the rest, all that is alive is written anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.anchors.order import LEAST, order_of
from weft.engines.local.anchors.rolling_scope import RollingScope, counted, times_of
from weft.engines.local.anchors.tail_slices import TailSlices, slices_of
from weft.engines.local.state.journal import StateChanges
from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import plain
from weft.engines.local.values.keys import KeyCodes
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.local.anchors.rolling_rows import RollingRows
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools

_TOLD, _HISTORY, _WAITING, _CAME = "told", "history", "waiting", "came"
# When all is written anew: chunks of rows that came since, and bytes of them beyond the rest's.
_MOST_CHUNKS = 32
_FEW_BYTES = 1 << 16


@dataclass(slots=True)
class RollingState:
    """Rows that wait, and events that rows to come may need."""

    of: RollingRows
    watermark_us: int = LEAST  # rows before were handed out
    late: int = 0  # rows that came after theirs was
    whole_us: int = LEAST  # events of ranges before are in slices
    waiting: pa.Table = field(init=False)
    history: pa.Table = field(init=False)
    tail: TailSlices | None = None
    _came: list[pa.Table] = field(default_factory=list)
    _sizes: dict[str, int] = field(default_factory=dict)  # of the chunks that are written

    def __post_init__(self) -> None:
        self.waiting = self.of.schema.empty_table()
        self.history = self.waiting.select(self.of.event_columns)

    def __len__(self) -> int:
        tail = 0 if self.tail is None else len(self.tail)
        return int(self.waiting.num_rows + self.history.num_rows) + tail

    @property
    def nbytes(self) -> int:
        """The memory of rows, events and slices."""
        tail = 0 if self.tail is None else self.tail.nbytes
        return int(self.waiting.nbytes + self.history.nbytes) + tail

    def process(self, rows: pa.Table | None, watermark_us: int | None) -> pa.Table:
        """Take rows in any order; return those that the watermark has passed, with features.

        Rows without a time wait for nothing.
        """
        at_once = self.of.schema.empty_table()
        if rows is not None:
            rows = rows.cast(self.of.schema)
            times, valid = times_of(rows)
            in_time = times >= self.watermark_us
            self.late += int(np.count_nonzero(valid & ~in_time))
            at_once, rows = _some(rows, ~valid), _some(rows, valid & in_time)
            self._came.append(rows)
            self.waiting = pa.concat_tables([self.waiting, rows])
        if watermark_us is not None:
            self.watermark_us = max(self.watermark_us, watermark_us)
        ready = self._in_order(pa.concat_tables([at_once, self._passed()]))
        found = self._features(ready)
        self._remember(ready)
        return found

    def _passed(self) -> pa.Table:
        """Take out the rows that the watermark has passed."""
        passed = times_of(self.waiting)[0] < self.watermark_us
        ready, self.waiting = _some(self.waiting, passed), _some(self.waiting, ~passed)
        return ready

    def _in_order(self, rows: pa.Table) -> pa.Table:
        """Bring rows of one instant into the order of their values, as a batch of Spark has it."""
        if not self.of.ties or rows.num_rows < 2:
            return rows
        keys: dict[str, Array] = {}
        for name in self.of.ties:
            column = plain(rows.column(name))
            # NULL comes before all values, and NaN after them.
            keys[f"{name} is valid"] = column.is_valid()
            if pa.types.is_floating(column.type):
                keys[f"{name} is nan"] = pc.fill_null(pc.is_nan(column), False)
            keys[name] = column
        by = [(name, "ascending") for name in keys]
        return rows.take(pc.sort_indices(pa.table(keys), sort_keys=by))

    def _features(self, ready: pa.Table) -> pa.Table:
        of = self.of
        if not ready.num_rows:
            return of.output.empty_table()
        ranges = [at for at, t in enumerate(of.trails) if isinstance(t.window, Trailing)]
        others = [at for at in range(len(of.trails)) if at not in ranges]
        # Slices serve ranges of time; the last rows are events, however old they are.
        groups = [[*ranges, *others]] if self.tail is None else [g for g in (ranges, others) if g]
        types = dict(zip((name for name, _, _ in of.outputs), of.types, strict=True))
        columns: dict[str, Array] = {name: plain(ready.column(name)) for name in of.payload}
        for trails in groups:
            tail, history = None, self.history
            if self.tail is not None and trails[0] in ranges:
                tail = self.tail
                history = _some(history, times_of(history)[0] >= self.whole_us)
            scope = RollingScope.of(of, history, ready, tail)
            outputs = [(n, trails.index(at), call) for n, at, call in of.outputs if at in trails]
            found = scope.columns([of.trails[at] for at in trails], outputs, types)
            columns |= zip((name for name, _, _ in outputs), found, strict=True)
        return pa.Table.from_arrays([columns[n] for n in of.output.names], schema=of.output)

    def _remember(self, ready: pa.Table) -> None:
        """Keep the events among rows that were handed out, as long as rows to come need them."""
        events = _some(ready, counted(ready)).select(self.of.event_columns)
        self.history = pa.concat_tables([self.history, events])
        first_us = max(self.of.horizon_us(self.watermark_us), self.whole_us)
        self.history = _some(self.history, self._needed_from(first_us))

    def _needed_from(self, first_us: int) -> Bools:
        """Mark the events from an instant on, and the last ones of every key."""
        times, _ = times_of(self.history)
        needed: Bools = times >= first_us
        if self.of.last_rows and not needed.all():
            keys = [plain(self.history.column(name)) for name in self.of.keys]
            codes = KeyCodes(len(keys)).encode(keys, times.size)
            order = order_of(codes, times)
            order = np.arange(times.size) if order is None else order
            lasts = np.append(np.flatnonzero(np.diff(codes[order])), times.size - 1)
            later = np.repeat(lasts, np.diff(lasts, prepend=-1)) - np.arange(times.size)
            needed[order] |= later < self.of.last_rows
        return needed

    def _fold(self) -> None:
        """Put events of slices that are whole into slices, and forget slices behind all rows."""
        until, width_us = self.of.whole_until(self.watermark_us), self.of.slice_us
        if width_us is not None and until > self.whole_us:
            times, _ = times_of(self.history)
            whole = (times >= self.whole_us) & (times < until)
            events = _some(self.history, whole)
            made = slices_of(events, self.of.keys, width_us, self.of.range_partials)
            self.tail = made if self.tail is None else self.tail.joined(made)
            self.whole_us = until
            self.history = _some(self.history, self._needed_from(until))
        if self.tail is not None:
            kept = self.tail.starts_us >= self.of.horizon_us(self.watermark_us)
            self.tail = self.tail.take(kept) if kept.any() else None

    def changes(self) -> StateChanges:
        """Return what is to be written since the last time."""
        told = {"watermark_us": self.watermark_us, "whole_us": self.whole_us}
        came = [rows for rows in self._came if rows.num_rows]
        self._came.clear()
        recent = [name for name in self._sizes if name.startswith(_CAME)]
        written: dict[str, bytes] = {}
        removed: tuple[str, ...] = ()
        if came:
            number = len(recent)
            written[f"{_CAME}{number}"] = table_chunk(pa.concat_tables(came))
        size = sum(map(len, written.values())) + sum(self._sizes[name] for name in recent)
        rest = sum(self._sizes.values()) - sum(self._sizes[name] for name in recent)
        if len(recent) + len(written) > _MOST_CHUNKS or size > max(rest, _FEW_BYTES):
            self._fold()
            told["whole_us"] = self.whole_us
            written = {_HISTORY: table_chunk(self.history), _WAITING: table_chunk(self.waiting)}
            written |= {} if self.tail is None else self.tail.dump()
            removed = tuple(name for name in self._sizes if name not in written)
        written[_TOLD] = json.dumps(told).encode()
        for name in removed:
            del self._sizes[name]
        self._sizes |= {name: len(chunk) for name, chunk in written.items()}
        return StateChanges(written, tuple(name for name in removed if name != _TOLD))

    @staticmethod
    def load(of: RollingRows, chunks: Mapping[str, bytes]) -> RollingState:
        """Read the state from its chunks; it goes on as if it had never been written."""
        state = RollingState(of)
        if _TOLD not in chunks:
            return state
        told = json.loads(chunks[_TOLD])
        state.watermark_us, state.whole_us = told["watermark_us"], told["whole_us"]
        state._sizes = {name: len(chunk) for name, chunk in chunks.items()}
        came = sorted((name for name in chunks if name.startswith(_CAME)), key=_number)
        rows = [read_table(chunks[name]) for name in (_WAITING, *came) if name in chunks]
        if _HISTORY in chunks:
            state.history = read_table(chunks[_HISTORY])
        state.tail = TailSlices.load(chunks, of.keys, of.range_partials)
        state.waiting = pa.concat_tables([state.waiting, *rows])
        state._remember(state._in_order(state._passed()))
        return state


def _number(name: str) -> int:
    return int(name.removeprefix(_CAME))


def _some(rows: pa.Table, kept: Bools) -> pa.Table:
    return rows if kept.all() else rows.filter(pa.array(kept))
