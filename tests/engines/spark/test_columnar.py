"""What the columnar strategy promises: every window, every aggregate, in bounded memory."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weft
from weft import agg
from weft.cost.strategies import SHIPPED_PARTIALS
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.columnar.arrow_batches import chunks_of
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.columnar.strategy import Feeder
from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.session import to_spark
from weft.plan import Plan
from weft.plan.planned_scope import planned_scopes
from weft.testing import assert_same_rows
from weft.testing.strategies import DECOMPOSABLE, HOLISTIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 80


class ByThrees(weft.UserWindow):
    """Three events of a key each."""

    def begins(self, event: Any, state: dict[str, Any]) -> int:
        state["seen"] = state.get("seen", 0) + 1
        return 1 if state["seen"] % 3 == 1 else 0

    def ends(self, event: Any, state: dict[str, Any]) -> int:
        return 1 if state.get("seen", 0) and state["seen"] % 3 == 0 else 0


MEAN = agg.custom(
    "mean_of_columnar",
    lift=lambda x: (x, 1),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lower=lambda p: p[0] / p[1] if p[1] else None,
    identity=(0, 0),
    commutative=True,
    idempotent=False,
)
WORDS = agg.custom(
    "words_in_order",
    lift=lambda k: k,
    combine=lambda a, b: a + b,
    lower=lambda p: p,
    identity="",
    commutative=False,
    idempotent=False,
)


def readings(seed: int = 7) -> pa.Table:
    """Events at distinct times: nothing depends on the order of a table that Spark has not."""
    random = np.random.default_rng(seed)
    numbers = random.integers(-8, 9, ROWS)
    times = random.permutation(np.arange(-40, 140))[:ROWS]
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(random.choice(["a", "b", "c"], ROWS), mask=random.random(ROWS) < 0.2),
            "i": pa.array(numbers, mask=random.random(ROWS) < 0.1),
            "x": pa.array(
                random.choice([1.5, -2.25, np.nan, 0.0, 1e9], ROWS), mask=numbers % 5 == 0
            ),
            "flag": pa.array(numbers > 0, mask=random.random(ROWS) < 0.1),
            "km": pa.array((times + 100) // 2),
        }
    )


def rounded(table: pa.Table) -> pa.Table:
    """Make doubles whole quarters: Catalyst adds them up without compensation."""
    quarters = pc.divide(pc.round(pc.multiply(table["x"], 4.0)), 4.0)
    return table.set_column(table.schema.get_field_index("x"), "x", quarters)


def assert_columnar(workload: weft.Workload, table: pa.Table, spark: SparkSession) -> None:
    wanted = ReferenceEngine().answer(workload, {"readings": table})
    plan = weft.optimize(workload)
    got = SparkEngine("columnar").run(plan, {"readings": to_spark(table, spark)})
    for query in workload.queries:
        assert isinstance(query, weft.Query)
        assert_same_rows(query, got[query.name].toArrow(), wanted[query.name], "columnar")
    got.unpersist()


def query(name: str, windows: dict[str, Any], aggs: dict[str, Any], **options: Any) -> weft.Query:
    return weft.Query(name, source="readings", time="ts", windows=windows, aggs=aggs, **options)


@pytest.mark.parametrize("by", [["k"], []], ids=["keyed", "global"])
def test_every_aggregate_over_every_window(spark: SparkSession, by: list[str]) -> None:
    windows = {
        "tumbling": weft.tumbling(4),
        "same window, other label": weft.tumbling(4),
        "range no multiple": weft.hopping(6, 4, 1),
        "large overlap": weft.hopping(40, 2),
        "sampling": weft.hopping(2, 5),
        "cumulating": weft.cumulating(6, 2),
        "calendar": weft.calendar("day", "Europe/Berlin"),
        "session": weft.session(3),
        "counting": weft.counting(3, 2),
        "punctuated": weft.punctuated("i % 3 = 0"),
        "measured": weft.measured("km", 4, 3),
    }
    calls = (*DECOMPOSABLE, *HOLISTIC, MEAN("i"), WORDS("k"))
    aggs = {f"a{i}": call for i, call in enumerate(calls)}
    whole = query("whole", {"user": ByThrees()}, {"n": agg.count(), "s": agg.sum("i")}, keys=by)
    workload = weft.Workload([query("all", windows, aggs, keys=by), whole])
    assert_columnar(workload, readings(), spark)


def test_names_and_labels_may_hold_any_character(spark: SparkSession) -> None:
    odd = 'it\'s {0} a `name` \\ "ü" \U0001f600 %s /* -- ;'
    windows = {f"{odd} of 4": weft.tumbling(4), f"{odd} of 6": weft.hopping(6, 4)}
    asked = query("odd", windows, {odd: agg.count("i")}, keys={f"{odd}?": "k"})
    alone = query("alone", {odd: weft.session(3)}, {odd: agg.count_distinct("i")}, keys=["k"])
    assert_columnar(weft.Workload([asked, alone]), readings(), spark)


SHIPPED = [call for call in DECOMPOSABLE if all(p.kind in SHIPPED_PARTIALS for p in call.partials)]


@pytest.mark.parametrize("planner", ["slice", "independent", "factor"])
@pytest.mark.parametrize("by", [["k", "flag"], []], ids=["keyed", "global"])
def test_slices_made_by_catalyst(
    spark: SparkSession, planner: str, by: list[str], explained: Callable[[DataFrame], str]
) -> None:
    windows: dict[str, Any] = {"large overlap": weft.hopping(60, 3, 1)}
    if planner == "slice":
        windows |= {"tumbling": weft.tumbling(6), "grow": weft.cumulating(12, 3)}
        windows |= {"sampling": weft.hopping(2, 5), "day": weft.calendar("day", "Asia/Kathmandu")}
    elif planner == "factor":
        windows = {"4": weft.tumbling(4), "8": weft.tumbling(8), "16": weft.tumbling(16)}
    table = readings().append_column("d", pa.array(map(Decimal, range(ROWS)), pa.decimal128(12, 2)))
    calls = (*SHIPPED, agg.sum("d"), agg.avg("d"), agg.max_by("d", "i"), agg.min("k"))
    asked = query("q", windows, {f"a{i}": c for i, c in enumerate(calls)}, keys=by)
    workload = weft.Workload([asked])
    busy = weft.Statistics(rate=1e8, keys=3)  # many events in a slice
    plan = weft.optimize(workload, planner, statistics=busy, strategy="columnar")
    assert [choice.ships for choice in plan.strategies] == ["slices"]
    got = SparkEngine().run(plan, {"readings": to_spark(rounded(table), spark)})["q"]
    text = explained(got)
    assert "Aggregate" in text
    assert "MapInArrow" in text
    wanted = ReferenceEngine().answer(workload, {"readings": rounded(table)})["q"]
    assert_same_rows(asked, got.toArrow(), wanted, "columnar")


def test_events_of_a_key_are_salted_by_time(
    spark: SparkSession, explained: Callable[[DataFrame], str]
) -> None:
    calls = [c for c in (*DECOMPOSABLE, *HOLISTIC, MEAN("i")) if c.laws().commutative]
    windows = {
        "hop": weft.hopping(20, 3, 1),
        "day": weft.calendar("day", "Asia/Kathmandu"),
        "grow": weft.cumulating(12, 4),
    }
    aggs = {f"a{i}": call for i, call in enumerate(calls)}
    workload = weft.Workload(
        [
            query("all", windows, aggs, keys=["k"]),
            query("some", {"t": weft.tumbling(50)}, {"n": agg.count()}, keys=["k"], where="i > 0"),
        ]
    )
    plan = weft.optimize(workload, strategy="columnar")
    salted = [choice._replace(ships="events", salt_us=7) for choice in plan.strategies]
    plan = replace(plan, strategies=tuple(salted))
    assert "columnar, ships events salted by 7us" in plan.explain()
    assert Plan.from_json(plan.explain("json")) == plan
    table = readings(11)
    got = SparkEngine().run(plan, {"readings": to_spark(table, spark)})
    text = explained(got["all"])
    assert text.count("MapInArrow") == 2
    assert "pmod(time" in text
    wanted = ReferenceEngine().answer(workload, {"readings": table})
    for asked in workload.queries:
        assert isinstance(asked, weft.Query)
        assert_same_rows(asked, got[asked.name].toArrow(), wanted[asked.name], "salted")
    got.unpersist()


def test_global_windows_are_sliced_in_parallel(
    spark: SparkSession, explained: Callable[[DataFrame], str]
) -> None:
    table = readings(5)
    asked = query(
        "q",
        {"hop": weft.hopping(30, 4), "day": weft.calendar("day"), "grow": weft.cumulating(20, 5)},
        {"m": MEAN("i"), "d": agg.count_distinct("k"), "p": agg.median("x")},
    )
    workload = weft.Workload([asked])
    frame = to_spark(table, spark).repartition(3)
    got = weft.run(workload, {"readings": frame}, strategy="columnar")
    text = explained(got)
    merging, slicing = (found.start() for found in re.finditer("MapInArrow", text))
    moved = text.index("SinglePartition")
    assert merging < moved < slicing  # plans print from the result down to the events
    assert_same_rows(
        asked, got.toArrow(), ReferenceEngine().answer(workload, {"readings": table})["q"]
    )


def test_global_windows_of_native_are_aggregated_before_anything_moves(
    spark: SparkSession, explained: Callable[[DataFrame], str]
) -> None:
    frame = to_spark(readings(), spark).repartition(3)
    windows = {"4": weft.tumbling(4), "8": weft.tumbling(8), "12/4": weft.hopping(12, 4)}
    for strategy in ("native", "columnar"):
        aggs = {"s": agg.sum("i")}
        got = weft.aggregate(
            frame,
            time="ts",
            windows=windows,
            aggs=aggs,
            strategy=strategy,
            statistics=weft.Statistics(rate=1e8, keys=1),
        )
        text = explained(got)
        assert text.rindex("partial_sum") > text.rindex("hashpartitioning(start")


def test_queries_of_different_keys_filters_and_outputs(spark: SparkSession) -> None:
    workload = weft.Workload(
        [
            query("a", {"t": weft.tumbling(9)}, {"lo": agg.min("x"), "n": agg.count()}, keys=["k"]),
            query("b", {"c": weft.counting(2)}, {"n": agg.count(), "s": agg.sum("i")}, keys=["k"]),
            query(
                "c",
                {"u": ByThrees(), "t": weft.tumbling(7)},
                {"m": agg.max("i + 1")},
                keys={"big": "i > 2"},
                where="flag",
            ),
        ]
    )
    assert_columnar(workload, readings(3), spark)


def test_ties_are_decided_by_values_whatever_the_order_of_rows(spark: SparkSession) -> None:
    random = np.random.default_rng(4)
    table = pa.table(
        {
            "ts": pa.array(random.integers(0, 5, 60)).cast(pa.timestamp("us", "UTC")),
            "x": random.integers(0, 50, 60),
        }
    )
    results = []
    for order in (np.arange(60), random.permutation(60)):
        frame = to_spark(table.take(order), spark).repartition(3)
        rows = weft.aggregate(
            frame,
            time="ts",
            windows={"c": weft.counting(7, 3)},
            aggs={"s": agg.sum("x"), "f": agg.first("x")},
        )
        results.append(sorted(tuple(row.values()) for row in rows.toArrow().to_pylist()))
    assert results[0] == results[1]
    assert len(results[0]) == 18


def test_one_key_of_many_rows_streams_through_in_chunks() -> None:
    rows = 1_000_000
    table = pa.table({"time": np.arange(rows), "k0": np.zeros(rows, np.int32), "a0": np.ones(rows)})
    asked = weft.Query(
        "q",
        source="t",
        time="time",
        keys=["k0"],
        windows={"hop": weft.hopping(1000, 100), "count": weft.counting(500, 100)},
        aggs={"s": agg.sum("a0")},
    )
    (scope,) = planned_scopes(weft.optimize(weft.Workload([asked]), "slice"))
    hosted = HostedScope(scope.emits, table.schema)
    host, most, total = hosted.open(), 0, 0
    for chunk in chunks_of(table.to_batches(10_000), most_rows=50_000):
        assert chunk.num_rows == 50_000
        reached = host.process(chunk)
        total += host.advance(reached).num_rows
        most = max(most, host.operator.nbytes)
    total += host.advance(None).num_rows
    assert total == sum(batch.num_rows for batch in Feeder(hosted.dump())(table.to_batches(10_000)))
    assert total == (rows + 1000 - 100) // 100 + (rows - 500) // 100 + 1
    # Open slices and events of open instances, not the 24 MB that came through.
    assert most < 100_000


def test_an_empty_partition_gives_no_rows() -> None:
    asked = query("q", {"t": weft.tumbling(4)}, {"n": agg.count()})
    (scope,) = planned_scopes(weft.optimize(weft.Workload([asked])))
    assert list(Feeder(HostedScope(scope.emits, readings().schema).dump())([])) == []
