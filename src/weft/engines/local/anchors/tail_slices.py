"""The tail of rounded windows: one partial per key and slice, in place of events long past.

A window whose beginning is rounded holds a slice of that width wholly or not at all, once the
slice lies before every anchor to come.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.anchors.order import order_of
from weft.engines.local.anchors.rolling_rows import TIME
from weft.engines.local.partials.columns import (
    InTimeOrder,
    KernelPartials,
    ObjectPartials,
    concat,
)
from weft.engines.local.partials.lift import lift, row_partials
from weft.engines.local.state.arrow_shelf import Shelf
from weft.engines.local.values.frame import plain
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import read_times
from weft.kernels.operations import COUNT
from weft.kernels.partials import Partials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.aggregates import Partial
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Int64s

_START = "start"


@dataclass(frozen=True, slots=True, eq=False)
class TailSlices:
    """Partials by key and by the instant at which their slice begins."""

    keys: pa.Table
    starts_us: Int64s
    held: Mapping[Partial, Held]

    def __len__(self) -> int:
        return self.starts_us.size

    @property
    def nbytes(self) -> int:
        """The memory of keys, starts and partials."""
        held = sum(one.nbytes for one in self.held.values())
        return self.keys.nbytes + self.starts_us.nbytes + held

    def take(self, rows: Any) -> TailSlices:
        """Select some, by a mask or by places."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        held = {partial: one.take(at) for partial, one in self.held.items()}
        return TailSlices(self.keys.take(at), self.starts_us[at], held)

    def joined(self, later: TailSlices) -> TailSlices:
        """Put later slices after one's own; no slice is in both."""
        held = {partial: concat([one, later.held[partial]]) for partial, one in self.held.items()}
        keys = pa.concat_tables([self.keys, later.keys])
        return TailSlices(keys, np.concatenate([self.starts_us, later.starts_us]), held)

    def dump(self) -> dict[str, bytes]:
        """Write the slices as chunks: what they are, and their columns."""
        shelf = Shelf()
        for at, name in enumerate(self.keys.column_names):
            shelf.columns[f"key{at}"] = plain(self.keys.column(name))
        shelf.columns[_START] = pa.array(self.starts_us)
        for at, one in enumerate(self.held.values()):
            shelf.put(f"partial{at}", one)
        return {"tail": shelf.dump(), "tail.told": json.dumps(shelf.told).encode()}

    @staticmethod
    def load(
        chunks: Mapping[str, bytes], keys: Sequence[str], partials: Sequence[Partial]
    ) -> TailSlices | None:
        """Read what `dump` wrote, if anything."""
        if "tail" not in chunks:
            return None
        shelf = Shelf.load(chunks["tail"], json.loads(chunks["tail.told"]))
        columns = {name: shelf.columns[f"key{at}"] for at, name in enumerate(keys)}
        starts = np.array(shelf.columns[_START].to_numpy(zero_copy_only=False), np.int64)
        held = {p: _folded(shelf.get(f"partial{at}", p)) for at, p in enumerate(partials)}
        return TailSlices(pa.table(columns), starts, held)


def slices_of(
    events: pa.Table, keys: Sequence[str], width_us: int, partials: Sequence[Partial]
) -> TailSlices:
    """Fold events, which all have a time, into slices of a width.

    >>> from weft.aggregates import Partial
    >>> events = pa.table({"k": ["a", "b", "a"], "time": [1, 3, 2], "x": [4, 5, 6]})
    >>> found = slices_of(events, ["k"], 10, [Partial("sum", ("x",))])
    >>> found.keys.to_pydict(), found.starts_us.tolist(), found.held[Partial("sum", ("x",))].limbs
    ({'k': ['a', 'b']}, [0, 0], (array([10,  5]),))
    """
    key_columns = events.select(list(keys))
    times_us, _ = read_times(plain(events.column(TIME)), TIME)
    codes = KeyCodes(len(keys)).encode([plain(c) for c in key_columns.columns], events.num_rows)
    order = order_of(codes, times_us)
    if order is None:
        order = np.arange(times_us.size)
    codes, times = codes[order], times_us[order]
    starts = times - times % width_us
    begins = np.ones(times.size, np.bool_)
    begins[1:] = (codes[1:] != codes[:-1]) | (starts[1:] != starts[:-1])
    firsts = np.flatnonzero(begins)
    ends = np.append(firsts[1:], times.size)
    at: Array = pa.array(order)
    rows = event_partials(partials, times, lambda name: plain(events.column(name)).take(at))
    held = {partial: one.over_ranges(firsts, ends).settled() for partial, one in rows.items()}
    return TailSlices(key_columns.take(order[firsts]), starts[firsts], held)


def event_partials(
    partials: Sequence[Partial], times_us: Int64s, argument: Callable[[str], Array]
) -> dict[Partial, Held]:
    """Lift every event to partials that can stand beside those of slices; events are in order."""
    found: dict[Partial, Held] = {}
    for partial in partials:
        rows = row_partials(lift(partial, tuple(map(argument, partial.args)), times_us), times_us)
        if isinstance(rows, ObjectPartials) and isinstance(rows.monoid, InTimeOrder):
            lifted = np.empty(len(rows), object)
            lifted[:] = [one for ((_, one),) in rows.objects]
            rows = ObjectPartials(rows.monoid.inner, lifted)
        elif isinstance(rows, KernelPartials) and rows.partials.kind == "count_rows":
            # Rows no longer count one each: their number is not the distance of positions.
            rows = KernelPartials(Partials("count", COUNT, rows.fields[0]), rows.codings)
        found[partial] = rows
    return found


def _folded(held: Held) -> Held:
    """Take partials that were read as what they are: folded in the order of time already."""
    if isinstance(held, ObjectPartials) and isinstance(held.monoid, InTimeOrder):
        return ObjectPartials(held.monoid.inner, held.objects)
    return held
