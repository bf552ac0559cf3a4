"""What each technique takes for one window at every event: the figures of `weft.cost.anchors`."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Column, Entry, Row, Sheet, Table

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall

_ROWS, _QUICK_ROWS = 1_000_000, 20_000
_OBJECT_ROWS = 50  # fewer, where every combine is a call of Python
_FRAME = 100
_CHECKED = 200
_REPEATS = 5


def _asked() -> dict[str, AggregateCall]:
    from weft import agg

    longest = agg.custom(
        "bench_longest",
        lift=lambda x: x,
        combine=max,
        lower=lambda x: x,
        identity=float("-inf"),
        commutative=True,
        idempotent=True,
    )
    return {
        "sum of integers": agg.sum("q"),
        "sum of doubles": agg.sum("x"),
        "minimum": agg.min("x"),
        "distinct values": agg.count_distinct("q"),
        "median": agg.median("q"),
        "custom": longest("x"),
    }


def _compute(quick: bool) -> Sheet:
    import numpy as np
    import pyarrow as pa

    import weft

    rows: list[Row] = []
    wrong: list[str] = []
    draw = np.random.default_rng(5)
    for name, call in _asked().items():
        count = _QUICK_ROWS if quick else _ROWS
        count //= _OBJECT_ROWS if name == "custom" else 1
        columns: dict[str, Any] = {
            "ts": pa.array(np.arange(count)),
            "x": pa.array(draw.normal(size=count)),
            "q": pa.array(draw.integers(0, 1000, count)),
        }
        table = pa.table(columns)
        asked: dict[str, Any] = {"time": "ts", "windows": {"w": _FRAME - 1}, "aggs": {"a": call}}
        plan = weft.rolling(table, explain=True, **asked)
        seconds = []
        for _ in range(1 if quick else _REPEATS):
            start = perf_counter()
            found = weft.rolling(table, **asked)
            seconds.append(perf_counter() - start)
        some = table.slice(0, _CHECKED)
        want = weft.rolling(some, engine="reference", **asked)["a_w"].to_pylist()
        if not np.allclose(found["a_w"].slice(0, _CHECKED).to_pylist(), want, rtol=1e-9):
            wrong.append(f"{name} differs from the reference engine")
        technique = plan.trails[0].techniques[0]
        rows.append({"aggregate": name, "technique": technique, "ns": min(seconds) / count * 1e9})
    return Sheet(tuple(rows), tuple(wrong))


TECHNIQUES = Table(
    name="rolling/techniques",
    question="What does each technique take per event, for one window of a hundred events?",
    columns=(Column("aggregate"), Column("technique"), Column("ns", ",.0f")),
    compute=_compute,
)

ENTRIES: tuple[Entry, ...] = (TECHNIQUES,)
