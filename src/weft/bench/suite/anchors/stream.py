"""What rolling windows of weeks take in a stream, and what they hold: exact, and rounded.

The state that Spark's workers host is driven by hand, a micro-batch for every six hours of a month
of payments, and written and read back after each as a checkpoint does.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Column, Entry, Row, Sheet, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from weft.engines.local.anchors.rolling_rows import RollingRows

_EVENTS, _QUICK_EVENTS = 2_000_000, 40_000
_USERS = 100
_HOUR_US = 3_600_000_000
_BATCHES = 120
_ROUNDS = {"exact": None, "to 5 minutes": _HOUR_US // 12, "to 1 hour": _HOUR_US}


def _compute(quick: bool) -> Sheet:
    import pyarrow as pa

    import weft
    from weft.bench.suite.anchors.inputs import payments, same_features
    from weft.engines.local.anchors.rolling_rows import TIME, RollingRows

    events = _QUICK_EVENTS if quick else _EVENTS
    made = payments(events, min(_USERS, events // 1_000)).events
    rows = made.append_column(TIME, made["ts"].cast(pa.int64())).drop_columns(["ts"])
    found: list[Row] = []
    wrong: list[str] = []
    for name, round_us in _ROUNDS.items():
        asked: dict[str, Any] = {
            "time": TIME,
            "by": ["user"],
            "windows": {"1h": "1 hour", "1w": "1 week", "3w": "3 weeks"},
            "aggs": {"n": weft.agg.count(), "s": weft.agg.sum("amount")},
            "round": round_us,
        }
        plan = weft.rolling(rows, explain=True, **asked)
        batches = 10 if quick else _BATCHES
        _streamed(RollingRows.of_columns(plan, rows.schema), rows.slice(0, 2_000), 2)  # compiles
        answer, row = _streamed(RollingRows.of_columns(plan, rows.schema), rows, batches)
        want = weft.rolling(rows, **asked).slice(0, answer.num_rows)
        unlike = same_features(want.drop_columns([TIME]), answer.drop_columns([TIME]))
        wrong += [f"{name}: {unlike}"] if unlike else []
        found.append({"windows begin": name, **row})
    return Sheet(tuple(found), tuple(wrong))


def _streamed(of: RollingRows, rows: pa.Table, batches: int) -> tuple[pa.Table, Row]:
    import pyarrow as pa

    from weft.engines.local.anchors.rolling_rows import TIME
    from weft.engines.local.anchors.rolling_state import RollingState

    chunks: dict[str, bytes] = {}
    answers, seconds = [], 0.0
    held = written = largest = 0
    size = -(-rows.num_rows // batches)
    for at in range(0, rows.num_rows, size):
        batch = rows.slice(at, size)
        watermark_us = batch[TIME][-1].as_py()
        start = perf_counter()
        state = RollingState.load(of, chunks)
        answers.append(state.process(batch, watermark_us))
        changes = state.changes()
        seconds += perf_counter() - start
        changes.apply(chunks)
        written += sum(map(len, changes.written.values()))
        held, largest = max(held, len(state)), max(largest, sum(map(len, chunks.values())))
    million = 1 << 20
    return pa.concat_tables(answers), {
        "us per event": seconds / rows.num_rows * 1e6,
        "rows held": held,
        "state MiB": largest / million,
        "written MiB": written / million,
    }


STREAM = Table(
    name="rolling/stream_state",
    question="What do windows of three weeks take and hold in a stream, exact and rounded?",
    columns=(
        Column("windows begin"),
        Column("us per event", ".2f"),
        Column("rows held", ",.0f"),
        Column("state MiB", ",.1f"),
        Column("written MiB", ",.0f"),
    ),
    compute=_compute,
)

ENTRIES: tuple[Entry, ...] = (STREAM,)
