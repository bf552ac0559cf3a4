"""The order of result rows, at the distances and lengths that real events have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import weft

HALF_DAY_US = 12 * 3600 * 1_000_000


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
