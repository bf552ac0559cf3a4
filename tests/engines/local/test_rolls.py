"""How a window reads the instances of another."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from weft.aggregates import Partial
from weft.engines.local.windows.flow import Flow
from weft.engines.local.windows.rolls import roll_windows
from weft.kernels import operations
from weft.kernels.partials import Partials
from weft.window import PeriodicWindow

LOW, TOTAL = Partial("min", ("x",)), Partial("sum", ("x",))


def instances(inner: PeriodicWindow, seed: int) -> Flow:
    """Return instances of three keys with holes between them, which hold random partials."""
    random = np.random.default_rng(seed)
    kept = np.flatnonzero(random.random(3 * 60) < 0.6)
    keys, numbers = kept // 60, kept % 60 - 30
    starts = inner.offset_us + numbers * inner.slide_us
    lows, totals = random.integers(-99, 99, (2, kept.size))
    partials = {
        LOW: Partials("min", operations.MIN_INT64, lows),
        TOTAL: Partials("sum", operations.SUM_INT64, totals),
    }
    return Flow(keys, starts, starts + inner.range_us, partials)


def expected(
    flow: Flow, inner: PeriodicWindow, outer: PeriodicWindow, distance: int, partial: Partial
) -> dict[tuple[int, int], int]:
    """Combine one by one, by the definition."""
    combine = min if partial == LOW else int.__add__
    found: dict[tuple[int, int], int] = {}
    held = flow.partials[partial].columns.tolist()
    for key, start, value in zip(flow.keys.tolist(), flow.starts_us.tolist(), held, strict=True):
        for place in range(0, outer.range_us - inner.range_us + 1, distance):
            begin = start - place
            if (begin - outer.offset_us) % outer.slide_us == 0:
                before = found.get((key, begin))
                found[key, begin] = value if before is None else combine(before, value)
    return found


TECHNIQUES = (None, "one_by_one", "sliding_ranges", "disjoint_sparse_table", "fan_out", "flat_fat")


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        (PeriodicWindow(10, 1), PeriodicWindow(20, 2)),
        (PeriodicWindow(10, 2, 1), PeriodicWindow(30, 6, 3)),
        (PeriodicWindow(6, 2), PeriodicWindow(18, 18)),
        (PeriodicWindow(4, 2), PeriodicWindow(40, 2)),
    ],
)
def test_instances_side_by_side_are_combined_each_once(
    inner: PeriodicWindow, outer: PeriodicWindow, seed: int, technique: str | None
) -> None:
    flow = instances(inner, seed)
    count, distance = outer.reads(inner)
    assert (count, distance) == (outer.range_us // inner.range_us, inner.range_us)
    for wanted in ([TOTAL], [LOW, TOTAL]):
        rolled = roll_windows(flow, inner, outer, wanted, technique)
        places = list(zip(rolled.keys.tolist(), rolled.starts_us.tolist(), strict=True))
        assert places == sorted(places)
        assert rolled.ends_us.tolist() == (rolled.starts_us + outer.range_us).tolist()
        for partial in wanted:
            values = rolled.partials[partial].columns.tolist()
            assert dict(zip(places, values, strict=True)) == expected(
                flow, inner, outer, distance, partial
            )


@pytest.mark.parametrize("seed", range(5))
def test_what_may_be_read_twice_is_read_from_all_instances_inside(seed: int) -> None:
    """Partials of events agree with each other; these do not, and so tell which were read."""
    inner, outer = PeriodicWindow(10, 1), PeriodicWindow(20, 2)
    flow = instances(inner, seed)
    rolled = roll_windows(flow, inner, outer, [LOW], "sparse_table")
    places = zip(rolled.keys.tolist(), rolled.starts_us.tolist(), strict=True)
    values = rolled.partials[LOW].columns.tolist()
    assert dict(zip(places, values, strict=True)) == expected(
        flow, inner, outer, inner.slide_us, LOW
    )


def test_a_long_hop_of_a_shorter_one_takes_memory_for_the_rows_it_reads() -> None:
    """Of hundreds of begins side by side, a row of the feeder is inside of few."""
    inner, outer = PeriodicWindow(720, 1), PeriodicWindow(3600, 1)
    rows = 10_000
    starts = np.arange(rows)
    lows = Partials("min", operations.MIN_INT64, starts.copy())
    totals = Partials("sum", operations.SUM_INT64, np.ones(rows, np.int64))
    keys = np.zeros(rows, np.int64)
    flow = Flow(keys, starts, starts + inner.range_us, {LOW: lows, TOTAL: totals})
    roll_windows(flow, inner, outer, [TOTAL], None)
    tracemalloc.start()
    try:
        rolled = roll_windows(flow, inner, outer, [TOTAL], None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(rolled) == rows + outer.range_us - inner.range_us
    assert peak < 200 * len(rolled), f"{peak:,} bytes for {len(rolled):,} rows"
