"""How far from the machine's limits a run is: from reading alone, and from one hash of each event.

Bytes are those of the columns that a workload needs; reading, copying and hashing have the threads
that weft has. Nothing that reads every event can be faster than a scan, and nothing that groups
them without sorting faster than a scan and one hash table.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bench.frame import Column, Entry, Row, Sheet, Table
from weft.bench.suite.growth.many import seconds_of
from weft.bench.suite.local.inputs import WindowedEvents, draw_events, least_by_numpy, same_answer
from weft.bench.suite.local.speed import WEFT
from weft.kernels.parallel import THREADS, over_chunks

if TYPE_CHECKING:
    from weft.bench.suite.local.inputs import Shape

_EVENTS, _QUICK_EVENTS = 10_000_000, 200_000
_ROUNDS, _QUICK_ROUNDS = 5, 1
_KEYS = 10
_BYTES = 8 + 4 + 8  # of an event: time, key and value
_HOUR_S, _DAY_S = 3_600, 86_400
_WORKLOADS: dict[str, tuple[Shape, ...]] = {
    "20 tumbling": tuple((s, s) for s in range(10, 106, 5)),
    "hop 600 s / 10 s": ((600, 10),),
    "nine feature windows": (
        *((s, s) for s in (60, 300, 900, _HOUR_S, 6 * _HOUR_S, _DAY_S)),
        (_HOUR_S, 300),
        (6 * _HOUR_S, _HOUR_S),
        (_DAY_S, _HOUR_S),
    ),
}
_SCAN = "a scan"
_HASH = "a scan and one hash"
_COPY = "memory copied"
_SLICES = "a scan and slices"
_PLANNED = "weft, planned before"


def _local(quick: bool) -> Sheet:
    events = _QUICK_EVENTS if quick else _EVENTS
    table = draw_events(events, _KEYS)
    times, keys, values = (table[name].to_numpy() for name in ("us", "k", "v"))
    target = np.empty(events * _BYTES // 8)
    source = np.ones_like(target)
    grouped = table.select(["k", "v"])
    rows: list[Row] = []
    wrong: list[str] = []
    for label, shapes in _WORKLOADS.items():
        inputs = WindowedEvents(table, _KEYS, shapes)
        runner = WEFT.start(inputs)
        expected = least_by_numpy(inputs)
        if difference := same_answer(expected, runner()):
            wrong.append(f"{label}: {difference}")
        runners: dict[str, Any] = {
            _COPY: lambda: over_chunks(
                lambda a, b: np.copyto(target[a:b], source[a:b]), target.size, THREADS
            ),
            _SCAN: lambda: over_chunks(
                lambda a, b: [one[a:b].max() for one in (times, keys, values)], events, THREADS
            ),
            _HASH: lambda: grouped.group_by("k").aggregate([("v", "min")]),
            "weft": runner,
        }
        found = seconds_of(runners, _QUICK_ROUNDS if quick else _ROUNDS)
        written = len(expected[0])
        for name, seconds in found.items():
            rows.append(
                {
                    "workload": label,
                    "what": name,
                    "ns an event": seconds / events * 1e9,
                    "GB/s": events * _BYTES / seconds / 1e9,
                    "weft over it": found["weft"] / seconds,
                    "bytes read": _BYTES,
                    "rows written an event": written / events if name == "weft" else None,
                }
            )
    return Sheet(tuple(rows), tuple(wrong))


def _spark(quick: bool) -> Sheet:
    from pyspark.sql import functions as F

    from weft import agg
    from weft.bench.suite.spark.batch import slice_aggregate
    from weft.bench.suite.spark.runs import (
        Inputs,
        readings,
        run_plan,
        run_shared,
        run_stock,
        same_answers,
        shuffled_bytes,
        write_nowhere,
    )
    from weft.engines.spark.engine import SparkEngine
    from weft.query import Query, Workload
    from weft.running import plan_for
    from weft.window import hopping

    events = _QUICK_EVENTS if quick else _EVENTS
    frame = readings(events)
    session = frame.sparkSession
    needed = frame.select("ts", "device", "temp")
    rows: list[Row] = []
    wrong: list[str] = []
    for label, shapes in _WORKLOADS.items():
        windows = {f"{r}/{s}": hopping(f"{r} seconds", f"{s} seconds") for r, s in shapes}
        query = Query(
            "lows",
            source="readings",
            time="ts",
            keys=["device"],
            windows=windows,
            aggs={"lo": agg.min("temp")},
        )
        # Stock Spark takes minutes for all events, so answers are compared over some of them.
        some = Inputs(readings(_QUICK_EVENTS), Workload([query]))
        if text := same_answers(run_stock(some)(), run_shared(some)()):
            wrong.append(f"{label}: {text}")
        inputs = Inputs(frame, Workload([query]))
        plan = plan_for(inputs.workload, {"readings": frame}, SparkEngine())
        # What each adds to the one before is where the time goes: reading, hashing, hashing by
        # slices too, windows made of these, planning.
        runners: dict[str, Any] = {
            _SCAN: lambda: write_nowhere(needed),
            _HASH: lambda: write_nowhere(needed.groupBy("device").agg(F.min("temp"))),
            _SLICES: slice_aggregate(math.gcd(*(s for shape in shapes for s in shape)))(inputs),
            _PLANNED: run_plan(plan, inputs),
            "weft": run_shared(inputs),
        }
        moved = {}
        for name, one in runners.items():
            before = shuffled_bytes(session)
            one()
            moved[name] = shuffled_bytes(session) - before
        found = seconds_of(runners, _QUICK_ROUNDS if quick else _ROUNDS)
        for name, seconds in found.items():
            rows.append(
                {
                    "workload": label,
                    "what": name,
                    "ns an event": seconds / events * 1e9,
                    "weft over it": found["weft"] / seconds,
                    "bytes shuffled an event": moved[name] / events,
                }
            )
    return Sheet(tuple(rows), tuple(wrong))


ENTRIES: tuple[Entry, ...] = (
    Table(
        name="limit/local",
        question="How far is the local engine from a scan, and from a scan and one hash?",
        columns=(
            Column("workload"),
            Column("what"),
            Column("ns an event", ".3g"),
            Column("GB/s", ".3g"),
            Column("weft over it", ".3g"),
            Column("bytes read", "d"),
            Column("rows written an event", ".3g"),
        ),
        compute=_local,
    ),
    Table(
        name="limit/spark",
        question="How far is Spark under weft from a scan, and from a scan and one hash?",
        columns=(
            Column("workload"),
            Column("what"),
            Column("ns an event", ".3g"),
            Column("weft over it", ".3g"),
            Column("bytes shuffled an event", ".3g"),
        ),
        compute=_spark,
        needs=("pyspark",),
    ),
)
