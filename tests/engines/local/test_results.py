"""The order of result rows, at the distances and lengths that real events have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weft
from weft.engines.local.output.tables import result_order

HALF_DAY_US = 12 * 3600 * 1_000_000
HUNDRED_YEARS_US = 100 * 366 * 24 * 3600 * 1_000_000


def readings(times_us: np.ndarray) -> pa.Table:
    stamps = pa.array(np.sort(times_us)).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": stamps, "v": np.arange(len(stamps))})


def scattered(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, HALF_DAY_US, 5000)


def bursts(seed: int) -> np.ndarray:
    """Begin at twenty times of half a day; from each on come 400 events, at most 18 ms apart."""
    random = np.random.default_rng(seed)
    begins = random.integers(0, HALF_DAY_US // 1_000_000, 20)[:, None] * 1_000_000
    apart = random.integers(1, np.linspace(20, 16_000, 20)[:, None], (20, 400))
    return (begins + np.cumsum(apart, axis=1)).ravel()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("times", "windows"),
    [
        pytest.param(
            bursts,
            {"s": weft.session("19 milliseconds"), "m": weft.calendar("month")},
            id="sessions of 19 ms beside months",
        ),
        pytest.param(
            scattered,
            {"t": weft.tumbling("39 milliseconds"), "s": weft.session("14 seconds")},
            id="39 ms beside sessions of 14 s",
        ),
    ],
)
def test_short_windows_beside_long_ones(times, windows, seed: int) -> None:
    aggs = {"n": weft.agg.count(), "s": weft.agg.sum("v")}
    query = weft.Query("q", source="t", time="ts", windows=windows, aggs=aggs)
    tables = {"t": readings(times(seed))}
    assert weft.verify(weft.Workload([query]), tables, ["reference", "local"]).ok


lengths = st.one_of(st.integers(1, 1000), st.integers(1, HUNDRED_YEARS_US))
rows = st.tuples(
    st.integers(-HUNDRED_YEARS_US, HUNDRED_YEARS_US), st.integers(0, 3), lengths, st.integers(0, 9)
)


@settings(deadline=None, max_examples=300)
@given(st.lists(rows, min_size=1, max_size=40), st.sampled_from([1, 1000, 60_000_000]))
# 2**31 ends, two windows and 2**32 lengths: in 64 bits the product of these is nothing.
@example([(0, 0, 1, 0), (1, 1, 2**32, 1), (2**31 - 1, 1, 1, 0)], 1)
def test_rows_are_in_order_however_far_apart(given_rows, grain: int) -> None:
    ends, places, spans, ranks = (np.array(c) for c in zip(*given_rows, strict=True))
    ends = ends // grain * grain
    starts = ends - spans
    order = result_order(ends, places, starts, ranks)
    assert order.tolist() == np.lexsort((ranks, starts, places, ends)).tolist()
