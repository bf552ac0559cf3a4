"""Exact distinct counts over nested windows: one entry per value, whatever the windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft.sessions.local_session import LocalSession
from weft.testing import assert_same_rows

NESTED = {f"{r}/{s}": weft.hopping(r, s) for r, s in [
    (1000, 100), (2000, 100), (3000, 100), (4000, 200), (5000, 200), (6000, 200), (7000, 200),
    (8000, 1000), (9000, 1000), (10_000, 1000),
]}  # fmt: skip
WIDEST = {"10000/1000": NESTED["10000/1000"]}


def ask(windows: dict[str, Any], **aggs: Any) -> weft.Query:
    return weft.Query("q", source="s", time="ts", keys=["k"], windows=windows, aggs=aggs)


def trace(count: int, values: int) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "ts": np.sort(random.integers(0, 30_000, count)),
            "k": random.integers(0, 3, count),
            "v": [f"value {n}" for n in random.integers(0, values, count)],
        }
    )


def run(windows: dict[str, Any], table: pa.Table, planner: str) -> tuple[pa.Table, int]:
    """Return all rows, and the most bytes that were held after a batch."""
    query = ask(windows, d=weft.agg.count_distinct("v"))
    known = weft.Statistics(rate=table.num_rows / 0.03, keys=3)
    session = LocalSession(weft.Workload([query]), planner=planner, statistics=known)
    parts, most = [], 0
    size = table.num_rows // 40
    for at in range(0, table.num_rows, size):
        parts.append(session.push("s", table.slice(at, size)))
        most = max(most, session.metrics.state_bytes)
    return pa.concat_tables([*parts, session.finish()]), most


@pytest.mark.parametrize("planner", ["auto", "slice", "subsume"])
def test_ten_nested_windows_hold_little_more_than_the_widest_alone(planner: str) -> None:
    table = trace(40_000, 500)
    rows, nested = run(NESTED, table, planner)
    _, widest = run(WIDEST, table, planner)
    assert nested <= 1.5 * widest
    query = ask(NESTED, d=weft.agg.count_distinct("v"))
    assert_same_rows(query, rows, weft.run(weft.Workload([query]), {"s": table}, "local"))


def test_nested_windows_count_as_the_reference_does() -> None:
    table = trace(400, 50)
    rows, _ = run(NESTED, table, "auto")
    query = ask(NESTED, d=weft.agg.count_distinct("v"))
    assert_same_rows(query, rows, weft.run(weft.Workload([query]), {"s": table}, "reference"))


def test_values_are_held_once_for_each_key_behind_the_watermark() -> None:
    query = ask({"w": weft.hopping(1000, 10)}, d=weft.agg.count_distinct("v"))
    session = LocalSession(weft.Workload([query]))
    for at in range(0, 900, 10):
        session.push("s", pa.table({"ts": [at], "k": ["a"], "v": [at // 10 % 2]}))
    (operator,) = session._streams["s"].operators
    (flow,) = operator.runs[next(iter(operator.runs))]
    (bags,) = flow.sets.values()
    assert bags.items.size == 3  # two values, and one in the slice that is still open


def test_values_that_left_the_widest_window_are_forgotten() -> None:
    query = ask({"w": weft.hopping(100, 10)}, d=weft.agg.count_distinct("v"))
    session = LocalSession(weft.Workload([query]))
    sizes = []
    for at in range(0, 5000, 10):
        session.push("s", pa.table({"ts": [at], "k": ["a"], "v": [f"value {at}"]}))
        sizes.append(session.metrics.state_bytes)
    assert max(sizes) <= 3 * sizes[20]
