"""What a target table promises: one row for each key and window instance, written all or none.

A writer (a stream, a refresh) leaves its mark in the transaction that has its rows. A mark that is
there already says that the rows are, too: so what is written again after a crash changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from weft.errors import QueryError, UnsupportedError
from weft.query import JoinQuery
from weft.window import (
    CalendarWindow,
    CumulatingWindow,
    PeriodicWindow,
    SessionWindow,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from weft.query import AnyQuery

# Instances of one of these never have the same bounds; others are cut by events, which may come
# several at one time.
_APART = (PeriodicWindow, CumulatingWindow, CalendarWindow, SessionWindow)


@dataclass(frozen=True, slots=True)
class RowIdentity:
    """The columns that tell the rows of a query apart: its keys, and label and bounds of windows.

    `obstacle` says why rows that these columns do not tell apart can come, if they can.
    """

    keys: tuple[str, ...]
    window: tuple[str, ...] = ()
    obstacle: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.keys, *self.window)

    @property
    def start(self) -> str | None:
        """The column of the beginning of a window, by which tables may be cut; None if unknown."""
        return self.window[1] if self.window else None


def identity_of(query: AnyQuery) -> RowIdentity:
    """Tell which columns of its results no two rows of a query share.

    >>> from weft import Query, counting
    >>> query = Query("lows", source="t", keys=["k"], windows={"1h": "1 hour"},
    ...               aggs={"n": "count(*)"})
    >>> identity_of(query).columns
    ('k', 'window', 'window_start', 'window_end')
    >>> identity_of(query.with_windows({"10": counting(10)})).obstacle
    "window '10' is cut by events, and two of its instances may have the same bounds"
    """
    keys = tuple(name for name, _ in query.keys)
    windows = () if isinstance(query, JoinQuery) else query.windows
    for label, window in windows:
        if not isinstance(window, _APART):
            reason = "is cut by events, and two of its instances may have the same bounds"
            return RowIdentity(keys, query.window_columns, f"window {label!r} {reason}")
    return RowIdentity(keys, query.window_columns)


def checked(
    given: tuple[str, ...], query: str, identity: RowIdentity | None, where: object
) -> RowIdentity:
    """Return the columns that tell rows apart: those that were given, or those of the query."""
    if given:
        return RowIdentity(given)
    if identity is None:
        raise QueryError(
            f"{where} keeps one row for each key, and a statement does not say which columns of "
            f"{query} these are",
            hint="name them behind the place: ?key=device,start",
        )
    if identity.obstacle is not None:
        raise UnsupportedError(
            f"{where} keeps rows of {query} by key and bounds: {identity.obstacle}",
            hint="write them into a directory, or into a topic with delivery=at-least-once",
        )
    return identity


@dataclass(frozen=True, slots=True)
class Mark:
    """Which writer wrote last, and the number of what it wrote; numbers of a writer only grow."""

    writer: str
    number: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """The instances of a window that begin in `[from_us, to_us)`: rows of them that are not written
    anew go."""

    label: str
    from_us: int
    to_us: int


class Target(Protocol):
    """A table that takes rows by what they are."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that tell rows apart where the user says so; else those of the query."""
        ...

    def named(self, query: str) -> Target:
        """Return the table of one query, where several are written to the same place."""
        ...

    def check(self) -> None:
        """Refuse a place that cannot be written, before there is anything to write."""
        ...

    def is_empty(self) -> bool:
        """Tell whether there is no row, or no table yet."""
        ...

    def last(self, writer: str) -> int | None:
        """Return the number that a writer wrote last."""
        ...

    def write(
        self, rows: pa.Table, identity: RowIdentity, mark: Mark, cleared: Sequence[Stretch] = ()
    ) -> bool:
        """Put rows in place of those with the same identity, in one step with the mark.

        False if the writer was there with this number, or a later one: then nothing changes.
        """
        ...
