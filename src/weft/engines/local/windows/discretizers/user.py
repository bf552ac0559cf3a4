"""User-defined windows: the user's own begins and ends, key by key, in event-time order."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.engines.local.windows.discretizers.base import (
    Discretizer,
    Found,
    Int64s,
    SortedEvents,
    ordinals_of_events,
    spanning,
)
from weft.errors import QueryError
from weft.window import UserWindow

if TYPE_CHECKING:
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.windows.events import Timed


_EVENT = "event "  # marks of other windows are beside those of whole events


class OpenWindows(NamedTuple):
    """What is kept of a key: the user's state, and at which of the events kept windows began."""

    state: dict[str, Any]
    begun: list[int]


class Discretized(NamedTuple):
    """One key's answer, rows relative to its first."""

    first: Int64s
    stop: Int64s
    begun: Int64s  # begins of the windows that stay open


@dataclass(slots=True)
class UserDefined(Discretizer):
    """Asks the user's window about the new events of each key."""

    window: UserWindow
    open: dict[int, OpenWindows] = field(default_factory=dict)

    def marks(self, events: Timed) -> dict[str, Array]:
        """A user-defined window may look at every column."""
        return {f"{_EVENT}{name}": column for name, column in events.frame.columns.items()}

    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the windows that ended; without a watermark, all."""
        opened = dict(self.open)
        starts, ends = events.runs()
        ordinals = ordinals_of_events(events)
        keep, cut = (np.zeros(events.keys.size, np.bool_) for _ in range(2))
        firsts, stops = [], []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            key = int(events.keys[start])
            known = opened.get(key) or OpenWindows({}, [])
            state = copy.deepcopy(known.state)
            own = ordinals[start : end + 1] - ordinals[start]
            # A begin is the first event of a row.
            found = self._discretize(events, start, end, state, np.searchsorted(own, known.begun))
            firsts.append(found.first + start)
            stops.append(found.stop + start)
            if watermark_us is None:
                firsts.append(found.begun + start)
                stops.append(np.full(found.begun.size, end))
                continue
            kept_from = int(found.begun[0]) if found.begun.size else end - start
            keep[start + kept_from : end] = True
            cut[start + found.begun] = True
            opened[key] = OpenWindows(state, (own[found.begun] - own[kept_from]).tolist())
        self.open = opened
        nothing = [np.empty(0, np.int64)]
        first, stop = np.concatenate(firsts or nothing), np.concatenate(stops or nothing)
        return spanning(events, first, stop, keep, cut)

    def _discretize(
        self, events: SortedEvents, start: int, end: int, state: dict[str, Any], begun: Int64s
    ) -> Discretized:
        new = start + int(np.argmax(events.new[start:end])) if events.new[start:end].any() else end
        plain = type(self.window).discretize is UserWindow.discretize
        columns = {
            name.removeprefix(_EVENT): array[new:end].to_pylist()
            if plain
            else array[new:end].to_numpy(zero_copy_only=False)
            for name, array in events.marks.items()
            if name.startswith(_EVENT)
        }
        if new == end:
            nothing = np.empty(0, np.int64)
            return Discretized(nothing, nothing, begun)
        begins, ends = (np.asarray(c, np.int64) for c in self.window.discretize(columns, state))
        self._check(begins, ends, begun.size)
        positions = np.arange(new - start, end - start)
        starts = np.concatenate([begun, np.repeat(positions, begins)])
        stops = np.repeat(positions, ends)
        return Discretized(starts[: stops.size], stops, starts[stops.size :])

    def _check(self, begins: Int64s, ends: Int64s, already: int) -> None:
        before = already + np.cumsum(begins) - begins - (np.cumsum(ends) - ends)
        wrong = (begins < 0) | (ends < 0) | (ends > before)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise QueryError(
                f"{self.window} reports {begins[at]} begins and {ends[at]} ends at an event while "
                f"{before[at]} of its windows are open",
                hint="begins and ends are counts, and only an open window can end",
            )

    def snapshot(self) -> dict[str, Any]:
        """Return the state and the open begins of each key."""
        return {str(key): [kept.state, kept.begun] for key, kept in self.open.items()}

    def restore(self, kept: dict[str, Any]) -> None:
        """Take them back."""
        self.open = {int(key): OpenWindows(*value) for key, value in kept.items()}
