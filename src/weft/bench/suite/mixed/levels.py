"""Readings of devices, which stand at sites, which lie in regions: one question at every level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft import agg
from weft.query import Query, Workload
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.window import Window

KEYS = (("device", "site", "region"), ("site", "region"), ("region",), ())
COUNTS = (300, 20, 4, 1)
_CALLS = {"n": agg.count(), "total": agg.sum("temp"), "high": agg.max("temp")}
_SEED = 7


def readings(events: int, lasts_us: int) -> pa.Table:
    """Draw readings, in order of time."""
    rng = np.random.default_rng(_SEED)
    device = rng.integers(0, COUNTS[0], events)
    places = zip(KEYS[0], (device, device % COUNTS[1], device % COUNTS[2]), strict=True)
    columns: dict[str, Any] = {
        **{name: pa.array([f"{name} {n:05d}" for n in range(300)]).take(at) for name, at in places},
        "ts": np.arange(events, dtype=np.int64) * (lasts_us // events),
        "temp": np.round(rng.random(events) * 400) / 4,  # quarters add up without rounding
    }
    return pa.table(columns)


def by_level(windows: Mapping[str, Window]) -> Workload:
    """Ask the same by four key sets."""
    asked: dict[str, Any] = {"source": "readings", "time": "ts", "windows": windows, "aggs": _CALLS}
    return Workload(Query("_".join(keys) or "all", keys=keys, **asked) for keys in KEYS)


def known(events: int, lasts_us: int) -> Statistics:
    """What is known of the readings.

    >>> known(6_000, 60_000_000).rate
    100.0
    """
    counts = tuple(zip(KEYS, COUNTS, strict=True))
    rate = events / (lasts_us / 1e6)
    return Statistics(rate=rate, duration=lasts_us, keys=COUNTS[0], key_sets=counts)
