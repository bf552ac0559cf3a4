"""Random workloads and random disorder: what a stream closes and drops is the oracle's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pyspark.sql.streaming import TwsTester
from pyspark.sql.types import Row

import weft
from oracles.streams import MILLISECOND_US, NativeOracle, StreamOracle
from sampling import examples
from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint
from weft.engines.spark.streaming.checkpoint.versions import Versions
from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
from weft.engines.spark.streaming.columnar.processor import BucketProcessor
from weft.engines.spark.streaming.progress import Progress
from weft.plan import Roll
from weft.plan.planned_scope import planned_scopes
from weft.techniques import TECHNIQUES
from weft.testing import assert_same_rows
from weft.testing.strategies import (
    DECOMPOSABLE,
    HOLISTIC,
    SCHEMA,
    events,
    queries,
    windows,
)
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

    from weft.window import Window

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
SECOND_US = 1_000_000
# Spark's watermark begins in 1970.
LATER_US = 1_700_000_000 * SECOND_US
NATIVE = ("count", "sum", "min", "max", "avg", "first", "last", "bool_and", "bit_xor")


def rows_closed(output: Iterable[Row], schema: pa.Schema) -> pa.Table:
    """Put the rows of closed windows together that a processor gave."""
    blobs = [row["payload"] for row in output if row["payload"] is not None]
    return pa.concat_tables([schema.empty_table(), *map(read_table, blobs)])


def arriving(draw: Callable[[Any], Any], table: pa.Table, latest: int) -> list[pa.Table]:
    """Cut events into batches that come out of order, by up to `latest` microseconds."""
    known = table.filter(pc.is_valid(table["ts"]))
    noise = draw(st.lists(st.integers(0, latest), min_size=len(known), max_size=len(known)))
    times_us = known["ts"].cast(pa.int64()).to_numpy()
    # Events of one instant keep their order, by which counting windows tell them apart.
    _, first, of_instant = np.unique(times_us, return_index=True, return_inverse=True)
    arrival = pa.array(times_us + np.array(noise, np.int64)[first][of_instant])
    ordered = known.take(pc.sort_indices(arrival))
    cuts = sorted(draw(st.lists(st.integers(0, len(known)), min_size=3, max_size=3)))
    return [ordered.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(known)], strict=True)]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=CHECKS)
@given(data=st.data())
def test_the_processor_closes_and_drops_what_the_oracle_does(data: st.DataObject) -> None:
    unit = SECOND_US
    query = data.draw(queries(windows(unit)))
    table = data.draw(events(unit_us=unit, origin_us=LATER_US))
    delay = data.draw(st.sampled_from([0, 3 * unit, 30 * unit]))
    query = query.with_watermark(delay)
    batches = arriving(data.draw, table, delay + data.draw(st.sampled_from([0, 10, 60])) * unit)
    plan = weft.optimize(weft.Workload([query]), engine="spark")
    note(plan.explain())
    got, late = processed(query, plan, batches)
    oracle = StreamOracle(plan, delay, MILLISECOND_US).played(batches)
    assert_same_rows(query, got, oracle.tables(table.schema)["q"])
    assert late == oracle.late_events


INCREMENTAL = [name for name, one in TECHNIQUES.items() if one.form == "incremental"]


@pytest.mark.parametrize("technique", INCREMENTAL)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_processor_runs_the_technique_that_the_plan_names(technique: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    selects = "selective" in TECHNIQUES[technique].needs
    aggs = {"most": weft.agg.max("i")} if selects else {"total": weft.agg.sum("i")}
    windows = {f"{r}s": weft.hopping(f"{r} seconds", "3 seconds") for r in (9, 30, 41)}
    query = weft.Query(
        "q", source="s", time="ts", keys=["k"], windows=windows, watermark="10 seconds",
        aggs=aggs,
    )  # fmt: skip
    table = random_events(random, 400)
    known = table.filter(pc.is_valid(table["ts"]))
    late = random.integers(0, 25 * SECOND_US, known.num_rows)
    arrival = known["ts"].cast(pa.int64()).to_numpy() + late
    ordered = known.take(pa.array(np.argsort(arrival, kind="stable")))
    batches = [ordered.slice(at, 40) for at in range(0, ordered.num_rows, 40)]
    plan = weft.optimize(
        query, "slice", "spark", exact_columns={"s": frozenset({"i"})}, strategy="columnar",
        micro_batch="5 seconds", technique=technique,
    )  # fmt: skip
    named = {node.technique for node in plan.nodes if isinstance(node, Roll)}
    assert named == {technique}
    got, dropped = processed(query, plan, batches)
    oracle = StreamOracle(plan, query.watermark_us or 0, MILLISECOND_US).played(batches)
    assert oracle.late_events > 5
    assert_same_rows(query, got, oracle.tables(table.schema)["q"])
    assert dropped == oracle.late_events


def processed(query: weft.Query, plan: weft.Plan, batches: list[pa.Table]) -> tuple[pa.Table, int]:
    """Run the processor as Spark would, and return its rows and how many events were late."""
    (scope,) = planned_scopes(plan)
    hosted = HostedScope(scope.emits, batches[0].schema)
    processor = BucketProcessor(Versions(None, only={0: hosted.dump()}), Buckets(1), 0)
    tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    closed: list[Row] = []
    reached_ms = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        closed += tester.test(0, [Row(bucket=0, payload=table_chunk(batch))])
        assert query.watermark_us is not None
        watermark_ms = pc.max(batch["ts"]).value // 1000 - query.watermark_us // 1000
        if watermark_ms > reached_ms:
            reached_ms = watermark_ms
            closed += tester.setWatermark(watermark_ms)
    late = sum(row["late"] for row in closed)
    return named(query, hosted, rows_closed(closed, hosted.output)), late


def named(query: weft.Query, hosted: HostedScope, rows: pa.Table) -> pa.Table:
    """Put rows under the query's names."""
    instant = pa.timestamp("us", "UTC")
    labels = pa.array([emit.label for emit in hosted.emits], pa.string())
    at = {call: f"v{i}" for i, call in enumerate(hosted.calls)}
    columns = [
        *(rows[f"k{i}"] for i in range(len(query.keys))),
        labels.take(rows["node"].combine_chunks()),
        rows["start"].cast(instant),
        rows["end"].cast(instant),
        *(rows[at[call]] for _, call in hosted.emits[0].outputs),
    ]
    return pa.table(columns, names=list(query.columns))


def random_events(random: np.random.Generator, rows: int = 150) -> pa.Table:
    """Events of about two minutes, with ties, NULLs, NaN and a few without a time."""
    ticks = np.sort(random.integers(0, 1000, rows))
    some = random.random((4, rows)) < 0.1
    arrays = [
        pa.array(LATER_US + ticks * SECOND_US // 8, mask=some[0] & some[1]),
        pa.array(np.array(["a", "b", "c"])[random.integers(0, 3, rows)], mask=some[1]),
        pa.array(random.integers(-8, 9, rows), mask=some[2]),
        pa.array(np.where(some[3], np.nan, random.normal(0, 100, rows)), mask=some[2] & some[1]),
        pa.array(random.random(rows) < 0.4, mask=some[3]),
        pa.array(ticks // 16),
    ]
    table = pa.table(arrays, names=SCHEMA.names)
    return table.cast(SCHEMA).take(pa.array(random.permutation(rows)))


def random_window(random: np.random.Generator, *, by_events: bool) -> Window:
    a, b, c = (int(n) for n in random.integers(1, 13, 3))
    kinds: list[Callable[[], Window]] = [
        lambda: PeriodicWindow(a * SECOND_US, b * SECOND_US, c * SECOND_US),
        lambda: PeriodicWindow(2 * a * SECOND_US, a * SECOND_US, 0),
        lambda: CumulatingWindow(a * c * SECOND_US, c * SECOND_US),
        lambda: CalendarWindow("day", "Europe/Berlin"),
    ]
    if by_events:
        kinds += [
            lambda: SessionWindow(a * SECOND_US // 4),
            lambda: CountingWindow(a, b),
            lambda: PunctuatedWindow("i % 3 = 0"),
            lambda: MeasuredWindow("km", a, b),
        ]
    return kinds[random.integers(len(kinds))]()


def random_workload(random: np.random.Generator, *, native: bool) -> weft.Workload:
    """Queries with keys, filters and delays of their own, over one source."""
    offered = [c for c in DECOMPOSABLE + HOLISTIC if not native or c.function in NATIVE]

    def query(at: int) -> weft.Query:
        kinds = [random_window(random, by_events=not native) for _ in range(random.integers(1, 5))]
        asked = random.choice(len(offered), random.integers(1, 5), replace=False)
        return weft.Query(
            f"q{at}",
            source="events",
            time="ts",
            keys=[[], ["k"], ["k", "flag"]][random.integers(3)],
            where=[None, None, "i > 0", "flag OR x IS NULL"][random.integers(4)],
            windows={f"w{i}": window for i, window in enumerate(dict.fromkeys(kinds))},
            aggs={f"a{i}": offered[one] for i, one in enumerate(asked)},
            watermark=int(random.choice([0, 3, 10])) * SECOND_US,
        )

    return weft.Workload(query(at) for at in range(4))


def check_a_random_stream(streams: Any, seed: int, strategy: str) -> None:
    """Run four random queries as one stream, some events too late; compare query by query."""
    random = np.random.default_rng(seed)
    workload = random_workload(random, native=strategy == "native")
    delay_us = max(query.watermark_us or 0 for query in workload.queries)
    table = random_events(random)
    times = pc.fill_null(table["ts"].cast(pa.int64()), LATER_US).to_numpy()
    late_us = delay_us + int(random.choice([0, 20, 60])) * SECOND_US
    arrival = np.argsort(times + random.integers(0, late_us + 1, len(table)), kind="stable")
    table = table.take(pa.array(arrival))  # of equal times, the order of arrival counts
    streams.cut(table, 5)
    rows: dict[str, list[pa.Table]] = {query.name: [] for query in workload}

    def collect(name: str) -> Callable[[DataFrame, int], None]:
        return lambda batch, _: rows[name].append(batch.toArrow())

    place = streams.place / f"checkpoint {seed} {strategy}"
    sinks = {name: collect(name) for name in rows}
    planner = str(random.choice(["slice", "independent"]))
    running = weft.start(
        workload, {"events": streams.read()}, sinks, place, "once", strategy, planner=planner
    )
    running.awaitTermination()
    assert sum(p.numInputRows for p in running.recentProgress) == table.num_rows
    record = Checkpoint(Place.of(place)).read()
    assert record is not None
    oracle_of = NativeOracle if strategy == "native" else StreamOracle
    # One stream has one watermark: that of the query that waits longest.
    oracle = oracle_of(record.plan, delay_us, MILLISECOND_US).played(streams.files())
    wanted = oracle.tables(table.schema)
    for query in workload.queries:
        assert isinstance(query, weft.Query)
        got = rows[query.name] or [wanted[query.name].slice(0, 0)]
        assert_same_rows(query, pa.concat_tables(got), wanted[query.name])
    late = sum(Progress.of(p).late for p in running.recentProgress)
    assert late == (oracle.dropped if isinstance(oracle, NativeOracle) else oracle.late_events)


STRATEGIES_AND_SEEDS = [("native", 2), ("columnar", 3)]


@pytest.mark.spark
@pytest.mark.parametrize(("strategy", "seed"), STRATEGIES_AND_SEEDS)
def test_a_random_stream_closes_and_drops_what_the_oracle_does(
    streams: Any, strategy: str, seed: int
) -> None:
    check_a_random_stream(streams, seed, strategy)


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["native", "columnar"])
@pytest.mark.parametrize("seed", range(10, 30))
def test_many_random_streams_close_and_drop_what_the_oracle_does(
    streams: Any, strategy: str, seed: int
) -> None:
    check_a_random_stream(streams, seed, strategy)


@pytest.mark.spark
def test_verify_plays_tables_back_as_streams_too(spark: SparkSession) -> None:
    random = np.random.default_rng(5)
    query = weft.Query(
        "q",
        source="events",
        time="ts",
        keys=["k"],
        windows={"4s": weft.tumbling("4 seconds"), "12s/4s": weft.hopping("12 s", "4 s")},
        aggs={"n": weft.agg.count(), "hi": weft.agg.max("x")},
    )
    report = weft.verify(
        weft.Workload([query]),
        {"events": random_events(random)},
        engines=("reference", "local", "spark", "spark-stream"),
    )
    assert report.ok, report.differences
    assert report.rows > 50
