"""The part of an operator that holds events: for one window that events delimit.

Events wait until the watermark has passed them, because only then their order is known. Then the
discretizer sees them once, in event-time order; those of open instances stay, as partials.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.discretizers import Discretizer, SortedEvents, discretizer_of
from weft.engines.local.flows import Flow
from weft.engines.local.held import Held, concat
from weft.engines.local.lifting import lift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import Partial
    from weft.engines.local.arrow import Array
    from weft.engines.local.events import Events
    from weft.kernels.partials import Int64s
    from weft.window import Window


@dataclass(frozen=True, slots=True, eq=False)
class EventRows:
    """Events as partials of their own, with what the discretizer wants to know of them."""

    keys: npt.NDArray[np.integer]
    times_us: Int64s
    partials: dict[Partial, Held]
    marks: dict[str, Array]

    def __len__(self) -> int:
        return self.keys.size

    @property
    def nbytes(self) -> int:
        """The memory of keys, times, partials and marks."""
        held = sum(partials.nbytes for partials in self.partials.values())
        marks: int = sum(array.nbytes for array in self.marks.values())
        return self.keys.nbytes + self.times_us.nbytes + held + marks

    def only(self, partials: Sequence[Partial]) -> EventRows:
        """Keep some partials."""
        kept = {partial: self.partials[partial] for partial in partials}
        return EventRows(self.keys, self.times_us, kept, self.marks)

    def take(self, rows: npt.NDArray[Any]) -> EventRows:
        """Select rows by position."""
        at = pa.array(rows)
        return EventRows(
            self.keys[rows],
            self.times_us[rows],
            {p: held.take(rows).settled() for p, held in self.partials.items()},
            {name: array.take(at) for name, array in self.marks.items()},
        )


def joined(parts: Sequence[EventRows]) -> EventRows:
    """Put rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return EventRows(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.times_us for part in parts]),
        {p: concat([part.partials[p] for part in parts]) for p in first.partials},
        {name: pa.concat_arrays([part.marks[name] for part in parts]) for name in first.marks},
    )


@dataclass(slots=True)
class Delimited:
    """One window of a scope that events delimit, with all partials anyone wants of it."""

    window: Window
    partials: tuple[Partial, ...]
    discretizer: Discretizer = field(init=False)
    waiting: list[EventRows] = field(default_factory=list)  # not behind the watermark yet
    kept: EventRows | None = None  # of open instances
    since_us: int | None = None  # older events are not looked at; None for no limit

    def __post_init__(self) -> None:
        self.discretizer = discretizer_of(self.window)

    def saved(self) -> Delimited:
        """Return this as it is now, to go back to."""
        kept = copy.copy(self)
        kept.waiting = list(self.waiting)
        # A discretizer replaces what it keeps and never writes into it.
        kept.discretizer = copy.copy(self.discretizer)
        return kept

    @property
    def nbytes(self) -> int:
        """The memory of all events held."""
        return sum(rows.nbytes for rows in (*self.waiting, *([self.kept] if self.kept else [])))

    def rows_of(self, events: Events) -> EventRows:
        """Lift a batch; nothing is added yet."""
        if self.since_us is not None:
            events = events.filter(events.times_us >= self.since_us)
        timed = events.timed
        partials = {
            p: lift(p, tuple(map(timed.argument, p.args)), timed.times_us).row_partials(
                timed.times_us
            )
            for p in self.partials
        }
        return EventRows(events.keys, timed.times_us, partials, self.discretizer.marks(timed))

    def advance(self, watermark_us: int | None) -> Flow | None:
        """Return the instances that closed; None as watermark closes all. No event, no answer."""
        ready, ahead = _parted(self.waiting, watermark_us)
        parts = ([self.kept] if self.kept is not None else []) + ready
        if not parts:
            return None
        rows = joined(parts)
        before = 0 if self.kept is None else len(self.kept)
        order = np.lexsort((rows.times_us, rows.keys))
        behind = rows.take(order)
        events = SortedEvents(behind.keys, behind.times_us, behind.marks, order >= before)
        found = self.discretizer.find(events, watermark_us)
        self.waiting = ahead
        kept = np.flatnonzero(found.keep & (watermark_us is not None))
        if ready or kept.size < before:  # rows that stay as they are stay the same object
            self.kept = behind.take(kept) if kept.size else None
        partials = {
            p: held.over_ranges(found.first, found.stop) for p, held in behind.partials.items()
        }
        return Flow(behind.keys[found.first], found.starts_us, found.ends_us, partials)


def _parted(
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
