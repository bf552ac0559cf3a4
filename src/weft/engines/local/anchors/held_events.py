"""Events held for features to come: sorted runs, merged as they grow, trimmed behind a horizon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from weft.engines.local.anchors.order import LEAST, order_of, spans
from weft.engines.local.values.distinct import distinct
from weft.engines.local.values.keys import KeyCodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.anchors.order import Codes
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Int64s

_MERGED = 2  # a run is merged with the one before unless that is so many times as long


class _Run(NamedTuple):
    """Events in the order of (key, time, arrival)."""

    keys: Codes
    times_us: Int64s
    rows: pa.Table

    def take(self, at: Int64s) -> _Run:
        return _Run(self.keys[at], self.times_us[at], self.rows.take(at))


@dataclass(slots=True)
class HeldEvents:
    """Events by key and time; `last_rows` of each key stay however old they are."""

    keys: int
    last_rows: int = 0
    horizon_us: int = LEAST  # older events are forgotten, but for the last rows before it
    codes: KeyCodes = field(init=False)
    runs: list[_Run] = field(default_factory=list)
    _added: int = 0  # events since old ones were last looked for

    def __post_init__(self) -> None:
        self.codes = KeyCodes(self.keys)

    def __len__(self) -> int:
        return sum(run.keys.size for run in self.runs)

    @property
    def nbytes(self) -> int:
        """The memory of all rows."""
        return sum(r.keys.nbytes + r.times_us.nbytes + r.rows.nbytes for r in self.runs)

    def add(self, keys: Sequence[Array], times_us: Int64s, rows: pa.Table) -> None:
        """Take events in any order."""
        if not times_us.size:
            return
        made = _Run(self.codes.encode(keys, times_us.size), times_us, rows)
        order = order_of(made.keys, made.times_us)
        self.runs.append(made if order is None else made.take(order))
        while len(self.runs) > 1 and self.runs[-2].keys.size < _MERGED * self.runs[-1].keys.size:
            newer, older = self.runs.pop(), self.runs.pop()
            self.runs.append(_merged(older, newer))
        self._added += made.keys.size

    def forget(self, horizon_us: int) -> None:
        """Move the horizon; once half of all events are new, let go of those behind it.

        So at most as many old events are held as others, and each is looked at a few times.
        """
        self.horizon_us = max(horizon_us, self.horizon_us)
        if 2 * self._added >= len(self):
            self.runs = [run for run in map(self._trimmed, self.runs) if run.keys.size]
            self._added = 0

    def of_keys(self, keys: Sequence[Array], first_us: Int64s) -> list[pa.Table]:
        """Return the events of some keys, each from an instant on, and the last rows before it."""
        # On a copy: keys that are only asked for are not remembered.
        wanted = self.codes.saved().encode(keys, first_us.size)
        if not wanted.size:
            return []
        distinct, places = np.unique(wanted, return_inverse=True)
        earliest = np.full(distinct.size, np.iinfo(np.int64).max)
        np.minimum.at(earliest, places, first_us)
        found = []
        for run in self.runs:
            starts, stops = spans(run.keys, run.times_us, distinct, earliest, self.last_rows)
            lengths = stops - starts
            offsets = np.cumsum(lengths) - lengths
            at = np.repeat(starts - offsets, lengths) + np.arange(int(lengths.sum()))
            found.append(run.rows.take(at))
        return found

    def _trimmed(self, run: _Run) -> _Run:
        if self.horizon_us == LEAST:
            return run
        keys = distinct(run.keys)
        horizon = np.full(keys.size, self.horizon_us)
        starts, stops = spans(run.keys, run.times_us, keys, horizon, self.last_rows)
        kept = np.zeros(run.keys.size + 1, np.int64)
        kept[starts] += 1
        np.subtract.at(kept, stops, 1)
        at = np.flatnonzero(np.cumsum(kept[:-1]))
        return run if at.size == run.keys.size else run.take(at)


def _merged(older: _Run, newer: _Run) -> _Run:
    both = _Run(
        np.concatenate([older.keys, newer.keys]),
        np.concatenate([older.times_us, newer.times_us]),
        pa.concat_tables([older.rows, newer.rows]),
    )
    order = order_of(both.keys, both.times_us)
    return both if order is None else both.take(order)
