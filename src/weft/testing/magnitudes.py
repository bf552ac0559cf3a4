"""Random workloads and events at real magnitudes, each made from one number.

`weft.testing.strategies` draws small values, where border cases meet. These are the other scale:
windows from milliseconds to years in one workload, events of the years 1 to 9999 on grids of a
microsecond to a day, thousands of rows, and values of every type up to the ends of their range.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft import agg
from weft.query import Query, Workload
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.aggregates import AggregateCall

    Random = np.random.Generator

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
YEAR_1_US, YEAR_10000_US = -62_135_596_800 * SECOND_US, 253_402_300_800 * SECOND_US
SOURCE = "events"
# From a microsecond to a year; windows are a few of one of these.
UNITS_US = (1, 1000, SECOND_US, 60 * SECOND_US, 3600 * SECOND_US, DAY_US, 30 * DAY_US, 365 * DAY_US)
# What an event may cost all engines together: the instances it is in, times the aggregates.
MOST_WORK = 120_000

_TEXTS = (
    "", " ", "a", "A", "b", "o'hara", '"q"', "`t`", "a\\b", "x;--", "/* */", "%_", "\t\n", "\x00",
    "é", "e\u0301", "ß", "中文", "🜁", "\u202eabc", "\uffff", "ab" * 40,
)  # fmt: skip
_INTEGERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
_DOUBLES = (
    0.0, -0.0, 1.5, -1.5, float("nan"), float("inf"), float("-inf"), 5e-324, -5e-324,
    1.7976931348623157e308, -1.7976931348623157e308, 2.0**53 + 2, 0.1,
)  # fmt: skip
_CENTS = (Decimal(0), Decimal("0.01"), Decimal("-0.01"), Decimal("9999999999999999.99"))
_WIDE = (Decimal(0), Decimal(f"{'9' * 28}.{'9' * 10}"), Decimal(f"-{'9' * 28}.{'9' * 10}"),
         Decimal("1E-10"), Decimal("-1E-10"))  # fmt: skip
_BYTES = (b"", b"\x00", b"\xff" * 9, b"a", b"ab", b"\x80\x00")
_DAYS = (-719_162, 2_932_896, 0, -1, 19_000, 19_001)  # the years 1 and 9999 among them

# Columns by name: their type, the values that are drawn, and what is drawn else.
_COLUMNS: dict[str, tuple[pa.DataType, Sequence[Any], Callable[[Random], Any] | None]] = {
    "s": (pa.string(), _TEXTS, None),
    "i": (pa.int64(), _INTEGERS, lambda r: int(r.integers(-(2**63), 2**63 - 1))),
    "n": (pa.int64(), (0, 1, -1), lambda r: int(r.integers(-(2**40), 2**40))),
    "h": (pa.int32(), (0, 2**31 - 1, -(2**31)), lambda r: int(r.integers(-1000, 1000))),
    "x": (pa.float64(), _DOUBLES, lambda r: float(r.normal() * 10.0 ** r.integers(-300, 300))),
    # Of one sign and no great difference in size: sums do not depend on their order.
    "y": (pa.float64(), (1.0, 2.5, float("nan"), float("inf")), lambda r: float(r.uniform(1, 1e6))),
    "c": (pa.decimal128(18, 2), _CENTS, lambda r: Decimal(int(r.integers(-(10**9), 10**9))) / 100),
    "w": (pa.decimal128(38, 10), _WIDE, lambda r: Decimal(int(r.integers(-(2**62), 2**62)))),
    "b": (pa.binary(), _BYTES, None),
    "day": (pa.date32(), _DAYS, lambda r: int(r.integers(-719_162, 2_932_896))),
    "flag": (pa.bool_(), (True, False), None),
}
_KEYS = ("s", "i", "h", "x", "c", "b", "day", "flag")
_STRUCT = "st"  # a text and a double together, in the place of the text as a key
_ORDERED = ("s", "i", "n", "h", "x", "c", "w", "day", "flag")
_FILTERS = (None, None, "n > 0", "flag", "x IS NOT NULL", "s <> 'o''hara'", "NOT flag OR h < 100")


@dataclass(frozen=True, slots=True)
class Case:
    """A workload and the events it is asked of."""

    workload: Workload
    events: pa.Table
    seed: int


def random_case(seed: int, most_rows: int = 3000) -> Case:
    """Return the workload and the events of a number, always the same.

    >>> one, again = random_case(7), random_case(7)
    >>> one.events["ts"].equals(again.events["ts"]), one.workload == again.workload
    (True, True)
    """
    random = np.random.default_rng(seed)
    rows = int(random.integers(0, 12) if random.random() < 0.2 else random.integers(1, most_rows))
    grid_us = int(random.choice([1, 1000, SECOND_US, 60 * SECOND_US, DAY_US]))
    queries = int(random.integers(1, 4))
    work = MOST_WORK // max(rows, 1) // queries
    # Drawn by numbers of their own: all else of a case is as it was before there were structs.
    structs = bool(np.random.default_rng((seed, 1)).random() < 0.5)
    workload = Workload(_query(f"q{at}", random, work, structs) for at in range(queries))
    # Bounds of windows are dates too: events stay so far from the ends as bounds are from events.
    margin_us = max(_margin_us(w) for q in workload.queries for _, w in q.windows)  # type: ignore[union-attr]
    ends_us = YEAR_1_US + margin_us, YEAR_10000_US - 1 - margin_us
    return Case(workload, _events(random, rows, grid_us, ends_us), seed)


def _margin_us(window: Window) -> int:
    """Return how far the bounds of an instance may be from an event in it."""
    match window:
        case PeriodicWindow():
            return window.range_us + window.slide_us
        case CumulatingWindow():
            return 2 * window.range_us
        case SessionWindow():
            return window.gap_us
        case CalendarWindow():
            return 367 * DAY_US
        case _:
            return 1


def _query(name: str, random: Random, work: int, structs: bool) -> Query:
    aggs = [_call(random) for _ in range(int(random.integers(1, 5)))]
    windows: list[Window] = []
    left = work // len(aggs)
    for _ in range(int(random.integers(1, 6))):
        most = max(1, min(60, left // 2))
        window, instances = _window(random, most)
        left -= instances
        windows.append(window)
        if left <= 0:
            break
    keys = random.choice(_KEYS, int(random.integers(0, 3)), replace=False).tolist()
    return Query(
        name,
        source=SOURCE,
        time="ts",
        keys=[_STRUCT if structs and key == "s" else key for key in keys],
        where=_FILTERS[int(random.integers(len(_FILTERS)))],
        windows={f"w{at}": window for at, window in enumerate(windows)},
        aggs={f"a{at}": call for at, call in enumerate(aggs)},
    )


def _window(random: Random, most: int) -> tuple[Window, int]:
    """Return a window, and about how many of its instances an event is in: `most` or fewer."""
    unit_us = int(UNITS_US[int(random.integers(len(UNITS_US)))])
    slide = int(random.integers(1, 40 if unit_us < 30 * DAY_US else 4))
    times = int(random.integers(1, most + 1))
    kind = int(random.integers(12))
    if kind < 5:  # hops whose range is, and is not, a multiple of the slide
        range_us = slide * times * unit_us + int(random.integers(0, 2)) * (unit_us // 3)
        offset_us = int(random.integers(0, slide * unit_us + 1))
        return PeriodicWindow(range_us, slide * unit_us, offset_us), times + 1
    if kind == 5:  # gaps between the instances
        return PeriodicWindow(slide * unit_us, (slide + times) * unit_us, 0), 1
    if kind == 6:
        return SessionWindow(slide * unit_us), 1
    if kind == 7:
        return CumulatingWindow(slide * times * unit_us, slide * unit_us), times
    if kind == 8:
        return CountingWindow(slide * times, slide), times
    if kind == 9:
        return PunctuatedWindow("flag" if times % 2 else "h % 7 = 0"), 1
    if kind == 10:
        return MeasuredWindow("km", slide * times, slide), times
    zones = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Australia/Lord_Howe")
    units = ("day", "week", "month", "quarter", "year")
    return CalendarWindow(units[times % 5], zones[int(random.integers(len(zones)))]), 1


def _call(random: Random) -> AggregateCall:
    any_, other = (str(random.choice(list(_COLUMNS))) for _ in range(2))
    ordered = str(random.choice(_ORDERED))
    exact = str(random.choice(["n", "h", "c", "y"]))
    whole = str(random.choice(["i", "n", "h"]))
    calls: tuple[Callable[[], AggregateCall], ...] = (
        agg.count,
        lambda: agg.count(any_),
        lambda: agg.min(ordered),
        lambda: agg.max(ordered),
        lambda: agg.first(any_),
        lambda: agg.last(other),
        lambda: agg.min_by(any_, ordered),
        lambda: agg.max_by(other, ordered),
        lambda: agg.count_distinct(any_),
        lambda: agg.sum(exact),
        lambda: agg.avg(exact),
        lambda: agg.sum("CASE WHEN flag THEN h ELSE n END"),
        lambda: agg.var("h"),
        lambda: agg.stddev_pop("h"),
        lambda: agg.bit_and(whole),
        lambda: agg.bit_or(whole),
        lambda: agg.bit_xor(whole),
        lambda: agg.bool_and("flag"),
        lambda: agg.bool_or("n > h"),
        lambda: agg.median("h"),
        lambda: agg.percentile("y", 0.9),
    )
    return calls[int(random.integers(len(calls)))]()


def _events(random: Random, rows: int, grid_us: int, ends_us: tuple[int, int]) -> pa.Table:
    """Draw events on a grid: an hour to centuries of them, tied where the grid is coarse."""
    span_us = min(int(10 ** random.uniform(6, 18)), ends_us[1] - ends_us[0])
    if random.random() < 0.7:  # today's dates, most of the time
        first_us, span_us = int(1.7e15 - random.uniform(0, 2e15)), min(span_us, 10**15)
    else:
        latest_us = ends_us[1] - span_us
        somewhere_us = int(random.integers(ends_us[0], latest_us + 1))
        first_us = (ends_us[0], latest_us, somewhere_us)[int(random.integers(3))]
    times = first_us + random.integers(0, span_us + 1, rows)
    times = np.clip(times // grid_us * grid_us, *ends_us)
    order = np.argsort(times, kind="stable")
    km = np.empty(rows, np.int64)
    km[order] = np.cumsum(random.integers(0, 3, rows))
    missing = random.random(rows) < 0.02
    columns: dict[str, Any] = {
        "ts": pa.array(times, pa.int64(), mask=missing).cast(pa.timestamp("us", "UTC")),
        "km": pa.array(km),
    }
    for name, (type_, chosen, drawn) in _COLUMNS.items():
        columns[name] = _column(random, rows, type_, chosen, drawn)
    parts = {"text": columns["s"], "double": columns["x"]}
    columns[_STRUCT] = pa.StructArray.from_arrays([*parts.values()], names=[*parts])
    return pa.table(columns)


def _column(
    random: Random,
    rows: int,
    type_: pa.DataType,
    chosen: Sequence[Any],
    drawn: Callable[[Random], Any] | None,
) -> pa.Array[Any]:
    """Draw a few distinct values, the ends of the range among them, and rows of those."""
    few = list(random.permutation(np.arange(len(chosen))))[: int(random.integers(1, 12))]
    values = [chosen[int(at)] for at in few]
    if drawn is not None:
        values += [drawn(random) for _ in range(int(random.integers(0, 40)))]
    known: pa.Array[Any] = pa.array([*values, None], type_)
    nulls = 0.1 if random.random() < 0.7 else 0.0
    places = random.integers(0, len(values), rows)
    places[random.random(rows) < nulls] = len(values)
    return known.take(places)
