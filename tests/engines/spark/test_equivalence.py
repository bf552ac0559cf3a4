"""Spark's rows are the reference engine's, whatever the workload and the planner."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from sampling import examples
from weft import agg
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.session import to_spark
from weft.plan import PICK, STAIR, STRATEGIES, Emit, Plan, Roll, Scan, Slice
from weft.plan.nodes import FOLD, topological
from weft.plan.validate import validate
from weft.planners.portfolio import PLANNERS
from weft.testing import assert_same_rows
from weft.testing.strategies import DECOMPOSABLE, HOLISTIC, events, periodic_windows, workloads
from weft.window import Edges, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def rounded(table: pa.Table) -> pa.Table:
    """Make doubles whole quarters: like stock Spark, native adds them up without compensation."""
    quarters = pc.divide(pc.round(pc.multiply(table["x"], 4.0)), 4.0)
    return table.set_column(table.schema.get_field_index("x"), "x", quarters)


def assert_same(
    plan: Plan,
    workload: weft.Workload,
    table: pa.Table,
    spark: SparkSession,
    source: str,
    strategy: str | None = None,
) -> None:
    wanted = ReferenceEngine().answer(workload, {source: table})
    got = SparkEngine(strategy).run(plan, {source: to_spark(table, spark)})
    for query in workload.queries:
        assert isinstance(query, weft.Query)
        assert_same_rows(query, got[query.name].toArrow(), wanted[query.name], "spark")
    got.unpersist()


@settings(max_examples=examples(4), deadline=None, suppress_health_check=CHECKS)
@given(
    workload=workloads(window=periodic_windows(), most=2),
    table=events(),
    planner=st.sampled_from([*PLANNERS]),
    strategy=st.sampled_from(STRATEGIES),
    rate=st.sampled_from([1000.0, 1e9]),  # of few events in a slice, and of many
)
def test_random_periodic_workloads(
    spark: SparkSession,
    workload: weft.Workload,
    table: pa.Table,
    planner: str,
    strategy: str,
    rate: float,
) -> None:
    known = weft.Statistics(rate=rate, keys=4)
    plan = weft.optimize(workload, planner, statistics=known, strategy=strategy)
    note(plan.explain())
    assert_same(plan, workload, rounded(table), spark, "events")


def at_distinct_times(table: pa.Table) -> pa.Table:
    """Keep one event of each instant: of equal times a table has an order, and Spark has none."""
    times = table["ts"].cast(pa.int64()).fill_null(-(2**40)).to_numpy()
    return table.take(np.unique(times, return_index=True)[1])


@settings(max_examples=examples(4), deadline=None, suppress_health_check=CHECKS)
@given(
    workload=workloads(most=4),
    table=events(),
    planner=st.sampled_from(["auto", *PLANNERS]),
    filters=st.sampled_from([None, "together"]),
)
def test_random_workloads_of_every_window(
    spark: SparkSession,
    workload: weft.Workload,
    table: pa.Table,
    planner: str,
    filters: Literal["together"] | None,
) -> None:
    plan = weft.optimize(workload, planner, filters=filters, key_sets="apart")
    note(plan.explain())
    distinct = at_distinct_times(rounded(table))
    assert_same(plan, workload, distinct, spark, "events", "columnar")
    if not SparkEngine("native").unsupported(plan):
        assert_same(plan, workload, distinct, spark, "events", "native")


ROWS = 80


def readings(seed: int = 7) -> pa.Table:
    random = np.random.default_rng(seed)
    numbers = random.integers(-8, 9, ROWS)
    return pa.table(
        {
            "ts": pa.array(random.integers(-40, 60, ROWS)).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(random.choice(["a", "b", "c"], ROWS), mask=random.random(ROWS) < 0.2),
            "i": pa.array(numbers, mask=random.random(ROWS) < 0.1),
            "x": pa.array(
                random.choice([1.5, -2.25, np.nan, 0.0, 1e9], ROWS), mask=numbers % 5 == 0
            ),
            "flag": pa.array(numbers > 0, mask=random.random(ROWS) < 0.1),
            "km": pa.array(random.integers(-8, 9, ROWS)),
        }
    )


@pytest.mark.parametrize(("planner", "by"), [("factor", ["k"]), ("independent", [])])
def test_every_aggregate_over_every_native_window(
    spark: SparkSession, planner: str, by: list[str]
) -> None:
    query = weft.Query(
        "q",
        source="readings",
        time="ts",
        keys=by,
        windows={
            "tumbling": weft.tumbling(4),
            "same window, other label": weft.tumbling(4),
            "longer": weft.tumbling(12),
            "range no multiple": weft.hopping(6, 4, 1),
            "sampling": weft.hopping(2, 5),
            "cumulating": weft.cumulating(6, 2),
            "calendar": weft.calendar("day", "Europe/Berlin"),
            "session": weft.session(3),
        },
        aggs={f"a{i}": call for i, call in enumerate(DECOMPOSABLE + HOLISTIC)},
    )
    workload = weft.Workload([query])
    plan = weft.optimize(workload, planner, strategy="native")
    assert_same(plan, workload, readings(), spark, "readings")


def test_queries_of_one_scope_share_their_rows(
    spark: SparkSession, explained: Callable[[DataFrame], str]
) -> None:
    def query(name: str, windows: dict[str, weft.window.Window], **aggs: object) -> weft.Query:
        return weft.Query(
            name, source="readings", time="ts", keys=["k"], windows=windows, aggs=aggs
        )

    workload = weft.Workload(
        [
            query("lows", {"4": weft.tumbling(4), "s": weft.session(2)}, lo=agg.min("i")),
            query("sums", {"4": weft.tumbling(4), "6": weft.tumbling(6)}, s=agg.sum("i")),
            query("kinds", {"8": weft.hopping(8, 4)}, n=agg.count_distinct("i")),
        ]
    )
    table = readings()
    results = weft.run(workload, {"readings": to_spark(table, spark)})
    wanted = ReferenceEngine().answer(workload, {"readings": table})
    for bound in workload.queries:
        assert_same_rows(bound, results[bound.name].toArrow(), wanted[bound.name])
        assert "InMemoryTableScan" in explained(results[bound.name])
    results.unpersist()
    fresh = results["lows"].select("*")
    assert "InMemoryTableScan" not in explained(fresh)
    assert_same_rows(workload.queries[0], fresh.toArrow(), wanted["lows"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_stairs_picks_and_slices_of_slices(spark: SparkSession, strategy: str) -> None:
    scan = Scan("readings", "ts", None, ("i",))
    inner, outer, odd = PeriodicWindow(4, 2), PeriodicWindow(12, 4), PeriodicWindow(5, 3)
    calls = (("n", agg.count()), ("s", agg.sum("i")), ("v", agg.var("i")))
    partials = tuple(dict.fromkeys(p for _, call in calls for p in call.partials))
    keys = (("k", "k"),)
    fine = Slice(scan, keys, Edges.of([inner, outer, odd]), partials)
    coarse = Slice(fine, keys, Edges.of([odd]), partials)
    low = Roll((fine,), inner, FOLD, keys, partials)
    high = Roll((low, fine), outer, STAIR, keys, partials)
    other = Roll((coarse,), odd, FOLD, keys, partials)
    rolls = {
        "inner": low,
        "outer": high,
        "odd": other,
        "every other inner": Roll((low,), PeriodicWindow(4, 4), PICK, keys, partials),
        "inners side by side": Roll((low,), PeriodicWindow(8, 4), FOLD, keys, partials),
        "odd again": Roll((other,), odd, PICK, keys, partials),
    }
    nodes = topological(tuple(Emit((r,), "q", label, calls) for label, r in rolls.items()))
    validate(nodes)
    plan = Plan(nodes, "by hand", "spark", "none", "", (0.0,) * len(nodes))
    query = weft.Query(
        "q",
        source="readings",
        time="ts",
        keys=["k"],
        windows={label: roll.window for label, roll in rolls.items()},
        aggs=dict(calls),
    )
    assert_same(plan, weft.Workload([query]), readings(3), spark, "readings", strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_partials_of_one_window_that_are_computed_apart_meet_again(
    spark: SparkSession, strategy: str
) -> None:
    # Overlapping feeders serve MIN but not SUM: the sum that comes along must not be taken.
    scan = Scan("readings", "ts", None, ("i",))
    window, feeder, tile = PeriodicWindow(8, 4), PeriodicWindow(6, 2), PeriodicWindow(2, 2)
    low, total = agg.min("i"), agg.sum("i")
    both = (*low.partials, *total.partials)
    overlapping = Roll((scan,), feeder, FOLD, (), both)
    least = Roll((overlapping,), window, FOLD, (), low.partials)
    tiles = Roll((scan,), tile, FOLD, (), both)
    sums = Roll((tiles,), window, FOLD, (), total.partials)
    nodes = topological((Emit((least, sums), "q", "w", (("lo", low), ("s", total))),))
    validate(nodes)
    plan = Plan(nodes, "by hand", "spark", "none", "", (0.0,) * len(nodes))
    query = weft.Query(
        "q", source="readings", time="ts", windows={"w": window}, aggs={"lo": low, "s": total}
    )
    assert_same(plan, weft.Workload([query]), readings(5), spark, "readings", strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_begins_only_slices_are_cut_at_ends_too(spark: SparkSession, strategy: str) -> None:
    query = weft.Query(
        "q",
        source="readings",
        time="ts",
        windows={"5/3": weft.hopping(5, 3), "7/4": weft.hopping(7, 4)},
        aggs={"n": agg.count()},
    )
    workload = weft.Workload([query])
    plan = weft.optimize(workload, "slice", model="paper")
    assert any(isinstance(n, Slice) and n.edges.slicing == "begins" for n in plan.nodes)
    assert_same(plan, workload, readings(), spark, "readings", strategy)


ZONES = {
    "Europe/Berlin": "day",  # ordinary
    "America/Sao_Paulo": "week",  # midnight did not exist when summer began
    "America/St_Johns": "day",  # clocks went back at 00:01, over midnight
    "America/Havana": "month",  # midnight came twice
    "Pacific/Apia": "day",  # one day was left out
    "Asia/Kathmandu": "quarter",  # an odd offset
    "America/New_York": "year",
}
EDGES = [
    dt.datetime(2017, 10, 15, 3, tzinfo=dt.UTC),
    dt.datetime(2018, 2, 18, 2, tzinfo=dt.UTC),
    dt.datetime(2009, 11, 1, 2, 31, tzinfo=dt.UTC),
    dt.datetime(2009, 11, 1, 3, 30, tzinfo=dt.UTC),
    dt.datetime(2011, 12, 30, 10, tzinfo=dt.UTC),
    dt.datetime(2024, 3, 31, 1, tzinfo=dt.UTC),
    dt.datetime(2024, 10, 27, 1, tzinfo=dt.UTC),
    dt.datetime(2012, 11, 4, 5, tzinfo=dt.UTC),
    dt.datetime(1960, 1, 1, tzinfo=dt.UTC),
]


@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo"], indirect=True)
@pytest.mark.parametrize("planner", ["independent", "slice"])
def test_calendars_at_the_edges_of_summer_time(
    spark: SparkSession, zone: str, planner: str
) -> None:
    apart = [dt.timedelta(microseconds=-1), dt.timedelta(0), dt.timedelta(minutes=59)]
    around = [h * dt.timedelta(hours=1) for h in range(-26, 27)]
    times = [edge + d + h for edge in EDGES for d in apart for h in around]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
    query = weft.Query(
        "q",
        source="t",
        time="ts",
        windows={f"{u} {z}": weft.calendar(u, z) for z, u in ZONES.items()},
        aggs={"n": agg.count()},
    )
    workload = weft.Workload([query])
    plan = weft.optimize(workload, planner)
    assert_same(plan, workload, table, spark, "t", "native")
    assert_same(plan, workload, table, spark, "t", "columnar")
