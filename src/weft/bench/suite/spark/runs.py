"""What the Spark entries share: events in a file, runs of plans, and answers that can be compared.

A run writes every row to Spark's `noop` sink, which costs nothing, and its answer is a summary
that Spark takes of the rows on their way: their number, a checksum of keys and instances, and of
each aggregate a sum in which every row has a weight of its own, or, of counts, minima and maxima, a
checksum. It is read when it is compared, after the clock has stopped.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.bench.suite.spark.sessions import bench_session
from weft.generate import sensors
from weft.query import Query, Workload
from weft.running import plan_for
from weft.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

    from weft.bench.frame import Runner
    from weft.plan import Plan

RATE = 1000.0  # events per second
DEVICES = 10
# Floating-point sums are added up in any order.
_TOLERANCE = 1e-9
_WEIGHTS = 1009
_EXACT = ("count", "min", "max")
_WARM_UP_EVENTS = 200_000

# By query: what Spark has seen of its rows, or its summary.
Answer = dict[str, "Observation | dict[str, Any]"]


class Inputs(NamedTuple):
    """Events as Spark reads them, and the queries over them."""

    events: DataFrame
    workload: Workload

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries; benchmarks have no joins."""
        return tuple(query for query in self.workload if isinstance(query, Query))


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="weft-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def readings(events: int, devices: int = DEVICES, rate: float = RATE) -> DataFrame:
    """Return sensor readings in parquet files, made once; Spark reads them anew in every run."""
    table = sensors(events, 7, devices=devices, rate=rate)
    return stored(table, f"readings-{events}-{devices}-{rate:g}")


def stored(table: pa.Table, name: str) -> DataFrame:
    """Let Spark write a table to parquet files, as those that it reads mostly are; return them.

    Times are written as numbers of microseconds, as table formats do, not in the older form.
    """
    given, path = _folder() / f"{name}.given.parquet", str(_folder() / name)
    write_table(table, given)
    session = bench_session()
    form = "spark.sql.parquet.outputTimestampType"
    session.conf.set(form, "TIMESTAMP_MICROS")
    session.read.parquet(str(given)).write.parquet(path)
    session.conf.unset(form)
    given.unlink()
    return session.read.parquet(path)


def inputs_of(
    queries: Callable[..., Iterable[Query]],
) -> Callable[..., Inputs]:
    """Make a race's inputs: readings, and the queries that its other arguments tell."""

    def inputs(events: int, **arguments: int) -> Inputs:
        asked = tuple(queries(**arguments))
        warm_up(events, asked)
        return Inputs(readings(events), Workload(asked))

    return inputs


def warm_up(events: int, asked: Sequence[Query]) -> None:
    """Run some windows: what runs first pays for classes that are loaded and code compiled."""
    if events > _WARM_UP_EVENTS:
        some = Workload([_with_windows(query, 2) for query in asked[:3]])
        for start in (run_shared, run_stock):
            start(Inputs(readings(_WARM_UP_EVENTS), some))()


def _with_windows(query: Query, most: int) -> Query:
    return Query(
        query.name,
        source=query.source,
        time=query.time,
        keys=dict(query.keys),
        windows=dict(query.windows[:most]),
        aggs=dict(query.aggs),
    )


def run_shared(inputs: Inputs) -> Runner:
    """Run all queries as one plan, which is made within the time, knowing nothing of the events."""
    from weft.engines.spark.engine import SparkEngine

    tables, engine = dict.fromkeys(inputs.workload.sources, inputs.events), SparkEngine()

    def runner() -> Answer:
        plan = plan_for(inputs.workload, tables, engine)
        with engine.run(plan, tables) as results:
            return answered(inputs, results)

    return runner


def run_plan(plan: Plan, inputs: Inputs) -> Runner:
    """Run a plan as it is."""
    from weft.engines.spark.engine import SparkEngine

    def runner() -> Answer:
        results = SparkEngine().run(plan, dict.fromkeys(inputs.workload.sources, inputs.events))
        with results:
            return answered(inputs, results)

    return runner


def run_stock(inputs: Inputs) -> Runner:
    """Run each query by itself, as a union of one `window()` aggregation per window."""
    from weft.engines.spark.stock import stock

    def runner() -> Answer:
        results = {query.name: stock(query, inputs.events) for query in inputs.queries}
        return answered(inputs, results)

    return runner


def answered(inputs: Inputs, results: Mapping[str, DataFrame]) -> Answer:
    """Compute every row of every query, and keep what tells answers apart."""
    from pyspark.sql import Observation

    seen: Answer = {}
    for query in inputs.queries:
        observation = Observation()
        write_nowhere(results[query.name].observe(observation, *_summary(query)))
        seen[query.name] = observation
    return seen


@cache
def _summary(query: Query) -> tuple[Column, ...]:
    from pyspark.sql import functions as F

    named = [*(name for name, _ in query.keys), *query.window_columns]
    identity = F.xxhash64(*(F.col(name) for name in named))
    weight = F.pmod(identity, F.lit(_WEIGHTS)) + 1
    # What nobody rounds is compared to the last bit.
    told = {
        a: F.bit_xor(F.xxhash64(identity, F.col(a)))
        if call.function in _EXACT
        else F.sum(weight * F.col(a).cast("double"))
        for a, call in query.aggs
    }
    return (
        F.count(F.lit(1)).alias("rows"),
        F.bit_xor(identity).alias("instances"),
        *(column.alias(a) for a, column in told.items()),
    )


def write_nowhere(rows: DataFrame) -> None:
    """Compute every row and keep none."""
    rows.write.format("noop").mode("overwrite").save()


def same_answers(expected: Answer, answer: Answer) -> str:
    """Say which query differs in what; empty when none does.

    >>> same_answers({"q": {"rows": 3, "lo": 1.0}}, {"q": {"rows": 3, "lo": 1.0 + 1e-12}})
    ''
    >>> same_answers({"q": {"rows": 3}}, {"q": {"rows": 4}})
    'q: expected rows 3, got 4'
    """
    for query, summary in expected.items():
        found = _read(answer[query])
        for name, value in _read(summary).items():
            got = found[name]
            both = isinstance(value, float) and isinstance(got, float)
            if not (isclose(value, got, rel_tol=_TOLERANCE) if both else value == got):
                return f"{query}: expected {name} {value!r}, got {got!r}"
    return ""


def _read(summary: Observation | dict[str, Any]) -> dict[str, Any]:
    return summary if isinstance(summary, dict) else summary.get


def shuffled_bytes(session: SparkSession) -> int:
    """Return how many bytes all tasks of a session have written to shuffles so far."""
    context = session.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(True)
    return sum(executors.apply(at).totalShuffleWrite() for at in range(executors.length()))
