"""The events of the comparison: tables of any number of events, of a seed.

Times are whole milliseconds, for some contenders have no finer ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from weft.bench.suite.anchors import inputs as anchors
from weft.bench.suite.mixed import inputs as mixed
from weft.generate import nexmark, sensors
from weft.time import DAY, MILLISECOND

Tables = dict[str, pa.Table]
Maker = Callable[[int], Tables]
_RATE = 1000
_SEED = 7
_UTC = pa.timestamp("us", "UTC")


def _whole_milliseconds(table: pa.Table, time: str) -> pa.Table:
    at = table.column_names.index(time)
    us = table[time].cast(pa.int64()).to_numpy() // MILLISECOND * MILLISECOND
    return table.set_column(at, time, pa.array(us, _UTC))


def readings(rate: float = _RATE) -> Maker:
    """Make readings of ten devices, so many a second."""

    def make(events: int) -> Tables:
        return {"readings": _whole_milliseconds(sensors(events, _SEED, rate=rate), "ts")}

    return make


def users(users: int) -> Maker:
    """Make a day of payments by users whose names are text."""

    def make(events: int) -> Tables:
        draw = np.random.default_rng(_SEED)
        numbers = draw.integers(0, users, events)
        columns: dict[str, Any] = {
            "ts": pa.array(np.sort(draw.integers(0, DAY // 1000, events)) * 1000, _UTC),
            "user": pa.array([f"user-{number}" for number in range(users)]).take(numbers),
            "amount": np.round(draw.random(events) * 400) / 4,
        }
        return {"events": pa.table(columns)}

    return make


def auctions(events_a_second: float | None = 10_000.0) -> Maker:
    """Make people, auctions and bids: so many events a second, or all in an hour."""

    def make(events: int) -> Tables:
        rate = events / 3600 if events_a_second is None else events_a_second
        found = nexmark(events, _SEED, rate=rate, padding=False)
        return {name: _whole_milliseconds(table, "date_time") for name, table in found.items()}

    return make


def bids(events: int) -> Tables:
    """Make bids alone."""
    bids = auctions()(events)["bid"]
    return {"bid": bids.select(["auction", "bidder", "price", "date_time"])}


def payments(labels: int) -> Maker:
    """Make a month of payments, and labels if any."""

    def make(events: int) -> Tables:
        made = anchors.payments(events, min(1000, events // 30), labels=min(labels, events))
        tables = {"events": made.events, **({"labels": made.labels} if labels else {})}
        return {name: _whole_milliseconds(table, "ts") for name, table in tables.items()}

    return make


def clicks(events: int) -> Tables:
    """Make clicks of customers at merchants."""
    return {"clicks": _whole_milliseconds(mixed.clicks(events), "ts")}
