"""What `weft size` predicts of shuffles, against what Spark wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft import agg
from weft.bench.suite.spark.runs import shuffled_bytes, write_nowhere
from weft.cost.sizes import size_of
from weft.engines.spark.engine import SparkEngine
from weft.running import bind_tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
START_US = 1_700_000_000_000_000
RATE = 1000
SHAPES = {
    "few keys": (200_000, 100, 1, {f"{s}s": weft.tumbling(f"{s} seconds") for s in (10, 15, 30)}),
    "many keys": (
        300_000,
        5000,
        3,
        {"1m": weft.tumbling("1 minute"), "5m/1m": weft.hopping("5 minutes", "1 minute")},
    ),
}
AGGS = {"n": agg.count(), "mean": agg.avg("v"), "hi": agg.max("v")}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_shuffled_bytes_are_as_predicted(
    spark: SparkSession, tmp_path: Path, shape: str, strategy: str
) -> None:
    events, keys, aggs, windows = SHAPES[shape]
    rng = np.random.default_rng(1)
    times = START_US + np.arange(events) * 1_000_000 // RATE
    names = np.char.add("device-", rng.integers(0, keys, events).astype(str))
    columns = {"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "k": pa.array(names)}
    table = pa.table(columns | {"v": pa.array(rng.normal(20, 5, events))})
    pq.write_table(table, tmp_path / "events.parquet")
    source = spark.read.parquet(str(tmp_path / "events.parquet"))
    known = weft.Statistics(
        events=events, duration=f"{events // RATE} seconds", keys=keys, key_bytes=11.0, partitions=1
    )
    query = weft.Query(
        "q",
        source="e",
        time="ts",
        keys=["k"],
        windows=windows,
        aggs=dict(list(AGGS.items())[-aggs:]),
    )
    workload = bind_tables(weft.Workload([query]), {"e": source})
    plan = weft.optimize(workload, "slice", statistics=known, strategy=strategy)
    size = size_of(plan, known, known.lasts_us(), source.rdd.getNumPartitions(), None)
    before = shuffled_bytes(spark)
    with SparkEngine().run(plan, {"e": source}) as results:
        write_nowhere(results["q"])
    assert size.scans == 1
    assert size.moved_bytes == pytest.approx(shuffled_bytes(spark) - before, rel=0.3)
