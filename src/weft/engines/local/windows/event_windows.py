"""The part of an operator that holds events: for the windows of a scope that events delimit.

Events wait until the watermark has passed them, because only then their order is known. Then every
window's discretizer sees them once, in event-time order. What open instances need stays, as slices
between the begins of all of them: windows by different measures share slices, and there are never
more slices than begins of open instances, because a begin whose instances have ended cuts no more.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.partials.lift import lift, row_partials
from weft.engines.local.windows.discretizers import Discretizer, SortedEvents, discretizer_of
from weft.engines.local.windows.event_rows import EventRows, joined, parted
from weft.engines.local.windows.flow import Flow, combines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import Partial
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.windows.events import Events
    from weft.kernels.partials import Bools, Int64s
    from weft.plan import Roll
    from weft.window import Window

Rolls = tuple["Roll", ...]  # those of one window that an emit reads together


@dataclass(slots=True)
class Member:
    """One window that events delimit, with the partials anyone wants of it."""

    name: str  # of its state, the same in every process
    window: Window
    partials: tuple[Partial, ...]
    discretizer: Discretizer = field(init=False)
    since_us: int | None = None  # older events are not looked at; None for no limit

    def __post_init__(self) -> None:
        self.discretizer = discretizer_of(self.window)

    def saved(self) -> Member:
        """Return this as it is now, to go back to."""
        kept = copy.copy(self)
        # A discretizer replaces what it keeps and never writes into it.
        kept.discretizer = copy.copy(self.discretizer)
        return kept

    def sees(self, rows: EventRows, new: Bools, before: Bools) -> Int64s:
        """Return the positions of the rows this window looks at: its open ones and new ones."""
        fresh = new if self.since_us is None else new & (rows.times_us >= self.since_us)
        return np.flatnonzero(fresh | before)


@dataclass(slots=True)
class Delimited:
    """Windows that share the events they hold, with all partials anyone wants of any."""

    members: dict[Rolls, Member]
    waiting: list[EventRows] = field(default_factory=list)  # not behind the watermark yet
    kept: EventRows | None = None  # of open instances
    combines: int = 0

    @property
    def name(self) -> str:
        """The name of the events' state."""
        return next(iter(self.members.values())).name

    @property
    def partials(self) -> tuple[Partial, ...]:
        """The partials of all members."""
        return tuple(dict.fromkeys(p for one in self.members.values() for p in one.partials))

    def saved(self) -> Delimited:
        """Return this as it is now, to go back to."""
        kept = copy.copy(self)
        kept.waiting = list(self.waiting)
        kept.members = {rolls: one.saved() for rolls, one in self.members.items()}
        return kept

    @property
    def nbytes(self) -> int:
        """The memory of all events and slices held."""
        return sum(rows.nbytes for rows in (*self.waiting, *([self.kept] if self.kept else [])))

    def rows_of(self, events: Events) -> EventRows:
        """Lift a batch; nothing is added yet."""
        timed = events.timed
        partials = {
            p: row_partials(lift(p, timed.arguments(p), timed.times_us), timed.times_us)
            for p in self.partials
        }
        marks: dict[str, Array] = {}
        for one in self.members.values():
            marks |= one.discretizer.marks(timed)
        return EventRows(events.keys, timed.times_us, partials, marks, timed.times_us)

    def advance(self, watermark_us: int | None) -> dict[Rolls, Flow]:
        """Return the instances that closed; None as watermark closes all."""
        ready, ahead = parted(self.waiting, watermark_us)
        parts = ([self.kept] if self.kept is not None else []) + ready
        if not parts:
            return {}
        rows, new, before = self._ordered(parts)
        closed: dict[Rolls, Flow] = {}
        alive: dict[str, Bools] = {}
        cut = np.zeros(len(rows), np.bool_)
        for rolls, one in self.members.items():
            alive[one.name] = np.zeros(len(rows), np.bool_)
            seen = one.sees(rows, new, before[one.name])
            if not seen.size:
                continue  # one that came later may find no marks of its own yet
            found = one.discretizer.find(_events(rows, new, seen), watermark_us)
            alive[one.name][seen[found.keep]] = True
            cut[seen[found.cut]] = True
            first, stop = seen[found.first], seen[found.stop - 1] + 1
            partials = {p: rows.partials[p].over_ranges(first, stop) for p in one.partials}
            self.combines += combines_of(first, stop)
            closed[rolls] = Flow(rows.keys[first], found.starts_us, found.ends_us, partials)
        self.waiting = ahead
        if watermark_us is None:
            self.kept = None
        elif ready or any((flags != before[name]).any() for name, flags in alive.items()):
            self.kept = self._compacted(rows, alive, cut)  # else they stay the same object
        return closed

    def _ordered(self, parts: Sequence[EventRows]) -> tuple[EventRows, Bools, dict[str, Bools]]:
        """Order rows by (key, time, arrival); tell which are new, and which were whose before."""
        rows = joined(parts)
        known = 0 if self.kept is None else len(self.kept)
        fresh = np.lexsort((rows.times_us[known:], rows.keys[known:])) + known
        order = np.concatenate([np.arange(known), fresh])
        # What was kept is in order and older than what is new: to merge the two is quick.
        order = order[np.argsort(rows.keys[order], kind="stable")]
        before = {}
        for one in self.members.values():
            flags = np.zeros(len(rows), np.bool_)
            if self.kept is not None:
                flags[:known] = self.kept.alive[one.name]
            before[one.name] = flags[order]
        return rows.take(order), order >= known, before

    def _compacted(self, rows: EventRows, alive: dict[str, Bools], cut: Bools) -> EventRows | None:
        """Combine what open instances need into slices from begin to begin."""
        needed = np.logical_or.reduce(list(alive.values()))
        kept = np.flatnonzero(needed)
        if not kept.size:
            return None
        begins = cut[kept]
        begins[0] = True
        begins[1:] |= rows.keys[kept[1:]] != rows.keys[kept[:-1]]
        firsts = kept[begins]
        # What a key needs is the end of its rows, without gaps.
        lasts = np.append(np.flatnonzero(begins)[1:], kept.size) - 1
        self.combines += kept.size - firsts.size
        return rows.sliced(firsts, kept[lasts] + 1, alive)


def _events(rows: EventRows, new: Bools, seen: Int64s) -> SortedEvents:
    every = seen.size == len(rows)
    at = pa.array(seen)
    marks = rows.marks if every else {name: array.take(at) for name, array in rows.marks.items()}
    counts = rows.event_counts()
    return SortedEvents(
        rows.keys[seen], rows.times_us[seen], rows.lasts_us[seen], counts[seen], marks, new[seen]
    )


def stores_of(members: Sequence[tuple[Rolls, Member]]) -> list[Delimited]:
    """Let windows share events; those with partials that grow keep theirs to themselves."""
    shared: dict[Rolls, Member] = {}
    alone: list[Delimited] = []
    for rolls, one in members:
        if any(p.laws().holistic for p in one.partials):
            alone.append(Delimited({rolls: one}))
        else:
            shared[rolls] = one
    return [*([Delimited(shared)] if shared else []), *alone]
