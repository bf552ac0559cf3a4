"""Coefficients of the cost model, measured: run probe plans on an engine and fit what they cost.

A plan's cost is linear in the coefficients, so the work of a probe plan is a row of operation
counts, its running time the right-hand side, and the coefficients the non-negative least-squares
solution. Rows are scaled by the time, so that short runs count as much as long ones. What every
run takes, whatever the plan, such as Spark's scheduling, is fitted as well and left out.

Spark has two sets of coefficients, one for each of its strategies.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from weft import agg
from weft.cost.model import (
    Coefficients,
    RateModel,
    coefficients_of,
    shipped_coefficients,
    user_coefficients,
)
from weft.cost.strategies import ColumnarModel, native_costs, stream_columnar_costs
from weft.cost.streams import STREAM, STREAM_COLUMNAR, StreamModel, per_second
from weft.errors import UnsupportedError
from weft.plan.body import COLUMNAR, NATIVE
from weft.planners.portfolio import optimize
from weft.query import Query, Workload
from weft.running import run
from weft.statistics import Statistics
from weft.window import hopping, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from weft.plan import Plan

_SPARK_COLUMNAR = f"spark-{COLUMNAR}"
EVENTS = {
    "reference": 4_000,
    "local": 1_000_000,
    "spark": 4_000_000,  # the native strategy; with fewer, what every run takes weighs most
    _SPARK_COLUMNAR: 4_000_000,
    STREAM: 4_000_000,  # the native strategy
    STREAM_COLUMNAR: 1_000_000,
}
# Devices, and the part of the events that they have. A run over hardly any events shows what
# every run takes, which would else pass for the cost of scanning, or the other way round.
_HARDLY_ANY = 0.001
_SOURCES = ((10, 1.0), (1000, 1.0), (10, _HARDLY_ANY))
_STREAM_SECONDS = 1200.0  # many instances of the longest window, whatever the number of events
_ROUNDS = 3
_WEIGHT_OF_SHIPPED = 0.05  # a cost twice as high counts as much as a probe wrong by 5 %
# What is planned for, and the strategy that is forced, to measure a set of coefficients.
_FORCED = {
    "spark": ("spark", NATIVE),
    _SPARK_COLUMNAR: ("spark", COLUMNAR),
    STREAM: (STREAM, NATIVE),
    STREAM_COLUMNAR: (STREAM, COLUMNAR),
}
# Micro-batches of a probe that is a stream: with few, events weigh most, with many, states.
_FEW, _MANY = 2, 8
# Here an aggregation takes its time once a run, however long the stream. The probes tell how long,
# but as a price of every second of stream it would forbid all sharing where events are rare.
_BATCH_ON_SPARK = ("spark", _SPARK_COLUMNAR)
_COSTS = tuple(f.name for f in fields(Coefficients) if f.name.endswith("_ns"))


@dataclass(frozen=True, slots=True)
class Probe:
    """One plan on one data set, its running time, and the operations the model counts for it."""

    name: str
    seconds: float
    operations: tuple[float, ...]  # in the order of the coefficients
    known_seconds: float = 0.0  # work at prices that are measured elsewhere


@dataclass(frozen=True, slots=True)
class Calibration:
    """Fitted coefficients, and how well they order the probes they were fitted to."""

    coefficients: Coefficients
    probes: tuple[Probe, ...]
    rank_correlation: float
    run_seconds: float = 0.0  # what a run takes besides

    def predicted(self, probe: Probe) -> float:
        """Seconds the fitted model expects of a probe."""
        costs: list[float] = [getattr(self.coefficients, name) for name in _COSTS]
        own_ns = sum(c * n for c, n in zip(costs, probe.operations, strict=True))
        return own_ns / 1e9 + probe.known_seconds + self.run_seconds


def calibrate(
    engine: str,
    events: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Calibration:
    """Run the probes of an engine and fit its coefficients."""
    if engine not in EVENTS:
        raise UnsupportedError(
            f"there is nothing to calibrate on {engine!r}", hint=f"use one of {', '.join(EVENTS)}"
        )
    probes = tuple(_probes(engine, events or EVENTS[engine], progress))
    return _fit(engine, probes)


def engines_of(engine: str) -> tuple[str, ...]:
    """List what is calibrated under the name of an engine: Spark has two strategies.

    >>> engines_of("local"), engines_of("spark")
    (('local',), ('spark', 'spark-columnar'))
    """
    others = {"spark": (_SPARK_COLUMNAR,), STREAM: (STREAM_COLUMNAR,)}
    return (engine, *others.get(engine, ()))


def save(calibration: Calibration) -> Path:
    """Keep the coefficients for this user; planning uses them from now on."""
    place = user_coefficients(calibration.coefficients.engine)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(asdict(calibration.coefficients), indent=2) + "\n")
    return place


def _workloads(watermark: str | None = None) -> Iterator[tuple[str, str, Workload]]:
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
                watermark=watermark,
            )
            factor = ("factor",) if shape == "eight" else ()
            for planner in ("independent", *factor, "slice"):
                yield f"{shape} {width} {planner}", planner, Workload([query])


def _probes(engine: str, events: int, progress: Callable[[str], None]) -> Iterator[Probe]:
    from weft.generate import sensors

    family, strategy = _FORCED.get(engine, (engine, None))
    if family == STREAM and strategy is not None:
        yield from _stream_probes(engine, strategy, events, progress)
        return
    with TemporaryDirectory(prefix="weft-calibrate-") as folder:
        for number, (devices, part) in enumerate(_SOURCES):
            own = max(1, round(events * part))
            rate = own / _STREAM_SECONDS
            known = Statistics(rate=rate, keys=devices)
            table = sensors(own, 7, devices=devices, rate=rate)
            source = _on_engine(family, table, Path(folder, f"{number}.parquet"))
            for name, planner, workload in _workloads():
                if part == _HARDLY_ANY and planner != "slice":
                    continue
                progress(f"{name}, {own:,} events of {devices} keys")
                plan = optimize(workload, planner, family, known, strategy=strategy)
                seconds = min(_timed(plan, source, family) for _ in range(_ROUNDS))
                yield _probe(f"{name} {own}/{devices}", seconds, plan, engine, known)


def _stream_probes(
    engine: str, strategy: str, events: int, progress: Callable[[str], None]
) -> Iterator[Probe]:
    """Play a table back as a stream, in few micro-batches and in many."""
    from weft.engines.spark.session import local_session
    from weft.generate import sensors
    from weft.sessions.replay import drained, replayed

    session, rate, warm = local_session(), events / _STREAM_SECONDS, False
    for devices in (10, 1000):
        table = sensors(events, 7, devices=devices, rate=rate)
        known = Statistics(rate=rate, keys=devices)
        for files in (_FEW, _MANY):
            batch_us = int(_STREAM_SECONDS / files * 1e6)
            for name, planner, workload in _workloads(watermark="10 seconds"):
                if not _as_stream(name, planner, strategy, files):
                    continue
                progress(f"{name}, {devices} keys, {files} micro-batches")
                plan = optimize(
                    workload, planner, "spark", known, strategy=strategy, micro_batch=batch_us
                )
                with replayed({"readings": table}, {}, session, files) as streams:
                    if not warm:  # kernels and classes are compiled at their first use
                        drained(plan, streams, strategy)
                        warm = True
                    seconds = drained(plan, streams, strategy)
                yield _probe(f"{name} {devices} in {files}", seconds, plan, engine, known, batch_us)


def _as_stream(name: str, planner: str, strategy: str, files: int) -> bool:
    """Choose probes: states in few and in many micro-batches, and copies of events in few."""
    if planner == "slice":
        return files == _FEW or "narrow" in name
    copies = name.startswith(("hop narrow", "eight narrow"))
    return planner == "independent" and strategy == NATIVE and files == _FEW and copies


def _on_engine(engine: str, table: pa.Table, path: Path) -> Any:
    if engine != "spark":
        return table
    from weft.engines.spark.session import local_session
    from weft.tables import write_table

    # From a file: rows that are part of a plan would be compared whenever Spark compares plans.
    return local_session().read.parquet(str(write_table(table, path)))


def _timed(plan: Plan, source: Any, engine: str) -> float:
    # Work in this process is told by its processor time, which no other process adds to.
    clock = time.perf_counter if engine == "spark" else time.process_time
    start = clock()
    result = run(plan, {"readings": source}, engine=engine)
    if engine == "spark":
        result.write.format("noop").mode("overwrite").save()
    return clock() - start


def _probe(
    name: str,
    seconds: float,
    plan: Plan,
    engine: str,
    known: Statistics,
    batch_us: int | None = None,
) -> Probe:
    """Count what each coefficient is multiplied by, by pricing with unit coefficients."""
    nothing = Coefficients(engine, **_prices(), measured_by="")
    counts = []
    for cost in _COSTS:
        one = Coefficients(engine, **_prices(**{cost: 1.0}), measured_by="")
        counts.append(_total(plan, known, one, nothing, batch_us))
    elsewhere = coefficients_of("spark") if engine == _SPARK_COLUMNAR else nothing
    known_ns = _total(plan, known, nothing, elsewhere, batch_us)
    return Probe(name, seconds, tuple(counts), known_ns / 1e9)


def _prices(**given: float) -> dict[str, Any]:
    return {**dict.fromkeys(_COSTS, 0.0), **given}


def _total(
    plan: Plan,
    known: Statistics,
    own: Coefficients,
    native: Coefficients,
    batch_us: int | None,
) -> float:
    """Price the work of the whole stream; slices that columnar reads are made natively."""
    if batch_us is not None:
        prices = (own, native) if own.engine == STREAM else (native, own)
        paid, columnar = (per_second(one, batch_us) for one in prices)
        stream = StreamModel(paid, known, micro_batch_us=batch_us, columnar=columnar)
        price = native_costs if own.engine == STREAM else stream_columnar_costs
        costs = price(plan.nodes, stream)
    elif own.engine == _SPARK_COLUMNAR:
        model = ColumnarModel(own, RateModel(native, known))
        costs = model.node_costs(plan.nodes, plan.strategies[0].ships)
    elif own.engine == "spark":
        costs = native_costs(plan.nodes, RateModel(own, known))
    else:
        costs = RateModel(own, known).node_costs(plan.nodes)
    return sum(costs) * _STREAM_SECONDS


def _fit(engine: str, probes: tuple[Probe, ...]) -> Calibration:
    """Fit costs that are not negative to the times, by least squares of relative errors.

    Operations that always come together, such as reading a partial and combining it, cannot be
    told apart by any probe. The shipped costs decide between them, with little weight.
    """
    import numpy as np
    from scipy.optimize import nnls
    from scipy.stats import spearmanr

    seconds = np.array([p.seconds for p in probes])
    operations = np.array([p.operations for p in probes]) / 1e9
    # The last column stands for what every run takes.
    rows = np.column_stack([operations, np.ones(len(probes))]) / seconds[:, None]
    left = np.maximum(1 - np.array([p.known_seconds for p in probes]) / seconds, 0.0)
    shipped = shipped_coefficients(engine)
    before = np.array([getattr(shipped, name) for name in _COSTS])
    expected = np.flatnonzero(before)
    prior = np.zeros((expected.size, rows.shape[1]))
    prior[np.arange(expected.size), expected] = _WEIGHT_OF_SHIPPED / before[expected]
    wanted = np.concatenate([left, np.full(expected.size, _WEIGHT_OF_SHIPPED)])
    (*solution, run_seconds), _ = nnls(np.vstack([rows, prior]), wanted)
    if engine in _BATCH_ON_SPARK:
        solution[_COSTS.index("operator_ns")] = shipped.operator_ns
    values: dict[str, Any] = {
        name: float(f"{value:.4g}") for name, value in zip(_COSTS, solution, strict=True)
    }
    fitted = Coefficients(
        engine,
        **values,
        measured_by=f"weft calibrate --engine {engine}, {len(probes)} probes, "
        f"{platform.machine()} with {os.cpu_count()} cores, {dt.datetime.now(dt.UTC):%Y-%m-%d}",
    )
    calibration = Calibration(fitted, probes, 0.0, float(run_seconds))
    rank = float(spearmanr([calibration.predicted(p) for p in probes], seconds).statistic)
    return replace(calibration, rank_correlation=rank)
