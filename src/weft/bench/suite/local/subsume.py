"""Thousands of windows on the local engine at once, as Figures 10 to 12 of Patroumpas & Sellis,
"Subsuming Multiple Sliding Windows for Shared Stream Computation", show their framework.

Windows of three classes over a trace of connections at 100,000 tuples a second: into how many
groups they fall, what they keep against windows that keep their own, and how long one second of
the stream takes.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa

import weft
from weft.bench.frame import Column, Entry, Limit, Panel, Row, Sheet, Table
from weft.bench.suite.planners.subsume import windows_ending_together
from weft.generate import trace
from weft.generate.workloads import SubsumptionClass
from weft.plan import Roll
from weft.planners.subsume.groups import subsume_windows
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Sequence


_COUNTS = (1_000, 2_000, 5_000, 10_000)
_QUICK_COUNTS = (100, 300)
_RATE, _QUICK_RATE = 100_000, 1_000
_FILLED_S = 60  # the longest range: afterwards every window is full
_TIMED_S, _QUICK_TIMED_S = 10, 3
_SEED = 0
_PLANNERS = ("subsume", "slice", "independent")


class _Run(NamedTuple):
    """What a session gave for every second, how long one took, and what it keeps."""

    results: list[pa.Table]
    second_ms: float
    bytes_of: dict[PeriodicWindow, int]  # of slices that one window alone reads
    state_bytes: int


def _query(windows: Sequence[PeriodicWindow]) -> weft.Query:
    return weft.Query(
        "traffic",
        source="connections",
        time="ts",
        windows={str(place): window for place, window in enumerate(windows)},
        aggs={"n": weft.agg.count(), "most": weft.agg.max("bytes_sent")},
    )


def _run(planner: str, windows: Sequence[PeriodicWindow], seconds: Sequence[pa.Table]) -> _Run:
    """Fill all windows with the first part of the trace, then time it second by second."""
    known = weft.Statistics(rate=float(_RATE), keys=1)
    plan = weft.optimize(weft.Workload([_query(windows)]), planner, "local", known)
    session = weft.LocalSession(plan)
    results, took = [session.push("connections", seconds[0])], []
    for second in seconds[1:]:
        start = perf_counter()
        results.append(session.push("connections", second))
        took.append(perf_counter() - start)
    return _Run(
        results, median(took) * 1e3, _bytes_of_windows(session), session.metrics.state_bytes
    )


def _bytes_of_windows(session: weft.LocalSession) -> dict[PeriodicWindow, int]:
    found: dict[PeriodicWindow, int] = {}
    for stream in session._streams.values():
        for operator in stream.operators:
            for node in operator.plan.bases:
                if isinstance(node, Roll) and isinstance(node.window, PeriodicWindow):
                    found[node.window] = sum(flow.nbytes for flow in operator.slices_of(node))
    return found


def _trace(rate: int, timed_s: int) -> list[pa.Table]:
    """Make the trace: what fills the windows, then second by second."""
    rows = rate * (_FILLED_S + timed_s + 1)
    made = trace(rows, seed=_SEED, rate=float(rate)).select(["ts", "bytes_sent"])
    times = made["ts"].cast(pa.int64()).to_numpy()
    first = int(times[0]) // 1_000_000
    cuts_us = (np.arange(_FILLED_S, _FILLED_S + timed_s + 1) + first) * 1_000_000
    cuts = [0, *np.searchsorted(times, cuts_us).tolist()]
    return [made.slice(a, b - a) for a, b in pairwise(cuts)]


def _row(kind: SubsumptionClass, count: int, seconds: Sequence[pa.Table], wrong: list[str]) -> Row:
    windows = windows_ending_together(kind, count, _SEED, whole_slides=True)
    groups = subsume_windows(windows, for_aggregates=True)
    runs = {planner: _run(planner, windows, seconds) for planner in _PLANNERS}
    alone = runs["independent"]
    for planner, run in runs.items():
        if run.results != alone.results:
            wrong.append(f"{kind}, {count} windows: {planner} differs from windows by themselves")
    copies = Counter(windows)
    isolated = sum(alone.bytes_of[window] * times for window, times in copies.items())
    tuples = sum(window.range_us for window in windows)
    tuples_shared = sum(max(w.range_us for w in group.windows) for group in groups)
    shared = runs["subsume"].state_bytes
    return {
        "class": kind,
        "windows": count,
        "different": len(copies),
        "groups": len(groups),
        "KiB isolated": isolated / 1024,
        "KiB shared": shared / 1024,
        "isolated / shared": isolated / shared,
        "tuples isolated / shared": tuples / tuples_shared,
        "ms a second, subsume": runs["subsume"].second_ms,
        "ms a second, slice": runs["slice"].second_ms,
        "ms a second, independent": alone.second_ms,
    }


def _compute(quick: bool) -> Sheet:
    rate, timed_s = (_QUICK_RATE, _QUICK_TIMED_S) if quick else (_RATE, _TIMED_S)
    seconds = _trace(rate, timed_s)
    wrong: list[str] = []
    rows = tuple(
        _row(kind, count, seconds, wrong)
        for kind in get_args(SubsumptionClass)
        for count in (_QUICK_COUNTS if quick else _COUNTS)
    )
    drawn = ("groups", "isolated / shared", "ms a second, subsume")
    return Sheet(rows, tuple(wrong), tuple(_panel(rows, column) for column in drawn))


def _panel(rows: tuple[Row, ...], column: str) -> Panel:
    lines: dict[str, Any] = {}
    for kind in dict.fromkeys(str(row["class"]) for row in rows):
        own = [row for row in rows if row["class"] == kind]
        lines[kind] = tuple(tuple(row[name] for row in own) for name in ("windows", column))
    return Panel(column, "windows", column, lines)


SUBSUME = Table(
    name="local/subsume",
    question="What do ten thousand windows keep and take, against windows by themselves?",
    columns=(
        Column("class"),
        Column("windows", ",d"),
        Column("different", ",d"),
        Column("groups", "d"),
        Column("KiB isolated", ",.1f"),
        Column("KiB shared", ",.1f"),
        Column("isolated / shared", ",.0f"),
        Column("tuples isolated / shared", ",.0f"),
        Column("ms a second, subsume", ".3g"),
        Column("ms a second, slice", ".3g"),
        Column("ms a second, independent", ".3g"),
    ),
    compute=_compute,
    limits=(
        Limit("isolated / shared", at_least=10, at_quick=False),
        Limit("ms a second, subsume", at_most=1000, at_quick=False),
    ),
)

ENTRIES: tuple[Entry, ...] = (SUBSUME,)
