"""Probes of streams: a table is played back in few micro-batches and in many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft import agg
from weft.calibration.fit import Probe
from weft.calibration.random_plans import hopeful, plans_of, seeds
from weft.cost.prices import BY_ROW, Coefficients
from weft.cost.streams import (
    STREAM,
    STREAM_COLUMNAR,
    StreamModel,
    columnar_stream_costs,
    native_stream_costs,
    per_micro_batch,
)
from weft.generate.random_workloads import drawn
from weft.plan.body import COLUMNAR, NATIVE
from weft.planners.portfolio import optimize
from weft.query import Query, Workload
from weft.statistics import Statistics
from weft.window import hopping, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from weft.cost.batch.work import Work
    from weft.plan import Plan

EVENTS = 1_000_000
_SECONDS = 1200.0  # many instances of the longest window, whatever the number of events
# Micro-batches: with few, events weigh most, with many, states.
_FEW, _MANY = 2, 8
_ROUNDS = 2
_FILES = {NATIVE: STREAM, COLUMNAR: STREAM_COLUMNAR}
# Those of a random workload; the first, in which code is compiled, is not timed.
MICRO_BATCHES = 4
_WATERMARK = "1 second"


def _workloads() -> Iterator[tuple[str, str, Workload]]:
    """Plans that differ in what they do most: reading, folding, combining, writing."""
    one = {"lo": agg.min("temp")}
    four = one | {"hi": agg.max("temp"), "total": agg.sum("temp"), "n": agg.count()}
    shapes = {
        "fine": {"1s": tumbling("1 second")},
        "coarse": {"30s": tumbling("30 seconds")},
        "hop": {"60s/10s": hopping("60 seconds", "10 seconds")},
        "eight": {f"{n}s": tumbling(f"{n} seconds") for n in range(10, 50, 5)},
    }
    for shape, windows in shapes.items():
        for width, aggs in (("narrow", one), ("wide", four)):
            query = Query(
                shape,
                source="readings",
                time="ts",
                keys=["device"],
                windows=windows,
                aggs=aggs,
                watermark="10 seconds",
            )
            for planner in ("independent", "slice"):
                yield f"{shape} {width} {planner}", planner, Workload([query])


def stream_probes(events: int, progress: Callable[[str], None]) -> Iterator[Probe]:
    """Play tables back as streams under both strategies."""
    from weft.engines.spark.session import local_session
    from weft.generate import sensors
    from weft.sessions.replay import drained, replayed

    session, rate, warm = local_session(), events / _SECONDS, set[str]()
    for devices in (10, 1000):
        table = sensors(events, 7, devices=devices, rate=rate)
        known = Statistics(rate=rate, keys=devices)
        for strategy, files in ((s, f) for s in (NATIVE, COLUMNAR) for f in (_FEW, _MANY)):
            batch_us = int(_SECONDS / files * 1e6)
            for name, planner, workload in _workloads():
                if not _is_probed(name, planner, strategy, files):
                    continue
                progress(f"{name} {strategy}, {devices} keys, {files} micro-batches")
                plan = optimize(
                    workload, planner, "spark", known, strategy=strategy, micro_batch=batch_us
                )
                with replayed({"readings": table}, {}, session, files) as streams:
                    if strategy not in warm:  # kernels and classes are compiled at their first use
                        drained(plan, streams, strategy)
                        warm.add(strategy)
                    counted = _work(plan, known, strategy, batch_us, files)
                    where = f"{name} {strategy} {devices} in {files}"
                    yield _probe(where, plan, streams, strategy, counted)


def stream_workload_probes(
    workloads: int, events: int, progress: Callable[[str], None]
) -> Iterator[Probe]:
    """Play random workloads back under all their plans, over a tenth to two fifths of the events.

    A stream that catches up closes thousands of windows in a micro-batch, where the tables of
    other probes have seconds for slices.
    """
    from weft.engines.spark.session import local_session
    from weft.sessions.replay import replayed

    session = local_session()
    for seed in seeds(workloads):
        one = drawn(seed, (max(events // 10, 1), max(events * 2 // 5, 1)), _WATERMARK)
        batch_us = round(one.span_s * 1e6 / MICRO_BATCHES)
        plans = hopeful(plans_of(one.workload(), "spark", one.statistics, batch_us))
        with replayed({"readings": one.table()}, {}, session, MICRO_BATCHES) as streams:
            for label, plan in plans:
                progress(f"{label} of random workload {seed}, {one.events:,} events")
                strategy = plan.strategies[0].strategy
                counted = _work(plan, one.statistics, strategy, batch_us, MICRO_BATCHES)
                probe = _probe(f"{label} {seed}", plan, streams, strategy, counted)
                yield replace(probe, spread=None)  # nobody ran this code before


def _probe(
    name: str, plan: Plan, streams: Mapping[str, Any], strategy: str, counted: Work
) -> Probe:
    from weft.sessions.replay import drained

    seconds = sorted(drained(plan, streams, strategy) for _ in range(_ROUNDS))
    return Probe(name, seconds[0] * 1e3, counted, seconds[1] / seconds[0] - 1)


def _is_probed(name: str, planner: str, strategy: str, files: int) -> bool:
    """Choose probes: states in few and in many micro-batches, and one level of them in few."""
    if planner == "slice":
        return files == _FEW or "narrow" in name
    return strategy == NATIVE and files == _FEW  # one level of states, and copies of events


def _work(plan: Plan, known: Statistics, strategy: str, batch_us: int, files: int) -> Work:
    """Count the work of all micro-batches, by pricing with coefficients of one."""
    engine = _FILES[strategy]
    found: Work = {}
    price = native_stream_costs if strategy == NATIVE else columnar_stream_costs
    for name in BY_ROW:
        prices: dict[str, Any] = {f"{name}_ns": 1.0}
        one = per_micro_batch(Coefficients(engine, "", **prices), batch_us)
        model = StreamModel(known, one, micro_batch_us=batch_us, columnar=one)
        count = sum(price(plan.nodes, model)) * 1e6 * files
        if count:
            found[engine, name] = count
    return found
