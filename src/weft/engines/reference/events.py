"""Rows of a source as events: filtered, timed, grouped by key."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from weft.aggregates.distinct import canonical
from weft.engines.reference.instances import Event
from weft.engines.scalar.expressions import compiled
from weft.engines.scalar.rows import EventRow
from weft.errors import DataError
from weft.time import instant_us

if TYPE_CHECKING:
    from weft.query import Keys

Rows = Iterable[Mapping[str, Any]]
Key = tuple[Any, ...]


def time_us(value: Any, column: str) -> int | None:
    """Read an event's time: an instant, a date, or microseconds; None where it is NULL."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, dt.datetime):
        return instant_us(value)
    if isinstance(value, dt.date):
        return instant_us(dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC))
    raise DataError(
        f"the time column {column!r} holds {type(value).__name__} {value!r}",
        hint="use a timestamp, a date, or an integer of microseconds since 1970 UTC",
    )


def key_value(value: Any) -> Any:
    """Make equal keys identical; a struct, which Python cannot hash, is the tuple of its fields.

    >>> key_value({"x": -0.0, "y": {"z": None}})
    (0.0, (None,))
    """
    if isinstance(value, Mapping):
        return tuple(map(key_value, value.values()))
    return canonical(value)


def _time_of(row: Mapping[str, Any], column: str) -> Any:
    # The name itself, never an expression: a column may be called `0` or `event time`.
    try:
        return row[column]
    except KeyError:
        raise DataError(
            f"the events have no column {column!r}", hint=f"the columns are {', '.join(row)}"
        ) from None


def events_by_key(
    rows: Rows, time: str, where: str | None, keys: Keys
) -> tuple[dict[Key, list[Event]], int]:
    """Group the events that pass the filter; return them in time order, and how many had no time.

    >>> rows = [{"ts": 2, "k": "a"}, {"ts": None, "k": "a"}, {"ts": 1, "k": "a"}]
    >>> grouped, timeless = events_by_key(rows, "ts", None, (("k", "k"),))
    >>> [e.time_us for e in grouped["a",]], timeless
    ([1, 2], 1)
    """
    keep = compiled(where) if where is not None else None
    read_keys = [compiled(expression) for _, expression in keys]
    groups: dict[Key, list[Event]] = {}
    timeless = 0
    for row in rows:
        if keep is not None and keep(row) is not True:
            continue
        at = time_us(_time_of(row, time), time)
        if at is None:
            timeless += 1
            continue
        key = tuple(key_value(read(row)) for read in read_keys)
        groups.setdefault(key, []).append(
            Event(at, row if isinstance(row, EventRow) else dict(row))
        )
    for events in groups.values():
        events.sort(key=lambda event: event.time_us)  # stable: ties keep the order of arrival
    return groups, timeless
