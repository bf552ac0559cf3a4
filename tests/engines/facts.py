"""What windows mean wherever there are windows, told by a few events each: for every engine.

Each fact is a sentence, events in the order of their arrival, a window, an aggregate, and the rows:
key, bounds in seconds, value. All are of our own making; where systems differ, weft's choice is
written in docs/semantics.md. Facts about lateness are told in micro-batches.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any, NamedTuple

import pyarrow as pa

import weft
from weft import agg

S = 1_000_000
Row = tuple[Any, float, float, Any]  # key, start and end in seconds, value


class Fact(NamedTuple):
    """A sentence, and what shows it."""

    says: str
    events: list[tuple[float | None, str | None, float | None]]  # seconds, key, value
    window: Any
    rows: list[Row]
    call: Any = agg.count()
    by_key: bool = False
    where: str | None = None


def at(*seconds: float) -> list[tuple[float | None, str | None, float | None]]:
    return [(one, "a", 1.0) for one in seconds]


def of(*values: float | None) -> list[tuple[float | None, str | None, float | None]]:
    """Values of one window of ten seconds, a second apart."""
    return [(float(second), "a", value) for second, value in enumerate(values)]


def utc(text: str) -> float:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp()


TEN = weft.tumbling("10 seconds")
FACTS = [
    Fact("windows begin at multiples of their length since 1970", at(12), TEN, [(None, 10, 20, 1)]),
    Fact("a window has its start and not its end", at(10, 19.999999, 20), TEN,
         [(None, 10, 20, 2), (None, 20, 30, 1)]),
    Fact("the first instant of 1970 begins a window", at(0), TEN, [(None, 0, 10, 1)]),
    Fact("before 1970 windows lie on the same grid", at(-1, -10, -11), TEN,
         [(None, -20, -10, 1), (None, -10, 0, 2)]),
    Fact("an offset moves the grid", at(12, 4), weft.tumbling("10 seconds", "5 seconds"),
         [(None, -5, 5, 1), (None, 5, 15, 1)]),
    Fact("an offset of a whole window moves nothing", at(12),
         weft.tumbling("10 seconds", "10 seconds"), [(None, 10, 20, 1)]),
    Fact("nothing in a window is no row", at(1, 31), TEN, [(None, 0, 10, 1), (None, 30, 40, 1)]),
    Fact("a hop is as often counted as windows overlap", at(12),
         weft.hopping("10 seconds", "5 seconds"), [(None, 5, 15, 1), (None, 10, 20, 1)]),
    Fact("a range need be no multiple of the slide", at(8), weft.hopping("7 seconds", "3 seconds"),
         [(None, 3, 10, 1), (None, 6, 13, 1)]),
    Fact("between samples events count nowhere", at(1, 3, 6),
         weft.hopping("2 seconds", "5 seconds"), [(None, 0, 2, 1), (None, 5, 7, 1)]),
    Fact("cumulating windows grow from one start", at(2, 7, 11),
         weft.cumulating("10 seconds", "5 seconds"),
         [(None, 0, 5, 1), (None, 0, 10, 2), (None, 10, 15, 1), (None, 10, 20, 1)]),
    Fact("a session lasts a gap longer than its last event", at(3), weft.session("5 seconds"),
         [(None, 3, 8, 1)]),
    Fact("events one gap apart are one session", at(0, 5, 10.000001), weft.session("5 seconds"),
         [(None, 0, 10, 2), (None, 10.000001, 15.000001, 1)]),
    Fact("an event between two sessions makes them one", at(0, 8, 4), weft.session("5 seconds"),
         [(None, 0, 13, 3)]),
    Fact("sessions of keys do not meet", [(0, "a", 1), (3, "b", 1), (6, "a", 1)],
         weft.session("5 seconds"),
         [("a", 0, 5, 1), ("a", 6, 11, 1), ("b", 3, 8, 1)], by_key=True),
    Fact("a window of rows is of the earliest, in whatever order they came",
         [(5, "a", 5), (1, "a", 1), (3, "a", 3)], weft.counting(2), [(None, 1, 3.000001, 4)],
         agg.sum("v")),
    Fact("a window of rows slides", at(1, 2, 3, 4), weft.counting(3, 1),
         [(None, 1, 3.000001, 3), (None, 2, 4.000001, 3)]),
    Fact("a day of New York in March has 23 hours", at(utc("2024-03-10T12:00")),
         weft.calendar("day", "America/New_York"),
         [(None, utc("2024-03-10T05:00"), utc("2024-03-11T04:00"), 1)]),
    Fact("a day of Berlin in October has 25 hours", at(utc("2024-10-27T12:00")),
         weft.calendar("day", "Europe/Berlin"),
         [(None, utc("2024-10-26T22:00"), utc("2024-10-27T23:00"), 1)]),
    Fact("weeks begin on Monday", at(0), weft.calendar("week"),
         [(None, utc("1969-12-29"), utc("1970-01-05"), 1)]),
    Fact("February has 29 days in a leap year", at(utc("2024-02-29T23:59")),
         weft.calendar("month"), [(None, utc("2024-02-01"), utc("2024-03-01"), 1)]),
    Fact("1900 was no leap year", at(utc("1900-02-28T23:59"), utc("1900-03-01")),
         weft.calendar("month"), [(None, utc("1900-02-01"), utc("1900-03-01"), 1),
                                  (None, utc("1900-03-01"), utc("1900-04-01"), 1)]),
    Fact("an event without a time is in no window", [(None, "a", 1), (1, "a", 1)], TEN,
         [(None, 0, 10, 1)]),
    Fact("no key is a key", [(1, None, 1), (2, "a", 1), (3, None, 1)], TEN,
         [(None, 0, 10, 2), ("a", 0, 10, 1)], by_key=True),
    Fact("counting rows counts those without a value", of(1, None), TEN, [(None, 0, 10, 2)]),
    Fact("counting values leaves out those that are missing", of(1, None), TEN,
         [(None, 0, 10, 1)], agg.count("v")),
    Fact("a sum of no value is none", of(None, None), TEN, [(None, 0, 10, None)], agg.sum("v")),
    Fact("a sum leaves out missing values", of(2, None, 5), TEN, [(None, 0, 10, 7.0)],
         agg.sum("v")),
    Fact("an average is no whole number", of(1, 2), TEN, [(None, 0, 10, 1.5)], agg.avg("v")),
    Fact("distinct values are counted once, and missing ones not", of(4, 4, None, 9), TEN,
         [(None, 0, 10, 2)], agg.count_distinct("v")),
    Fact("zero has one sign", of(0.0, -0.0), TEN, [(None, 0, 10, 1)], agg.count_distinct("v")),
    Fact("the greatest number is not a number", of(1, math.nan, 7), TEN,
         [(None, 0, 10, math.nan)], agg.max("v")),
    Fact("the least number is one if there is any", of(math.nan, 7), TEN, [(None, 0, 10, 7.0)],
         agg.min("v")),
    Fact("infinity is a number", of(-math.inf, 7), TEN, [(None, 0, 10, -math.inf)], agg.min("v")),
    Fact("the first value is the earliest, not the one that came first",
         [(5, "a", 5), (1, "a", 1)], TEN, [(None, 0, 10, 1.0)], agg.first("v")),
    Fact("the last value is the latest, not the one that came last",
         [(5, "a", 5), (1, "a", 1)], TEN, [(None, 0, 10, 5.0)], agg.last("v")),
    Fact("the middle of an even number of values lies between two", of(1, 2, 4, 9), TEN,
         [(None, 0, 10, 3.0)], agg.median("v")),
    Fact("one value has no sample variance", of(3), TEN, [(None, 0, 10, None)], agg.var("v")),
    Fact("a window whose events are all filtered out is no row", [(1, "a", 1), (11, "a", 9)], TEN,
         [(None, 10, 20, 1)], where="v > 5"),
    Fact("a filter of an aggregate leaves its row", [(1, "a", 1), (11, "a", 9)], TEN,
         [(None, 0, 10, 0), (None, 10, 20, 1)], agg.count("CASE WHEN v > 5 THEN 1 END")),
]  # fmt: skip


def query_of(number: int, fact: Fact) -> weft.Query:
    """Ask a fact of the one table that all events are in."""
    own = f"fact = {number}"
    return weft.Query(
        f"fact {number}",
        source="events",
        time="ts",
        keys=["k"] if fact.by_key else [],
        where=own if fact.where is None else f"{own} AND {fact.where}",
        windows={"w": fact.window},
        aggs={"value": fact.call},
    )


def table_of(facts: list[Fact]) -> pa.Table:
    """Put the events of all facts into one table, by their numbers."""
    rows = [(number, *event) for number, fact in enumerate(facts) for event in fact.events]
    numbers, seconds, keys, values = zip(*rows, strict=True)
    times = [None if second is None else round(second * S) for second in seconds]
    return pa.table(
        {
            "fact": pa.array(numbers),
            "ts": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(keys, pa.string()),
            "v": pa.array(values, pa.float64()),
        }
    )


def rows_told(fact: Fact, result: pa.Table) -> list[Row]:
    """Bring a result to the form of a fact."""
    bounds = [result[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    keys = result["k"].to_pylist() if fact.by_key else [None] * result.num_rows
    starts, ends = ([us / S for us in own] for own in bounds)
    return list(zip(keys, starts, ends, result["value"].to_pylist(), strict=True))


class LateFact(NamedTuple):
    """Micro-batches of one stream, a window, the rows that closed, and how many were dropped."""

    says: str
    window: Any
    rows: list[tuple[float, float, int]]  # start, end, count
    late: int
    needs_order: bool = False  # and is no native stream


# Ten seconds of delay: the watermarks after these are 15, 16, 17 and 50.
BASE_S = 1_700_000_000
DELAY_S = 10
LATE_BATCHES = [[3.0, 14.0, 25.0], [26.0], [4.0, 16.0, 12.0, 27.0], [60.0]]
LATE_FACTS = [
    LateFact("what has closed stays as it was, and what is open takes older events",
             TEN, [(0, 10, 1), (10, 20, 3), (20, 30, 3)], 1),
    LateFact("an event that one of its windows has closed for counts in none",
             weft.hopping("20 seconds", "10 seconds"),
             [(-10, 10, 1), (0, 20, 4), (10, 30, 6), (20, 40, 3)], 1),
    LateFact("nothing is late for a window that is open", weft.tumbling("40 seconds"),
             [(0, 40, 8)], 0),
    LateFact("what waits for the order of events takes none behind the watermark",
             weft.session("10 seconds"), [(3, 13, 1), (14, 37, 5)], 2, needs_order=True),
    LateFact("rows are counted in order once it is known", weft.counting(3),
             [(3, 16.000001, 3), (25, 27.000001, 3)], 2, needs_order=True),
]  # fmt: skip


def late_query(number: int, fact: LateFact) -> weft.Query:
    """Ask of copies of the events that are its own: in one scope what is late is shared."""
    return weft.Query(
        f"late {number}",
        source="events",
        time="ts",
        keys={"own": f"fact - {number}"},  # queries of other keys share no slices
        where=f"fact = {number}",
        windows={"w": fact.window},
        aggs={"n": agg.count()},
        watermark=f"{DELAY_S} seconds",
    )


def late_batches(numbers: list[int]) -> list[pa.Table]:
    """The micro-batches, each event once for every fact."""
    return [
        pa.table(
            {
                "fact": pa.array([number for _ in batch for number in numbers]),
                "ts": pa.array(
                    [round((BASE_S + second) * S) for second in batch for _ in numbers]
                ).cast(pa.timestamp("us", "UTC")),
            }
        )
        for batch in LATE_BATCHES
    ]


def late_rows(result: pa.Table) -> list[tuple[float, float, int]]:
    bounds = [result[name].cast(pa.int64()).to_pylist() for name in ("window_start", "window_end")]
    starts, ends = ([(us - BASE_S * S) / S for us in own] for own in bounds)
    return sorted(zip(starts, ends, result["n"].to_pylist(), strict=True))


def check_late(results: dict[str, pa.Table], numbers: list[int]) -> None:
    wrong = [
        f"{LATE_FACTS[n].says}: {rows}"
        for n in numbers
        if (rows := late_rows(results[f"late {n}"])) != sorted(LATE_FACTS[n].rows)
    ]
    assert not wrong, "\n".join(wrong)
