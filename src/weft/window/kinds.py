"""The window kinds that are not periodic in time: frozen values that validate themselves."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

from weft.errors import DataError, QueryError, suggest
from weft.time import DAY, format_us, instant, instant_us
from weft.window.periodic import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

CALENDAR_UNITS = ("day", "week", "month", "quarter", "year")


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Events of a key no further apart than `gap_us`, from the first to `gap_us` after the last.

    Two events exactly one gap apart are in the same session.
    """

    gap_us: int

    def __post_init__(self) -> None:
        if self.gap_us <= 0:
            raise QueryError(
                f"a session gap of {format_us(self.gap_us)} joins no events",
                hint="give a gap greater than zero",
            )

    def __str__(self) -> str:
        return f"SESSION {format_us(self.gap_us)}"


@dataclass(frozen=True, slots=True)
class CountingWindow:
    """The last `rows` events of a key in event-time order, after every `every` events."""

    rows: int
    every: int

    def __post_init__(self) -> None:
        whole = isinstance(self.rows, int) and isinstance(self.every, int)
        if not whole or self.rows <= 0 or self.every <= 0:
            raise QueryError(
                f"a counting window of {self.rows} rows every {self.every} is empty",
                hint="give whole numbers of rows, and of rows between results, of at least 1",
            )

    def __str__(self) -> str:
        return f"COUNT {self.rows}" + (f"/{self.every}" if self.every != self.rows else "")


@dataclass(frozen=True, slots=True)
class CumulatingWindow:
    """Instances that share a start and grow by `step_us` until they span `range_us`.

    >>> [str(w) for w in CumulatingWindow(6, 2).parts()]
    ['HOP 2us/6us', 'HOP 4us/6us', 'TUMBLE 6us']
    """

    range_us: int
    step_us: int

    def __post_init__(self) -> None:
        if self.range_us <= 0 or self.step_us <= 0 or self.range_us % self.step_us:
            raise QueryError(
                f"a cumulating window of {format_us(self.range_us)} cannot grow in steps of "
                f"{format_us(self.step_us)}",
                hint="give a positive range that is a multiple of a positive step",
            )

    def __str__(self) -> str:
        return f"CUMULATE {format_us(self.range_us)}/{format_us(self.step_us)}"

    def parts(self) -> tuple[PeriodicWindow, ...]:
        """Return the periodic windows whose instances together are this window's."""
        steps = range(self.step_us, self.range_us + 1, self.step_us)
        return tuple(PeriodicWindow(reach, self.range_us) for reach in steps)

    def instances(self, time_us: int) -> Iterator[tuple[int, int]]:
        """Yield the instances that hold `time_us`, shortest first."""
        start = time_us // self.range_us * self.range_us
        first = start + ((time_us - start) // self.step_us + 1) * self.step_us
        for end in range(first, start + self.range_us + 1, self.step_us):
            yield start, end


@lru_cache(maxsize=4096)
def _midnight_us(zone: str, year: int, month: int, day: int) -> int:
    local, here = dt.datetime(year, month, day, tzinfo=ZoneInfo(zone)), ZoneInfo(zone)
    first = instant_us(local)  # fold=0: of a midnight that comes twice, the first
    if instant(first).astimezone(here).replace(tzinfo=None) == local.replace(tzinfo=None):
        return first
    # Clocks jumped over midnight: the day starts where they jumped to.
    before, after = first - DAY, first
    while after - before > 1:
        middle = (before + after) // 2
        if instant(middle).astimezone(here).date() < local.date():
            before = middle
        else:
            after = middle
    return after


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    """Days, ISO weeks, months, quarters or years of a time zone, as long as they really are.

    >>> spring = instant_us(dt.datetime(2024, 3, 31, 12, tzinfo=dt.UTC))
    >>> ((start, end),) = CalendarWindow("day", "Europe/Berlin").instances(spring)
    >>> (end - start) // 3_600_000_000
    23
    """

    unit: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.unit not in CALENDAR_UNITS:
            raise QueryError(
                f"the calendar has no unit {self.unit!r}",
                hint=suggest(str(self.unit), CALENDAR_UNITS, f"use {', '.join(CALENDAR_UNITS)}"),
            )
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError, TypeError, AttributeError):
            zones = sorted(available_timezones())
            raise QueryError(
                f"unknown time zone {self.zone!r}",
                hint=suggest(str(self.zone), zones, "use a name like 'Europe/Berlin'"),
            ) from None

    def __str__(self) -> str:
        return f"CALENDAR {self.unit} {self.zone}"

    def instances(self, time_us: int) -> Iterator[tuple[int, int]]:
        """Yield the one unit of the calendar that holds `time_us`."""
        try:
            local = instant(time_us).astimezone(ZoneInfo(self.zone)).date()
            first = self._first_day(local)
            following = self._next(first)
            # Where clocks go back over midnight, the old date returns after the new one began.
            while _midnight_us(self.zone, *_ymd(following)) <= time_us:
                first, following = following, self._next(following)
            yield _midnight_us(self.zone, *_ymd(first)), _midnight_us(self.zone, *_ymd(following))
        except (OverflowError, ValueError):
            raise DataError(
                f"{self} cannot hold an event at {time_us} microseconds: outside the calendar's "
                "years 1 to 9999",
                hint="filter such events out with where=",
            ) from None

    def _first_day(self, day: dt.date) -> dt.date:
        match self.unit:
            case "day":
                return day
            case "week":
                return day - dt.timedelta(days=day.weekday())
            case "month":
                return day.replace(day=1)
            case "quarter":
                return dt.date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
            case _:
                return dt.date(day.year, 1, 1)

    def _next(self, first: dt.date) -> dt.date:
        match self.unit:
            case "day":
                return first + dt.timedelta(days=1)
            case "week":
                return first + dt.timedelta(days=7)
            case _:
                months = {"month": 1, "quarter": 3, "year": 12}[self.unit]
                year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
                return dt.date(year, month + 1, 1)


def _ymd(day: dt.date) -> tuple[int, int, int]:
    return day.year, day.month, day.day


@dataclass(frozen=True, slots=True)
class PunctuatedWindow:
    """A window begins at each event of a key for which the SQL predicate holds."""

    predicate: str

    def __post_init__(self) -> None:
        if not isinstance(self.predicate, str) or not self.predicate.strip():
            raise QueryError(
                "a punctuated window needs a predicate",
                hint="give SQL over the event's columns, such as \"kind = 'start'\"",
            )

    def __str__(self) -> str:
        return f"PUNCTUATED {self.predicate}"


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """Periodic over a non-decreasing column of a key (distance, odometer), not over time."""

    column: str
    range_units: int | float
    slide_units: int | float

    def __post_init__(self) -> None:
        for name, value in (("range", self.range_units), ("slide", self.slide_units)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 < value < float("inf"):
                raise QueryError(
                    f"a {name} of {value!r} over {self.column} is not a positive number",
                    hint=f"give the {name} in the unit of {self.column}",
                )

    def __str__(self) -> str:
        slide = f"/{self.slide_units:g}" if self.slide_units != self.range_units else ""
        return f"MEASURED {self.column} {self.range_units:g}{slide}"

    def ordinals(self, value: int | float) -> range:
        """Return the ordinals m of the instances `[m*slide, m*slide + range)` that hold `value`.

        >>> MeasuredWindow("km", 10, 5).ordinals(12.5)
        range(1, 3)
        """
        exact, slide = Fraction(value), Fraction(self.slide_units)
        last = exact // slide
        first = (exact - Fraction(self.range_units)) // slide + 1
        return range(first, last + 1)


@dataclass(frozen=True, slots=True)
class LandmarkWindow:
    """Everything since the beginning; only a stream of a join may have it (`[UNTIL NOW]`)."""

    def __str__(self) -> str:
        return "LANDMARK"
