"""What is predicted of states, against what a session really keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft import agg
from weft.cost.sizes import Pace, size_of

START_US = 1_700_000_000_000_000
MINUTE_US = 60_000_000
WINDOWS = {
    "5m": weft.tumbling("5 minutes"),
    "1h": weft.tumbling("1 hour"),
    "1h/5m": weft.hopping("1 hour", "5 minutes"),
}


@pytest.mark.parametrize(
    ("keys", "windows", "aggs"),
    [
        (300, WINDOWS, {"n": agg.count(), "mean": agg.avg("v"), "hi": agg.max("v")}),
        (50, WINDOWS, {"lo": agg.min("v")}),
        (100, {"hop": weft.hopping("1 hour", "1 minute")}, {"mean": agg.avg("v")}),
        (2000, {"2m": weft.tumbling("2 minutes")}, {"n": agg.count()}),
    ],
)
def test_predicted_state_is_what_a_session_keeps(keys, windows, aggs) -> None:
    query = weft.Query("q", source="e", time="ts", keys=["k"], windows=windows, aggs=aggs)
    per_push = 3 * keys
    # Windows that are put together as they close: states of streams have slices, and no stores.
    session = weft.LocalSession(weft.Workload([query]), planner="factor")
    rng = np.random.default_rng(1)
    kept = []
    for step in range(90):
        times = np.sort(rng.integers(0, MINUTE_US, per_push)) + START_US + step * MINUTE_US
        columns = {"ts": pa.array(times).cast(pa.timestamp("us", "UTC"))}
        columns |= {"k": pa.array(rng.integers(0, keys, per_push)), "v": pa.array(times / 7)}
        session.push("e", pa.table(columns))
        if step >= 60:
            kept.append((session.metrics.open_slices, session.metrics.state_bytes))
    known = weft.Statistics(rate=per_push / 60, keys=keys)
    plan = weft.optimize(query, statistics=known, strategy="columnar", micro_batch="1 minute")
    size = size_of(plan, known, MINUTE_US, 2, Pace(0.0, 0.0))
    rows, held = (float(np.mean(column)) for column in zip(*kept, strict=True))
    slices = next(amount for amount in size.kept if amount.what == "open slices")
    assert slices.rows == pytest.approx(rows, rel=0.3)
    assert slices.bytes == pytest.approx(held, rel=0.3)
