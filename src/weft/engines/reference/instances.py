"""Which events are in which instance: for every window kind, over one key's events in time order.

In time order the events of an instance are neighbours, so an instance is a pair of positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from weft.engines.scalar.expressions import compiled
from weft.errors import DataError, QueryError
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    UserWindow,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.window import TimedWindow


class Event(NamedTuple):
    """One event of a key: its time and its columns."""

    time_us: int
    row: dict[str, Any]


class Instance(NamedTuple):
    """One instance of a window that holds at least one event of the key."""

    start_us: int
    end_us: int
    first: int  # position of its first event
    stop: int  # position after its last event


def instances_of(window: Window, events: Sequence[Event]) -> list[Instance]:
    """Return the instances that hold at least one of a key's events, which are in time order.

    >>> events = [Event(t, {}) for t in (1, 2, 9)]
    >>> [tuple(instance) for instance in instances_of(SessionWindow(3), events)]
    [(1, 5, 0, 2), (9, 12, 2, 3)]
    """
    match window:
        case PeriodicWindow() | CumulatingWindow() | CalendarWindow():
            return _timed(window, events)
        case SessionWindow():
            return _sessions(window, events)
        case CountingWindow():
            starts = range(0, len(events) - window.rows + 1, window.every)
            return [_spanning(events, first, first + window.rows) for first in starts]
        case PunctuatedWindow():
            return _punctuated(window, events)
        case MeasuredWindow():
            return _measured(window, events)
        case UserWindow():
            return _user(window, events)
        case _:
            assert_never(window)


def _spanning(events: Sequence[Event], first: int, stop: int) -> Instance:
    """An instance that events delimit: from the first to one microsecond after the last."""
    return Instance(events[first].time_us, events[stop - 1].time_us + 1, first, stop)


def _timed(window: TimedWindow, events: Sequence[Event]) -> list[Instance]:
    spans: dict[tuple[int, int], list[int]] = {}
    for position, event in enumerate(events):
        for bounds in window.instances(event.time_us):
            span = spans.setdefault(bounds, [position, position])
            span[1] = position + 1
    return [Instance(*bounds, *span) for bounds, span in spans.items()]


def _sessions(window: SessionWindow, events: Sequence[Event]) -> list[Instance]:
    found: list[Instance] = []
    first = 0
    for position in range(1, len(events) + 1):
        last = events[position - 1].time_us
        if position == len(events) or events[position].time_us - last > window.gap_us:
            found.append(Instance(events[first].time_us, last + window.gap_us, first, position))
            first = position
    return found


def _punctuated(window: PunctuatedWindow, events: Sequence[Event]) -> list[Instance]:
    begins = compiled(window.predicate)
    starts = [i for i, event in enumerate(events) if begins(event.row) is True]
    stops = [*starts[1:], len(events)]
    return [_spanning(events, a, b) for a, b in zip(starts, stops, strict=True)] if starts else []


def _measured(window: MeasuredWindow, events: Sequence[Event]) -> list[Instance]:
    read = compiled(window.column)
    spans: dict[int, list[int]] = {}
    before: Any = None
    for position, event in enumerate(events):
        value = read(event.row)
        if value is None or (before is not None and not value >= before):
            raise DataError(
                f"{window.column} goes from {before!r} to {value!r}: a measured window needs a "
                "column that never decreases within a key, and no NULL",
                hint="filter such events out with where=, or order the events by another column",
            )
        before = value
        for ordinal in window.ordinals(value):
            span = spans.setdefault(ordinal, [position, position])
            span[1] = position + 1
    return [_spanning(events, *span) for span in spans.values()]


def _user(window: UserWindow, events: Sequence[Event]) -> list[Instance]:
    state: dict[str, Any] = {}
    begun: list[int] = []
    found: list[Instance] = []
    for position, event in enumerate(events):
        ends, begins = window.ends(event.row, state), window.begins(event.row, state)
        if ends < 0 or begins < 0 or ends > len(begun):
            raise QueryError(
                f"{window} reports {begins} begins and {ends} ends at an event while "
                f"{len(begun)} of its windows are open",
                hint="begins and ends are counts, and only an open window can end",
            )
        found += [_spanning(events, first, position) for first in begun[:ends]]
        begun = begun[ends:] + [position] * begins
    return found + [_spanning(events, first, len(events)) for first in begun]
