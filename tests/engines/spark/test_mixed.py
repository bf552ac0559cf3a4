"""Filters and key sets on Spark: one read, push-down as before, and the reference engine's rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from sampling import examples
from weft import agg
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.session import to_spark
from weft.plan.nodes import topological
from weft.planners.portfolio import PLANNERS
from weft.testing import assert_same_rows
from weft.testing.strategies import DECOMPOSABLE, events, periodic_windows, workloads

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
# In quarters, sums of doubles are the same in any order.
WHOLE = tuple(call for call in DECOMPOSABLE if "x" not in call.args)
FILTERS = (None, "day = 1 AND action = 'buy'", "day = 1 AND action = 'error'")


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    workload=workloads(periodic_windows(6), st.sampled_from(WHOLE), most=8),
    table=events(),
    planner=st.sampled_from([*PLANNERS, "auto"]),
    strategy=st.sampled_from(["native", "columnar"]),
    key_sets=st.sampled_from([None, "together"]),
)
def test_random_filters_and_key_sets_together(
    spark: SparkSession,
    workload: weft.Workload,
    table: pa.Table,
    planner: str,
    strategy: str,
    key_sets: Literal["together"] | None,
) -> None:
    plan = weft.optimize(
        workload, planner, strategy=strategy, filters="together", key_sets=key_sets
    )
    note(plan.explain())
    wanted = ReferenceEngine().answer(workload, {"events": table})
    with SparkEngine().run(plan, {"events": to_spark(table, spark)}) as got:
        for query in workload.queries:
            assert isinstance(query, weft.Query)
            assert_same_rows(query, got[query.name].toArrow(), wanted[query.name], "spark")


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_nothing_is_computed_of_events_that_only_others_keep(
    spark: SparkSession, strategy: str
) -> None:
    """Of those a key or an argument may fail: a division by zero ends a query of Spark's."""
    table = pa.table(
        {"ts": range(40), "k": [n % 3 for n in range(40)], "v": [n % 4 for n in range(40)]}
    )
    ask = {"source": "t", "time": "ts", "windows": {"10": weft.tumbling(10)}}
    some = {**ask, "where": "v <> 0"}
    workload = weft.Workload(
        [
            weft.Query("all", keys=["k"], aggs={"n": agg.count()}, **ask),
            weft.Query("key", keys={"z": "12 div v"}, aggs={"n": agg.count()}, **some),
            weft.Query("value", aggs={"s": agg.sum("12 div v")}, **some),
        ]
    )
    wanted = weft.run(workload, {"t": table}, engine="reference")
    for key_sets in ("together", "apart"):
        plan = weft.optimize(workload, strategy=strategy, key_sets=key_sets)
        with SparkEngine().run(plan, {"t": to_spark(table, spark)}) as got:
            for query in plan.queries:
                assert_same_rows(query, got[query.name].toArrow(), wanted[query.name], "spark")


def clicks(folder: Path, spark: SparkSession) -> DataFrame:
    """Two hundred clicks of two days in a file."""
    times = pa.array(range(0, 200_000_000_000, 1_000_000_000)).cast(pa.timestamp("us", "UTC"))
    rows = range(200)
    columns = {
        "ts": times,
        "day": [at * 1_000 // 86_400 for at in rows],
        "customer": [at % 7 for at in rows],
        "merchant": [at % 3 for at in rows],
        "action": [("view", "buy", "error", "buy")[at % 4] for at in rows],
        "amount": [at / 4 for at in rows],
    }
    pq.write_table(pa.table(columns), folder / "clicks.parquet")
    return spark.read.parquet(str(folder / "clicks.parquet"))


def asked(*filters: str | None) -> weft.Workload:
    """Every filter under three key sets."""
    calls = {"n": agg.count(), "total": agg.sum("amount")}
    return weft.Workload(
        weft.Query(
            f"q{number}_{at}",
            source="clicks",
            time="ts",
            keys=keys,
            where=where,
            windows={"1h": "1 hour", "4h": weft.hopping("4 hours", "1 hour")},
            aggs=calls,
        )
        for number, keys in enumerate((["customer"], ["merchant"], []))
        for at, where in enumerate(filters)
    )


def physical(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_all_key_sets_and_filters_are_one_read_that_skips_what_no_query_keeps(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = clicks(tmp_path, spark)
    with weft.run(asked(*FILTERS[1:]), {"clicks": frame}) as results:
        plans = {name: physical(result) for name, result in results.items()}
        for text in plans.values():
            assert text.count("FileScan parquet") == 1
            pushed = text.partition("PushedFilters: [")[2].partition("]")[0]
            assert "EqualTo(day,1)" in pushed
            assert "Or(EqualTo(action,buy),EqualTo(action,error))" in pushed
        # The same rows in memory, for all of them.
        inside = {
            text.partition("InMemoryRelation")[2].partition("FileScan")[0]
            for text in plans.values()
        }
        assert len(plans) == 6
        assert all("Exchange" in text for text in inside)


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_slices_of_the_finest_keys_are_regrouped(
    spark: SparkSession, tmp_path: Path, strategy: str
) -> None:
    frame = clicks(tmp_path, spark)
    finest = weft.Query(
        "both",
        source="clicks",
        time="ts",
        keys=["customer", "merchant"],
        windows={"2h": "2 hours"},
        aggs={"sd": agg.stddev("amount"), "last": agg.last("amount")},
    )
    workload = weft.Workload([*asked(None, FILTERS[1]), finest])
    plan = weft.optimize(workload, strategy=strategy, filters="together", key_sets="together")
    told = plan.explain()
    assert "regrouped by customer" in told
    assert "regrouped without keys" in told
    assert {choice.strategy for choice in plan.strategies} == {strategy}
    read = [node for node in plan.nodes if any(isinstance(i, weft.plan.Scan) for i in node.inputs)]
    assert len(read) == 1  # the slices of the finest keys
    wanted = weft.run(workload, {"clicks": frame.toArrow()}, engine="reference")
    with SparkEngine().run(plan, {"clicks": frame}) as got:
        for query in workload.queries:
            assert isinstance(query, weft.Query)
            assert_same_rows(query, got[query.name].toArrow(), wanted[query.name], "spark")
        # Events are read below what is kept for all, and nowhere else.
        kept = [physical(result).split("InMemoryRelation [") for result in got.values()]
        assert not any("FileScan" in above for above, *_ in kept)
        memory = {p.partition("]")[0] for _, *parts in kept for p in parts if "FileScan" in p}
        assert len(memory) == 1


def test_columnar_refuses_to_regroup_what_no_query_has_shipped(spark: SparkSession) -> None:
    """A plan by hand may regroup slices of keys that nobody asks for."""
    queries = asked(None)
    finest = weft.Query(
        "both",
        source="clicks",
        time="ts",
        keys=["customer", "merchant"],
        windows={"1h": "1 hour"},
        aggs={"n": agg.count(), "total": agg.sum("amount")},
    )
    plan = weft.optimize([*queries, finest], strategy="columnar", key_sets="together")
    without = tuple(emit for emit in plan.emits if emit.query != "both")
    alone = replace(plan, nodes=topological(without), node_costs=(0.0,) * len(topological(without)))
    refused = SparkEngine("columnar").unsupported(alone)
    assert {one.reason for one in refused} == {
        "columnar regroups slices of more keys alone that Catalyst ships to a query"
    }
    assert not SparkEngine("columnar").unsupported(plan)


def test_write_puts_every_result_under_its_name_and_gives_the_memory_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    workload, frame = asked(*FILTERS), clicks(tmp_path, spark)
    wanted = weft.run(workload, {"clicks": frame.toArrow()}, engine="reference")
    results = weft.run(workload, {"clicks": frame})
    written = weft.write(results, tmp_path / "out")
    assert sorted(written) == sorted(query.name for query in workload)
    for query in workload.queries:
        assert isinstance(query, weft.Query)
        found = spark.read.parquet(written[query.name]).toArrow()
        assert_same_rows(query, found, wanted[query.name], "written")
    assert not any(result.storageLevel.useMemory for result in results.taken())
    with pytest.raises(weft.QueryError, match="exists already"):
        weft.write(results, tmp_path / "out")
    weft.write(results, tmp_path / "out", overwrite=True)
