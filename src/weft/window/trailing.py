"""Windows that end at an anchor, an event or a label: a range of time, or the last rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from weft.errors import QueryError, suggest
from weft.time import Duration, duration_us, format_us

Closed = Literal["both", "left", "right", "neither"]
CLOSED: tuple[Closed, ...] = get_args(Closed)


def check_closed(closed: str) -> None:
    """Refuse a word that does not say which ends a window holds.

    >>> check_closed("lef")
    Traceback (most recent call last):
    weft.errors.QueryError: a window cannot be closed at 'lef'
    hint: did you mean 'left'?
    """
    if closed not in CLOSED:
        hint = suggest(str(closed), CLOSED, f"use one of {', '.join(CLOSED)}")
        raise QueryError(f"a window cannot be closed at {closed!r}", hint=hint)


@dataclass(frozen=True, slots=True)
class Trailing:
    """The range of time before an anchor; `closed` says which of its two ends it holds.

    With `round_us` the window begins at the multiple of it at or before its first instant. With
    `lag_us` it ends so long before the anchor, and begins that much earlier too.

    >>> Trailing(10, "left").interval(25), Trailing(10, "both").interval(25)
    ((15, 25), (15, 26))
    >>> Trailing(10, "right", round_us=8).interval(25)
    (16, 26)
    >>> str(Trailing(3_600_000_000, "left", 300_000_000))
    'TRAIL 1h [t-1h down to 5m, t)'
    >>> str(Trailing(3_000_000_000, lag_us=600_000_000))
    'TRAIL 50m [t-1h, t-10m]'
    """

    range_us: int
    closed: Closed = "both"
    round_us: int | None = None
    lag_us: int = 0

    def __post_init__(self) -> None:
        check_closed(self.closed)
        if self.range_us <= 0:
            raise QueryError(
                f"a trailing window of {format_us(self.range_us)} holds nothing",
                hint="give a range greater than zero",
            )
        if self.round_us is not None and self.round_us <= 0:
            raise QueryError(
                f"window starts cannot be rounded to {format_us(self.round_us)}",
                hint="give a duration greater than zero, or None for exact windows",
            )
        if self.lag_us < 0:
            raise QueryError(
                f"a window cannot end {format_us(-self.lag_us)} after its anchor",
                hint="windows end at their anchor, or before it",
            )

    @property
    def first_us(self) -> int:
        """The first instant, counted from the anchor, before it is rounded."""
        return -self.lag_us - self.range_us + (self.closed not in ("both", "left"))

    @property
    def stop_us(self) -> int:
        """The first instant after the window, counted from the anchor."""
        return -self.lag_us + (self.closed in ("both", "right"))

    def interval(self, at_us: int) -> tuple[int, int]:
        """Return the first instant of the window at an anchor, and the first one after it."""
        first = at_us + self.first_us
        return first - first % (self.round_us or 1), at_us + self.stop_us

    def __str__(self) -> str:
        first = format_us(self.lag_us + self.range_us)
        last = f"-{format_us(self.lag_us)}" if self.lag_us else ""
        down = f" down to {format_us(self.round_us)}" if self.round_us else ""
        before = "[" if self.closed in ("both", "left") else "("
        after = "]" if self.closed in ("both", "right") else ")"
        return f"TRAIL {format_us(self.range_us)} {before}t-{first}{down}, t{last}{after}"


@dataclass(frozen=True, slots=True)
class TrailingRows:
    """The last rows of a key up to an anchor; `closed` says whether those at the anchor count.

    With `lag` they are counted from so many rows before that.

    >>> str(TrailingRows(10)), str(TrailingRows(10, "left")), str(TrailingRows(10, lag=2))
    ('ROWS 10 up to t', 'ROWS 10 before t', 'ROWS 10 up to 2 rows before t')
    """

    rows: int
    closed: Closed = "both"
    lag: int = 0

    def __post_init__(self) -> None:
        check_closed(self.closed)
        whole = isinstance(self.rows, int) and not isinstance(self.rows, bool)
        if not whole or self.rows <= 0:
            raise QueryError(
                f"a window of the last {self.rows} rows holds nothing",
                hint="give a whole number of rows, at least 1",
            )
        if self.lag < 0:
            raise QueryError(
                f"a window cannot end {-self.lag} rows after its anchor",
                hint="windows end at their anchor, or before it",
            )

    @property
    def stop_us(self) -> int:
        """The first instant after the window, counted from the anchor."""
        return int(self.holds_anchor)

    @property
    def rows_back(self) -> int:
        """How many rows before an anchor the first one of its window is."""
        return self.rows + self.lag

    @property
    def holds_anchor(self) -> bool:
        """True when events at the anchor's own time count."""
        return self.closed in ("both", "right")

    def __str__(self) -> str:
        last = f"{self.lag} rows before t" if self.lag else "t"
        return f"ROWS {self.rows} {'up to' if self.holds_anchor else 'before'} {last}"


AnchoredWindow = Trailing | TrailingRows


def rows(n: int) -> TrailingRows:
    """The last `n` rows of a key, for `weft.rolling` and `weft.as_of`.

    >>> rows(10).rows
    10
    """
    return TrailingRows(n)


def anchored(
    label: str, given: Duration | TrailingRows, closed: Closed, round: Duration | None
) -> AnchoredWindow:
    """Read one entry of `windows=`: a duration, or `weft.rows(n)`.

    >>> str(anchored("1h", "1 hour", "left", None)), str(anchored("3", rows(3), "left", None))
    ('TRAIL 1h [t-1h, t)', 'ROWS 3 before t')
    """
    if isinstance(given, TrailingRows):
        return replace(given, closed=closed)
    try:
        range_us = duration_us(given)
    except QueryError as wrong:
        raise QueryError(
            f"window {label!r} does not end at an anchor: {wrong.message}",
            hint="give a duration such as '1 hour', or weft.rows(10)",
        ) from None
    return Trailing(range_us, closed, None if round is None else duration_us(round))
