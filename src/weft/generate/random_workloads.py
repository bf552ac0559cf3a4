"""Random workloads such as people have: windows, aggregates and events of every size and shape."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft import agg
from weft.cost.volumes import SECOND_US, Volumes
from weft.query import Query, Workload
from weft.statistics import Statistics
from weft.window import hopping, tumbling

if TYPE_CHECKING:
    from weft.window import PeriodicWindow

_SPANS_S = (60.0, 3_600.0, 86_400.0, 604_800.0)
_OVERLAPS = (2, 3, 4, 6, 12, 24)
# More result rows than this are a test of what writes them.
_MOST_ROWS = 2_500_000
_MOST_COPIES = 60_000_000
_TEXT_BYTES = 13.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """One workload, and the truth about its events."""

    seed: int
    windows: tuple[PeriodicWindow, ...]
    aggs: dict[str, Any]
    events: int
    keys: int
    text: bool
    skew: float  # share of the events that one key has beyond its own
    span_s: float
    watermark: str | None = None

    @property
    def statistics(self) -> Statistics:
        """The truth."""
        return Statistics(
            rate=self.events / self.span_s,
            events=self.events,
            keys=self.keys,
            key_skew=self.skew,
            key_bytes=_TEXT_BYTES if self.text else 8.0,
        )

    def workload(self) -> Workload:
        """Return the one query that asks for all windows."""
        query = Query(
            "drawn",
            source="readings",
            time="ts",
            keys=["device"],
            windows={str(window): window for window in self.windows},
            aggs=self.aggs,
            watermark=self.watermark,
        )
        return Workload([query])

    def table(self) -> pa.Table:
        """Make the events, in the order of time."""
        draw = np.random.default_rng(self.seed)
        times_us = np.sort(draw.integers(0, int(self.span_s * SECOND_US), self.events))
        numbers = draw.integers(0, self.keys, self.events)
        numbers[draw.random(self.events) < self.skew] = 0
        names = pa.array([f"device-{n:06d}" for n in range(self.keys)])
        device = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), names)
        return pa.table(
            {
                "ts": pa.array(times_us, pa.timestamp("us", "UTC")),
                "device": device.cast(pa.string()) if self.text else pa.array(numbers),
                "temp": pa.array(draw.normal(20.0, 5.0, self.events).round(2)),
            }
        )


def drawn(seed: int, events: tuple[int, int], watermark: str | None = None) -> Drawn:
    """Draw a workload over a number of events between two bounds; the same for the same seed.

    >>> one = drawn(3, (1_000, 2_000))
    >>> one == drawn(3, (1_000, 2_000)), 1_000 <= one.events <= 2_000
    (True, True)
    """
    random = Random(seed)
    while True:
        found = _drawn(seed, random, events, watermark)
        volumes = Volumes(found.statistics, found.span_s * SECOND_US)
        rows = sum(volumes.rows_of(w.range_us, w.slide_us) for w in found.windows)
        copies = sum(volumes.events * volumes.overlap(w) for w in found.windows)
        if rows <= _MOST_ROWS and copies <= _MOST_COPIES:
            return found


def _drawn(seed: int, random: Random, events: tuple[int, int], watermark: str | None) -> Drawn:
    span_s = random.choice(_SPANS_S)
    number = round(_between(random, *events))
    windows = {_window(random, span_s): None for _ in range(round(_between(random, 1, 30)))}
    known = {
        "n": agg.count(),
        "total": agg.sum("temp"),
        "lo": agg.min("temp"),
        "hi": agg.max("temp"),
        "mean": agg.avg("temp"),
        "sd": agg.stddev("temp"),
    }
    chosen = random.sample(sorted(known), random.randint(1, len(known)))
    return Drawn(
        seed,
        tuple(windows),
        {name: known[name] for name in chosen},
        number,
        min(round(_between(random, 1, 100_000)), number),
        random.random() < 0.5,
        random.choice((0.0, 0.0, 0.3)),
        span_s,
        watermark,
    )


def _between(random: Random, low: float, high: float) -> float:
    """Draw evenly on a logarithmic scale."""
    return float(np.exp(random.uniform(log(low), log(high))))


def _window(random: Random, span_s: float) -> PeriodicWindow:
    range_us = int(_between(random, span_s / 5_000, span_s) * SECOND_US)
    unit = 10 ** max(len(str(range_us)) - 2, 0)
    range_us = max(range_us // unit, 1) * unit  # two digits, as people choose them
    if random.random() < 0.6:
        return tumbling(range_us)
    overlap = random.choice([n for n in _OVERLAPS if range_us % n == 0] or [1])
    return hopping(range_us, range_us // overlap)
