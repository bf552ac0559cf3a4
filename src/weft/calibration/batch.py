"""Probes of batches: plans that differ in what they do most, over data that differ in shape."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from weft import agg
from weft.calibration.clocks import seconds_of
from weft.calibration.fit import Probe
from weft.cost.batch.model import SparkModel
from weft.cost.batch.plans import works_of
from weft.cost.batch.work import Work, total
from weft.cost.model import RateModel, over
from weft.cost.prices import BY_ROW, Coefficients
from weft.cost.volumes import SECOND_US, Volumes
from weft.plan.body import STOCK, STRATEGIES
from weft.planners.portfolio import optimize
from weft.query import Query, Workload
from weft.running import run
from weft.statistics import Statistics
from weft.window import hopping, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weft.calibration.clocks import Clock
    from weft.plan import Plan

EVENTS = {"reference": 4_000, "local": 1_000_000, "spark": 1_000_000}
PARTS = 8  # files of a source: read by all cores
_ROUNDS = 3
_WARM_UPS = 2
_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"
_USUAL_PARTITIONS = "8"  # of a session in which Spark plans anew: more than there are cores
_SHAPE_SECONDS = 1200.0  # the windows of a shape are made for events that last so long


class Source(NamedTuple):
    """Events of one shape: how many of all, their keys, how long they last, and the session."""

    name: str
    part: float
    keys_part: float  # keys for each event, or, from 1 on, keys
    text: bool
    seconds: float
    adaptive: bool

    def events(self, most: int) -> int:
        """Return how many events there are."""
        return max(round(most * self.part), 20)

    def keys(self, most: int) -> int:
        """Return how many keys there are."""
        wanted = self.keys_part if self.keys_part >= 1 else self.keys_part * self.events(most)
        return max(round(wanted), 1)

    def table(self, most: int) -> pa.Table:
        """Make the events, in the order of time."""
        draw = np.random.default_rng(7)
        events, keys = self.events(most), self.keys(most)
        times_us = np.sort(draw.integers(0, int(self.seconds * SECOND_US), events))
        numbers = draw.integers(0, keys, events)
        names = pa.array([f"device-{n:06d}" for n in range(keys)])
        device = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), names)
        return pa.table(
            {
                "ts": pa.array(times_us, pa.timestamp("us", "UTC")),
                "device": device.cast(pa.string()) if self.text else pa.array(numbers),
                "temp": pa.array(draw.normal(20.0, 5.0, events).round(2)),
            }
        )

    def statistics(self, most: int) -> Statistics:
        """Tell the truth about the events."""
        return Statistics(
            rate=self.events(most) / self.seconds,
            keys=self.keys(most),
            events=self.events(most),
            key_bytes=13.0 if self.text else 8.0,
            adaptive=self.adaptive,
            partitions=PARTS,
            kept=_THIRDS,
        )


# A run over hardly any events shows what every run takes, which would else pass for the cost of
# scanning, or the other way round.
SOURCES = (
    Source("many", 1.0, 1000, text=True, seconds=1200.0, adaptive=True),
    Source("large", 8.0, 10, text=False, seconds=1200.0, adaptive=False),
    Source("sparse", 0.4, 0.1, text=True, seconds=86_400.0, adaptive=True),
    Source("few", 0.02, 50, text=True, seconds=1200.0, adaptive=True),
    Source("hardly any", 0.001, 10, text=False, seconds=1200.0, adaptive=False),
    Source("dense", 1.0, 10, text=False, seconds=1200.0, adaptive=False),
)
_OF_LARGE = ("coarse", "eight")  # what reads events and does little else
TOGETHER = "together"  # queries whose filters are conditions on the same slices
# Filters of temperatures, which are normal around 20, and what they keep.
_THIRDS = {"temp < 18": 0.345, "temp >= 18 AND temp < 22": 0.31, "temp >= 22": 0.345}
_ODD_WINDOWS = ("odd", "odd wide")  # on Spark of one source: they take long
_MANY_WINDOWS = ("eight", "nine", *_ODD_WINDOWS)


class Shape(NamedTuple):
    """Windows and aggregates that are asked for."""

    name: str
    windows: dict[str, Any]
    aggs: dict[str, Any]
    filters: tuple[str | None, ...] = (None,)  # of each query

    def workload(self) -> Workload:
        """Return the queries."""
        return Workload(
            Query(
                f"probe{number or ''}",
                source="readings",
                time="ts",
                keys=["device"],
                where=where,
                windows=self.windows,
                aggs=self.aggs,
            )
            for number, where in enumerate(self.filters)
        )


def _shapes(unit: float) -> Iterator[Shape]:
    """Windows over events that last `unit` times as long as those that shapes are made for."""

    def us(seconds: float) -> int:
        return round(seconds * unit * SECOND_US)

    one = {"lo": agg.min("temp")}
    wide = one | {"hi": agg.max("temp"), "mean": agg.avg("temp"), "n": agg.count()}
    fine = {"1": tumbling(us(1))}
    hop = {"60/10": hopping(us(60), us(10))}
    eight = {f"{n}": tumbling(us(n)) for n in range(10, 50, 5)}
    odd = {f"{n}": tumbling(us(n)) for n in (7, 11, 13, 17, 23, 29, 37)}
    nine = {f"{n}": tumbling(us(n)) for n in (1, 5, 15, 60, 300, 1200)}
    nine |= {f"{r}/{s}": hopping(us(r), us(s)) for r, s in ((60, 5), (300, 60), (1200, 60))}
    yield Shape("fine", fine, wide)
    yield Shape("fine narrow", fine, one)
    yield Shape("coarse", {"300": tumbling(us(300))}, wide)
    yield Shape("hop", hop, wide)
    yield Shape("eight", eight, one)
    # Of windows whose edges hardly meet there are almost as many slices as events.
    yield Shape("odd", odd, one)
    yield Shape("odd wide", odd, wide)
    yield Shape("nine", nine, wide)
    # Every event is in one of three queries, and has no part in the partials of the others.
    yield Shape(TOGETHER, fine, wide, tuple(_THIRDS))


def _plans(shape: Shape, source: Source, engine: str) -> Iterator[tuple[str, str | None]]:
    """List planners and strategies; what hardly any events take is the same for all planners."""
    if source.part > 1 and shape.name not in _OF_LARGE:
        return
    if engine == "spark" and shape.name in _ODD_WINDOWS and source is not SOURCES[0]:
        return
    if shape.name == TOGETHER:
        if engine == "local":
            yield TOGETHER, None
        return
    several = shape.name in _MANY_WINDOWS and 0.001 < source.part <= 1
    planners = ["slice", "factor", "independent"] if several else ["slice"]
    if shape.name == "hop" and engine != "reference":
        planners.append("independent")
    if engine != "spark":
        yield from ((planner, None) for planner in planners)
        return
    yield from ((planner, strategy) for planner in planners for strategy in STRATEGIES)
    if several or shape.name == "hop":
        yield STOCK, None


def batch_probes(
    engine: str, events: int, progress: Callable[[str], None], clock: Clock
) -> Iterator[Probe]:
    """Time every plan on every source, and count its work."""
    with TemporaryDirectory(prefix="weft-calibrate-") as folder:
        for number, source in enumerate(SOURCES):
            table = source.table(events)
            place = Path(folder, str(number))
            frame = on_engine(engine, table, place, adaptive=source.adaptive)
            known = source.statistics(events)
            if number == 0:
                progress("plans that nobody times: classes are loaded, code is compiled")
                _warm_up(source, frame, known, engine)
            for shape in _shapes(source.seconds / _SHAPE_SECONDS):
                for planner, strategy in _plans(shape, source, engine):
                    words = " ".join(filter(None, (shape.name, planner, strategy)))
                    progress(f"{words}, {table.num_rows:,} events of {known.keys:,} keys")
                    yield _probe(
                        f"{words} {source.name}",
                        shape.workload(),
                        frame,
                        known,
                        engine,
                        planner,
                        strategy,
                        clock,
                    )


def _warm_up(source: Source, frame: Any, known: Statistics, engine: str) -> None:
    last = next(s for s in _shapes(source.seconds / _SHAPE_SECONDS) if s.name == "nine")
    for planner, strategy in _plans(last, source, engine):
        by = "independent" if planner == STOCK else planner
        plan = optimize(last.workload(), by, engine, known, strategy=strategy)
        for _ in range(_WARM_UPS):
            timed(plan, frame, engine, planner)


def on_engine(engine: str, table: pa.Table, path: Path, *, adaptive: bool) -> Any:
    """Give events to an engine: to Spark as files, in a session that plans anew or does not."""
    if engine != "spark":
        return table
    from weft.engines.spark.session import local_session
    from weft.tables import write_table

    session = local_session()
    session.conf.set(_ADAPTIVE, str(adaptive).lower())
    partitions = str(session.sparkContext.defaultParallelism)
    session.conf.set(_PARTITIONS, _USUAL_PARTITIONS if adaptive else partitions)
    # From files: rows that are part of a plan would be compared whenever Spark compares plans.
    length = table.num_rows // PARTS + 1
    for part in range(PARTS):
        write_table(table.slice(part * length, length), path / f"{part}.parquet")
    return session.read.parquet(str(path))


def _probe(
    name: str,
    workload: Workload,
    frame: Any,
    known: Statistics,
    engine: str,
    planner: str,
    strategy: str | None,
    clock: Clock,
) -> Probe:
    if planner == TOGETHER:
        plan = optimize(workload, "slice", engine, known, filters="together")
    else:
        by = "independent" if planner == STOCK else planner
        plan = optimize(workload, by, engine, known, strategy=strategy)
    return probe_of(name, plan, frame, known, planner, clock)


def probe_of(
    name: str, plan: Plan, frame: Any, known: Statistics, planner: str, clock: Clock
) -> Probe:
    """Time a plan, or stock Spark in its place, and count its work."""
    counted = work_of(plan, known, planner)
    seconds = sorted(timed(plan, frame, plan.engine, planner, clock) for _ in range(_ROUNDS))
    return Probe(name, seconds[0] * 1e3, counted, seconds[1] / seconds[0] - 1)


def timed(plan: Plan, frame: Any, engine: str, planner: str, clock: Clock = "wall") -> float:
    """Run a plan, or what Spark does without it, to its end, and return the seconds it took."""
    read = seconds_of(clock, children=engine == "spark")
    start = read()
    if planner == STOCK:
        from weft.engines.spark.stock import stock

        result = stock(plan.queries[0], frame)
    else:
        result = run(plan, {scan.source: frame for scan in plan.scans}, engine=engine)
    if engine == "spark":
        result.write.format("noop").mode("overwrite").save()
    return read() - start


def work_of(plan: Plan, known: Statistics, planner: str) -> Work:
    """Count what a plan of one scope does, or Spark in its place."""
    if plan.engine == "reference":
        return _reference_work(plan, known)
    if planner == STOCK:
        model = SparkModel.of(Volumes(known, known.lasts_us()))
        return model.spark.stock(plan.nodes) or {}
    return total(*works_of(plan, known, known.lasts_us()).values())


def _reference_work(plan: Plan, known: Statistics) -> Work:
    """Count by pricing with coefficients of one."""
    found: Work = {("reference", "run"): 1.0}
    for name in BY_ROW:
        prices: dict[str, Any] = {f"{name}_ns": 1.0}
        one = over(Coefficients("reference", "", **prices), known.lasts_us() / SECOND_US)
        count = sum(RateModel(known, one).node_costs(plan.nodes)) * 1e6
        if count:
            found["reference", name] = count
    return found
