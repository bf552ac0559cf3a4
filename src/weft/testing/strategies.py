"""Hypothesis strategies: random windows, aggregates, queries, workloads and events.

Values are small on purpose: ranges of a few time units over a few dozen events meet every border
case (gaps, ties, empty instances, times before 1970) more often than realistic ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

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
    from collections.abc import Sequence

    from weft.aggregates import AggregateCall

HOUR_US = 3_600_000_000
# Columns of `events`: a key with NULLs, an integer, a double with NaN, a flag, a rising distance.
_FIELDS: list[pa.Field[Any]] = [
    pa.field("ts", pa.timestamp("us", "UTC")),
    pa.field("k", pa.string()),
    pa.field("i", pa.int64()),
    pa.field("x", pa.float64()),
    pa.field("flag", pa.bool_()),
    pa.field("km", pa.int64()),
]
SCHEMA = pa.schema(_FIELDS)

DECOMPOSABLE = (
    agg.count(),
    agg.count("i"),
    agg.sum("i"),
    agg.sum("x"),
    agg.min("x"),
    agg.max("x"),
    agg.avg("i"),
    agg.avg("x"),
    agg.var("i"),
    agg.stddev_pop("i"),
    agg.first("i"),
    agg.last("i"),
    agg.min_by("i", "x"),
    agg.max_by("k", "i"),
    agg.product("i % 3"),
    agg.bool_and("flag"),
    agg.bool_or("flag"),
    agg.bit_and("i"),
    agg.bit_or("i"),
    agg.bit_xor("i"),
    agg.count_distinct("i"),
    agg.approx_count_distinct("i"),
    agg.approx_percentile("i", 0.5),
    # Of whole numbers: where doubles nearly agree, rounding decides about higher moments.
    agg.corr("km", "i % 7"),
    agg.regr_slope("i % 5", "km"),
    agg.covar_samp("i % 11", "i % 3"),
    agg.kurtosis("i % 5"),
    agg.skewness("km"),
    agg.sum_distinct("i"),
    agg.avg_distinct("x"),
    agg.collect_list("i"),
    agg.collect_set("x"),
    agg.mode("i"),
    agg.sum("CASE WHEN flag THEN i ELSE 0 END"),
)
HOLISTIC = (agg.median("i"), agg.percentile("x", 0.25))


def periodic_windows(largest: int = 12, unit_us: int = 1) -> st.SearchStrategy[PeriodicWindow]:
    """Any range and slide up to `largest` units, with any offset: gaps and overlaps included."""
    size = st.integers(1, largest)
    return st.builds(
        lambda r, s, o: PeriodicWindow(r * unit_us, s * unit_us, o * unit_us),
        size,
        size,
        st.integers(0, largest),
    )


def windows(unit_us: int = 1) -> st.SearchStrategy[Window]:
    """Every window kind but the user-defined one, periodic ones most often."""
    small = st.integers(1, 6)
    return st.one_of(
        periodic_windows(unit_us=unit_us),
        periodic_windows(unit_us=unit_us),
        st.builds(lambda g: SessionWindow(g * unit_us), small),
        st.builds(CountingWindow, small, small),
        st.builds(lambda n, s: CumulatingWindow(n * s * unit_us, s * unit_us), small, small),
        st.sampled_from(
            [
                CalendarWindow("day", "Europe/Berlin"),
                CalendarWindow("month", "America/Sao_Paulo"),
                CalendarWindow("week"),
            ]
        ),
        st.sampled_from([PunctuatedWindow("flag"), PunctuatedWindow("i % 3 = 0")]),
        st.builds(lambda r, s: MeasuredWindow("km", r, s), small, small),
    )


def calls(*, holistic: bool = True) -> st.SearchStrategy[AggregateCall]:
    """An aggregate over the columns of `events`."""
    return st.sampled_from(DECOMPOSABLE + (HOLISTIC if holistic else ()))


@st.composite
def queries(
    draw: st.DrawFn,
    window: st.SearchStrategy[Window] | None = None,
    name: str = "q",
    call: st.SearchStrategy[AggregateCall] | None = None,
) -> Query:
    """A query over `events`: one to five windows, one to four aggregates, some keys and filters."""
    chosen = draw(st.lists(windows() if window is None else window, min_size=1, max_size=5))
    asked = draw(st.lists(calls() if call is None else call, min_size=1, max_size=4, unique=True))
    keys: Sequence[str] = draw(st.sampled_from([(), ("k",), ("k", "flag")]))
    return Query(
        name,
        source="events",
        time="ts",
        keys=list(keys),
        where=draw(st.sampled_from([None, None, "i > 0", "flag OR x IS NULL"])),
        windows={f"w{i}": w for i, w in enumerate(chosen)},
        aggs={f"a{i}": c for i, c in enumerate(asked)},
    )


@st.composite
def workloads(
    draw: st.DrawFn,
    window: st.SearchStrategy[Window] | None = None,
    call: st.SearchStrategy[AggregateCall] | None = None,
    most: int = 4,
) -> Workload:
    """Several queries over the same events."""
    count = draw(st.integers(1, most))
    return Workload(draw(queries(window, f"q{i}", call)) for i in range(count))


@st.composite
def events(draw: st.DrawFn, most: int = 40, unit_us: int = 1, origin_us: int = 0) -> pa.Table:
    """A table of events in any order, some without a time, around 1970 unless told otherwise.

    `km` never decreases along the time of a key, as measured windows need it.
    """
    count = draw(st.integers(0, most))
    ticks = draw(st.lists(st.integers(-20, 60), min_size=count, max_size=count))
    times = [None if t == 60 else origin_us + t * unit_us for t in ticks]
    doubles = st.one_of(
        st.none(),
        st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e9, math.nan]),
        st.floats(-1e6, 1e6, allow_nan=False),
    )
    columns = {
        "k": st.sampled_from(["a", "b", "c", None]),
        "i": st.one_of(st.none(), st.integers(-8, 8)),
        "x": doubles,
        "flag": st.one_of(st.none(), st.booleans()),
    }
    drawn = {
        name: draw(st.lists(strategy, min_size=count, max_size=count))
        for name, strategy in columns.items()
    }
    km = [0 if t is None else (t - origin_us) // unit_us // 2 for t in times]
    arrays = [pa.array(times, pa.int64()).cast(SCHEMA.field("ts").type)]
    arrays += [pa.array(drawn[name], SCHEMA.field(name).type) for name in columns]
    return pa.table([*arrays, pa.array(km, pa.int64())], schema=SCHEMA)
