"""A standalone cluster of two workers with 1 GB each, and more events than memory, half of one key.

A hundred thousand keys. Natively, and through the kernels with slices that Catalyst makes and with
events that are salted: the plan says so, no task has a large part of the rows, none fails, and the
rows are those of the local engine.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import weft
from places.spark_cluster import cluster, submitted
from weft import agg
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weft.query import Query

pytestmark = [pytest.mark.spark, pytest.mark.soak]
EVENTS = int(os.environ.get("WEFT_SKEWED_EVENTS", 12_000_000))
FILE_EVENTS = 1_000_000
KEYS = 100_000
HOUR_US = 3_600_000_000
MEMORY = 2 << 30  # of both workers
NOTE_BYTES = 160
# As Spark holds a row: bits for NULL, eight bytes for each column, and the text.
ROW_BYTES = 8 + 4 * 8 + NOTE_BYTES
SHUFFLED = 8  # partitions
WINDOWS = {"10m": "10 minutes", "1h/10m": weft.hopping("1 hour", "10 minutes")}
PLAIN = {"n": agg.count(), "total": agg.sum("x"), "lo": agg.min("x"), "hi": agg.max("note")}
SKETCH = {"n": agg.count(), "notes": agg.approx_count_distinct("note"), "lo": agg.min("x")}
SAMPLED = (0, 1, 777, 50_000, KEYS - 1)
JOB = """
import json, sys
import weft
from weft import agg
from weft.engines.spark.engine import SparkEngine
from weft.running import plan_for
from pyspark.sql import SparkSession

folder, windows, runs = sys.argv[1], {"10m": "10 minutes"}, json.loads(sys.argv[2])
windows["1h/10m"] = weft.hopping("1 hour", "10 minutes")
plain = {"n": agg.count(), "total": agg.sum("x"), "lo": agg.min("x"), "hi": agg.max("note")}
sketch = {"n": agg.count(), "notes": agg.approx_count_distinct("note"), "lo": agg.min("x")}
session = SparkSession.builder.getOrCreate()
session.range(1).count()  # waits until all cores are there, which the plan asks for
events = session.read.parquet(folder + "/events")
for name, strategy in runs.items():
    aggs = sketch if name == "salted" else plain
    query = weft.Query(name, source="events", time="ts", keys=["k"], windows=windows, aggs=aggs)
    plan = plan_for(query, {"events": events}, SparkEngine(), strategy=strategy)
    session.sparkContext.setJobDescription(name)
    weft.run(plan, {"events": events}).write.parquet(f"{folder}/{name}")
    (choice,) = plan.strategies
    print("ran", json.dumps([name, choice.strategy, choice.ships, choice.salt_us, choice.reason]))
session.stop()
"""


def events_from(first: int, rows: int) -> pa.Table:
    """Make events by arithmetic: every other one is of key 0."""
    number = np.arange(first, first + rows, dtype=np.int64)
    key = np.where(number % 2 == 0, 0, number // 2 * 7919 % (KEYS - 1) + 1)
    times = (number * (HOUR_US / EVENTS)).astype(np.int64)
    values = (number * 104_729 % 1_000_003) / 8.0
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    known = pc.utf8_lpad(pa.array(range(50_000)).cast(pa.string()), NOTE_BYTES, ".")
    notes = known.take(pa.array(number * 31 % 50_000))
    return pa.table({"ts": stamps, "k": key, "x": values, "note": notes})


def parts() -> Iterator[pa.Table]:
    for first in range(0, EVENTS, FILE_EVENTS):
        yield events_from(first, min(FILE_EVENTS, EVENTS - first))


def tasks_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Read Spark's log: the tasks of every run, by its name."""
    (log,) = [path for path in folder.rglob("*") if path.is_file() and "events_" in path.name]
    stages: dict[int, str] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    for line in log.read_text().splitlines():
        told = json.loads(line)
        if told["Event"] == "SparkListenerJobStart":
            run = told["Properties"].get("spark.job.description", "")
            stages |= dict.fromkeys(told["Stage IDs"], run)
        elif told["Event"] == "SparkListenerTaskEnd":
            found.setdefault(stages[told["Stage ID"]], []).append(told)
    return found


def largest_share(tasks: list[dict[str, Any]]) -> float:
    """Return the part of a stage's shuffled rows that one task reads, where that is most."""
    by_stage: dict[int, list[int]] = {}
    for task in tasks:
        read = task["Task Metrics"]["Shuffle Read Metrics"]["Total Records Read"]
        by_stage.setdefault(task["Stage ID"], []).append(read)
    moved = [reads for reads in by_stage.values() if sum(reads) > KEYS]
    return max(max(reads) / sum(reads) for reads in moved)


def wanted_rows(query: Query) -> pa.Table:
    sampled = pa.array(SAMPLED)
    few = [part.filter(pc.is_in(part["k"], sampled)) for part in parts()]
    return weft.run(query, {"events": pa.concat_tables(few)}, engine="local")


def test_a_skewed_workload_larger_than_memory(tmp_path: Path) -> None:
    assert EVENTS * ROW_BYTES > MEMORY or "WEFT_SKEWED_EVENTS" in os.environ
    (tmp_path / "events").mkdir()
    for at, part in enumerate(parts()):
        pq.write_table(part, tmp_path / "events" / f"{at:03}.parquet")
    (tmp_path / "log").mkdir()
    runs = {"native": "native", "slices": "columnar", "salted": "columnar"}
    settings = {
        "spark.cores.max": "4",
        "spark.executor.cores": "2",
        "spark.executor.memory": "900m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.sql.shuffle.partitions": str(SHUFFLED),
        # Shares of single tasks are looked at, and small ones would be put together.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{tmp_path / 'log'}",
    }
    with cluster(tmp_path, cores=2) as address:
        words = (str(tmp_path), json.dumps(runs))
        printed = submitted(
            tmp_path, address, JOB, settings, *words, patience_s=1800, shipped=False
        )
    told = [json.loads(line[4:]) for line in printed.splitlines() if line.startswith("ran ")]
    choices = {name: choice for name, *choice in told}
    assert choices["native"][0] == "native"
    assert choices["slices"][:3] == ["columnar", "slices", None]
    assert choices["salted"][:2] == ["columnar", "events"]
    assert choices["salted"][2] is not None
    assert "salted, as one key has 50% of the events" in choices["salted"][3]
    tasks = tasks_of(tmp_path / "log")
    for name in runs:
        own = tasks[name]
        assert all(task["Task End Reason"]["Reason"] == "Success" for task in own), name
        assert largest_share(own) < 2.2 / SHUFFLED, name
        aggs = SKETCH if name == "salted" else PLAIN
        query = weft.Query(name, source="events", time="ts", keys=["k"], windows=WINDOWS, aggs=aggs)
        rows = ds.dataset(tmp_path / name, format="parquet").to_table()
        tumbling = rows.filter(pc.equal(rows["window"], "10m"))
        assert pc.sum(tumbling["n"]).as_py() == EVENTS
        mine = rows.filter(pc.is_in(rows["k"], pa.array(SAMPLED)))
        assert_same_rows(query, mine, wanted_rows(query), name)
    spilled = sum(task["Task Metrics"]["Disk Bytes Spilled"] for task in tasks["salted"])
    assert spilled > 0 or "WEFT_SKEWED_EVENTS" in os.environ  # or they were not more than memory
