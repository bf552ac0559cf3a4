"""Throughput and worst latency of every technique in a session: by range, queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.bench.frame import Cell, Column, Entry, Limit, Panel, Row, Sheet, Table
from weft.bench.suite.techniques.pushes import (
    Load,
    compared,
    milliseconds,
    pushed,
    running_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_ONE_BY_ONE = 10_000
_RANGES = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
_QUERIES = (1, 3, 10, 30, 100)
_KEYS = (1, 10, 100, 1_000, 10_000)
_SECONDS_EACH = 100  # of a push that throughput is taken from
Loads = dict[int, Load]
Seconds = npt.NDArray[np.float64]


def _by_range(quick: bool) -> Loads:
    return {n: Load(1, (n,)) for n in (_RANGES[:3] if quick else _RANGES)}


def _by_queries(quick: bool) -> Loads:
    counts = _QUERIES[:2] if quick else _QUERIES
    return {n: Load(10, tuple(range(200, 200 + 8 * n, 8))) for n in counts}


def _by_keys(quick: bool) -> Loads:
    return {n: Load(n, (60,)) for n in (_KEYS[:2] if quick else _KEYS)}


def _computing(loads_of: Callable[[bool], Loads], varied: str) -> Callable[[bool], Sheet]:
    def compute(quick: bool) -> Sheet:
        rows: list[Row] = []
        wrong: list[str] = []
        for x, load in loads_of(quick).items():
            few = 2 if quick else max(2, min(10, 2_000_000 // (load.keys * _SECONDS_EACH)))
            single = 5 if quick else max(20, min(200, 200_000 // load.keys))
            bulk = {
                name: pushed(name, load, pushes=few, seconds_each=_SECONDS_EACH)
                for name in running_at(max(load.ranges), _MOST_ONE_BY_ONE)
            }
            alone = {
                name: pushed(name, load, pushes=single, seconds_each=1, passes=1 if quick else 3)
                for name in bulk
            }
            wrong += [f"{varied} {x}: {text}" for text in (*compared(bulk), *compared(alone))]
            rows += [_row(varied, x, load, name, bulk[name].seconds, alone[name].seconds)
                     for name in bulk]  # fmt: skip
        return Sheet(tuple(rows), tuple(wrong), _panels(rows, varied))

    return compute


def _row(
    varied: str,
    x: int,
    load: Load,
    name: str,
    bulk: np.ndarray,
    alone: np.ndarray,
) -> Mapping[str, Cell]:
    slides = load.keys * _SECONDS_EACH
    median = float(np.median(alone))
    return {
        varied: x,
        "technique": name,
        "thousand slides/s": slides / float(np.median(bulk)) / 1e3,
        "median ms": milliseconds(median),
        "worst ms": milliseconds(alone.max()),
        "worst / median": float(alone.max()) / median,
    }


def _panels(rows: list[Row], varied: str) -> tuple[Panel, ...]:
    found = []
    for column in ("thousand slides/s", "worst ms"):
        lines: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        for row in rows:
            x, y = row[varied], row[column]
            assert isinstance(x, int)
            assert isinstance(y, float)
            xs, ys = lines.get(str(row["technique"]), ((), ()))
            lines[str(row["technique"])] = ((*xs, float(x)), (*ys, y))
        found.append(Panel(column, varied, column, lines, log_x=True, log_y=True))
    return tuple(found)


def _table(varied: str, question: str, loads_of: Callable[[bool], Loads]) -> Table:
    return Table(
        name=f"techniques/by_{varied}",
        question=question,
        columns=(
            Column(varied, ",d"),
            Column("technique"),
            Column("thousand slides/s", ",.0f"),
            Column("median ms", ".3f"),
            Column("worst ms", ".3f"),
            Column("worst / median", ".2f"),
        ),
        compute=_computing(loads_of, varied),
    )


BY_RANGE = _table("slices", "What does a slide cost in a session, from 1 slice to 1e6?", _by_range)
BY_QUERIES = _table("queries", "And with more windows over the same slices?", _by_queries)
BY_KEYS = _table("keys", "And with more keys in a push?", _by_keys)


def _evenness(quick: bool) -> Sheet:
    load = Load(200, (64,) if quick else (4096,))
    rows: list[Row] = []
    found = {}
    for name in ("two_stacks_lite", "daba_lite"):
        passes = 1 if quick else 5
        got = found[name] = pushed(
            name, load, pushes=20 if quick else 600, seconds_each=1, passes=passes
        )
        median, worst = float(np.median(got.seconds)), float(got.seconds.max())
        rows.append(
            {
                "technique": name,
                "slices": load.ranges[0],
                "median ms": milliseconds(median),
                "worst ms": milliseconds(worst),
                "worst / median": worst / median,
            }
        )
    return Sheet(tuple(rows), tuple(compared(found)))


EVENNESS = Table(
    name="techniques/latency",
    question="How much slower than most is the slowest push of DABA-lite, with 200 keys?",
    columns=(
        Column("technique"),
        Column("slices", ",d"),
        Column("median ms", ".3f"),
        Column("worst ms", ".3f"),
        Column("worst / median", ".2f"),
    ),
    compute=_evenness,
    limits=(Limit("worst / median", at_most=3, rows={"technique": "daba_lite"}, at_quick=False),),
)

_BAR_MS = 2.0
_CUSTOM = "custom"


def _four_aggregates(quick: bool) -> Sheet:
    """Time pushes of 200 keys for ranges of 10 s and of an hour, by the plan that is chosen."""
    from weft import agg
    from weft.query import Query
    from weft.sessions.local_session import LocalSession
    from weft.window import hopping

    mean = agg.custom(
        "bench_mean",
        lift=lambda x: (1, x),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lower=lambda p: p[1] / p[0],
        identity=(0, 0),
        commutative=True,
        idempotent=False,
    )
    asked = {"sum": agg.sum("n"), "max": agg.max("n"), "var": agg.var("n"), _CUSTOM: mean("n")}
    rows: list[Row] = []
    for name, aggregate in asked.items():
        medians = []
        for seconds in (10, 60) if quick else (10, 3600):
            load = Load(200, (seconds,))
            windows = {"h": hopping(seconds * 1_000_000, 1_000_000)}
            query = Query(
                "q", source="s", time="ts", keys=["k"], windows=windows, aggs={"v": aggregate}
            )
            medians.append(_median_push(LocalSession(query), load, 10 if quick else 300))
        rows.append(
            {
                "aggregate": name,
                "short ms": milliseconds(medians[0]),
                "long ms": milliseconds(medians[1]),
                "ratio": medians[1] / medians[0],
            }
        )
    return Sheet(tuple(rows))


def _median_push(session: object, load: Load, pushes: int) -> float:
    from time import perf_counter

    from weft.sessions.local_session import LocalSession

    assert isinstance(session, LocalSession)
    session.push("s", load.events(0, load.ranges[0]))
    times = []
    for at in range(pushes):
        table = load.events(load.ranges[0] + at, 1)
        start = perf_counter()
        session.push("s", table)
        times.append(perf_counter() - start)
    return float(np.median(times[pushes // 5 :]))


AGGREGATES = Table(
    name="techniques/aggregates",
    question="Does a push of 200 keys cost the same for ten seconds and for an hour?",
    columns=(
        Column("aggregate"),
        Column("short ms", ".3f"),
        Column("long ms", ".3f"),
        Column("ratio", ".2f"),
    ),
    compute=_four_aggregates,
    limits=(
        Limit("ratio", at_most=1.5, at_quick=False),
        Limit("long ms", at_most=_BAR_MS, at_quick=False),
    ),
)

ENTRIES: tuple[Entry, ...] = (AGGREGATES, EVENNESS, BY_RANGE, BY_QUERIES, BY_KEYS)
