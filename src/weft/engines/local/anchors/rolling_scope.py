"""Rows of a stream that are complete, among the events that are held: in order, with features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.anchors.order import LEAST, order_of
from weft.engines.local.anchors.rolling_rows import EVENT, TIME
from weft.engines.local.anchors.tail_slices import event_partials
from weft.engines.local.anchors.trails import Anchored, partial_columns, trail_columns
from weft.engines.local.partials.columns import concat
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import plain
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import read_times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.local.anchors.order import Codes
    from weft.engines.local.anchors.rolling_rows import RollingRows
    from weft.engines.local.anchors.tail_slices import TailSlices
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools, Int64s
    from weft.plan.anchors import Trail


@dataclass(frozen=True, slots=True, eq=False)
class RollingScope:
    """Slices of the tail, events and complete rows, which are looked at as one list of rows."""

    tail: TailSlices | None
    table: pa.Table  # events, then the complete rows
    times_us: Int64s  # of slices and of the table
    events: Int64s  # places of what counts, in the order of key and time
    anchors: Int64s  # places of complete rows, in the same order
    anchored: Anchored

    @staticmethod
    def of(
        rows: RollingRows, history: pa.Table, ready: pa.Table, tail: TailSlices | None
    ) -> RollingScope:
        """Sort what the keys of complete rows have."""
        table = pa.concat_tables([history, ready.select(rows.event_columns)])
        keys = [plain(table.column(name)) for name in rows.keys]
        times = times_of(table)[0]
        if tail is not None:
            slices = [plain(tail.keys.column(name)) for name in rows.keys]
            keys = [pa.concat_arrays(pair) for pair in zip(slices, keys, strict=True)]
            times = np.concatenate([tail.starts_us, times])
        codes = KeyCodes(len(keys)).encode(keys, times.size)
        first = times.size - ready.num_rows
        places = _sorted(codes, times, codes[first:])
        is_anchor, kept = places >= first, counted(ready)
        anchors = places[is_anchor]
        if kept.all():  # rows that are no events are rare, and cost a look at every row
            events, stops = places, np.flatnonzero(is_anchor) + 1
        else:
            is_event = np.append(np.ones(first, np.bool_), kept).take(places)
            events, stops = places[is_event], np.cumsum(is_event, dtype=np.int64)[is_anchor]
        anchored = Anchored(
            codes.take(events),
            times.take(events),
            codes.take(anchors),
            times.take(anchors),
            stops - kept.take(anchors - first),
            stops,
        )
        return RollingScope(tail, table, times, events, anchors, anchored)

    def columns(
        self,
        trails: Sequence[Trail],
        outputs: Sequence[tuple[str, int, AggregateCall]],
        types: Mapping[str, pa.DataType],
    ) -> list[Array]:
        """Return the features of complete rows, in the order in which these were given.

        Outputs name their trail by its place.
        """
        if self.tail is None:
            at: Array = pa.array(self.events)
            found = trail_columns(
                self.anchored,
                trails,
                outputs,
                lambda name: pc.take(plain(self.table.column(name)), at, boundscheck=False),
                types,
            )
        else:
            found = partial_columns(self.anchored, trails, outputs, self._partials(), types)
        back: Array = pa.array(np.argsort(self.anchors, kind="stable"))
        return [column.take(back) for column in found]

    def _partials(self) -> dict[Partial, Held]:
        """Return slices and events as partials, in the order of key and time."""
        assert self.tail is not None
        slices, partials = self.tail, tuple(self.tail.held)
        lifted = event_partials(
            partials, self.times_us[len(slices) :], lambda name: plain(self.table.column(name))
        )
        return {p: concat([slices.held[p], lifted[p]]).take(self.events) for p in partials}


def _sorted(codes: Codes, times_us: Int64s, asked: Codes) -> Int64s:
    """Return the places of all rows whose key is asked for, in the order of key and time."""
    is_asked = np.zeros(int(codes.max(initial=-1)) + 1, np.bool_)
    is_asked[asked] = True
    if is_asked.all():
        order = order_of(codes, times_us)
        return np.arange(codes.size) if order is None else order
    places = np.flatnonzero(is_asked.take(codes))
    order = order_of(codes.take(places), times_us.take(places))
    return places if order is None else places.take(order)


def times_of(rows: pa.Table) -> tuple[Int64s, Bools]:
    """Return times, the least there is where they are NULL, and which are not NULL."""
    times, valid = read_times(plain(rows.column(TIME)), TIME)
    if valid is None:
        return times, np.ones(times.size, np.bool_)
    return np.where(valid, times, LEAST), valid


def counted(rows: pa.Table) -> Bools:
    """Tell which rows are events: those that have a time, and that the filter keeps."""
    _, valid = times_of(rows)
    if EVENT not in rows.column_names:
        return valid
    kept: Bools = valid & plain(rows.column(EVENT)).to_numpy(zero_copy_only=False)
    return kept
