"""Events of windows that events delimit: as partials of their own, or as slices of several.

A slice runs from one begin of an open instance to the next: nobody will ever read less of it
(Carbone et al., "Cutty"), so its events are combined into one row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.partials.columns import Held, concat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import Partial
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class EventRows:
    """Events or slices of neighbouring events of a key, with what discretizers ask of the first."""

    keys: npt.NDArray[np.integer]
    times_us: Int64s
    partials: dict[Partial, Held]
    marks: dict[str, Array]
    lasts_us: Int64s  # of events, the same array as their times
    sizes: Int64s | None = None  # how many events; None for one each
    alive: dict[str, Bools] = field(default_factory=dict)  # whose open instances have them

    def __len__(self) -> int:
        return self.keys.size

    @property
    def nbytes(self) -> int:
        """The memory of keys, times, partials and marks."""
        held = sum(partials.nbytes for partials in self.partials.values())
        marks: int = sum(array.nbytes for array in self.marks.values())
        slices = 0 if self.sizes is None else self.sizes.nbytes + self.lasts_us.nbytes
        return self.keys.nbytes + self.times_us.nbytes + held + marks + slices

    def event_counts(self) -> Int64s:
        """Return how many events each row has."""
        return np.ones(len(self), np.int64) if self.sizes is None else self.sizes

    def only(self, partials: Sequence[Partial], names: Mapping[str, str]) -> EventRows:
        """Keep some partials, and the rows of some windows, under their new names."""
        kept = {partial: self.partials[partial] for partial in partials}
        alive = {names[name]: flags for name, flags in self.alive.items() if name in names}
        rows = EventRows(
            self.keys, self.times_us, kept, self.marks, self.lasts_us, self.sizes, alive
        )
        if not self.alive:
            return rows
        needed = np.zeros(len(self), np.bool_)
        for flags in alive.values():
            needed |= flags
        return rows if needed.all() else rows.take(np.flatnonzero(needed))

    def take(self, rows: npt.NDArray[Any]) -> EventRows:
        """Select rows by position."""
        at = pa.array(rows)
        return EventRows(
            self.keys[rows],
            self.times_us[rows],
            {p: held.take(rows).settled() for p, held in self.partials.items()},
            {name: array.take(at) for name, array in self.marks.items()},
            self.lasts_us[rows],
            None if self.sizes is None else self.sizes[rows],
            {name: flags[rows] for name, flags in self.alive.items()},
        )

    def sliced(self, firsts: Int64s, stops: Int64s, alive: dict[str, Bools]) -> EventRows:
        """Combine the rows `[first, stop)` into one each."""
        if firsts.size == 0:
            return self.take(firsts)
        at = pa.array(firsts)
        counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.event_counts())])
        partials = {p: h.over_ranges(firsts, stops).settled() for p, h in self.partials.items()}
        return EventRows(
            self.keys[firsts],
            self.times_us[firsts],
            partials,
            {name: array.take(at) for name, array in self.marks.items()},
            self.lasts_us[stops - 1],
            counts[stops] - counts[firsts],
            {name: flags[firsts] for name, flags in alive.items()},
        )


def joined(parts: Sequence[EventRows]) -> EventRows:
    """Put rows one after the other; whose they are is not joined."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    plain = all(part.sizes is None for part in parts)
    times = np.concatenate([part.times_us for part in parts])
    return EventRows(
        np.concatenate([part.keys for part in parts]),
        times,
        {p: concat([part.partials[p] for part in parts]) for p in first.partials},
        _joined_marks(parts),
        times if plain else np.concatenate([part.lasts_us for part in parts]),
        None if plain else np.concatenate([part.event_counts() for part in parts]),
    )


def _joined_marks(parts: Sequence[EventRows]) -> dict[str, Array]:
    """Put marks one after the other; NULL where a window that asks came later than the row."""
    types = {name: array.type for part in parts for name, array in part.marks.items()}
    return {
        name: pa.concat_arrays([part.marks.get(name, pa.nulls(len(part), type)) for part in parts])
        for name, type in types.items()
    }


def parted(
    batches: Sequence[EventRows], watermark_us: int | None
) -> tuple[list[EventRows], list[EventRows]]:
    """Part batches into the events behind the watermark and those ahead of it."""
    if watermark_us is None:
        return list(batches), []
    behind, ahead = [], []
    for rows in batches:
        passed = rows.times_us < watermark_us
        if passed.all():
            behind.append(rows)
        elif not passed.any():
            ahead.append(rows)
        else:
            behind.append(rows.take(np.flatnonzero(passed)))
            ahead.append(rows.take(np.flatnonzero(~passed)))
    return behind, ahead
