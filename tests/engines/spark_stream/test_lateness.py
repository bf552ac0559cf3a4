"""Facts about lateness, empty micro-batches and times before 1970, under both strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import weft
from engines.facts import LATE_FACTS, check_late, late_batches, late_query
from oracles.streams import MILLISECOND_US, NativeOracle, StreamOracle
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint
from weft.engines.spark.streaming.progress import Progress
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_facts_about_lateness_in_a_stream(streams: Any, strategy: str) -> None:
    native = strategy == "native"
    numbers = [n for n, fact in enumerate(LATE_FACTS) if not (native and fact.needs_order)]
    workload = weft.Workload(late_query(n, LATE_FACTS[n]) for n in numbers)
    batches = late_batches(numbers)
    found: dict[str, list[pa.Table]] = {query.name: [] for query in workload}

    def collect(name: str) -> Callable[[DataFrame, int], None]:
        return lambda rows, _: found[name].append(rows.toArrow())

    (streams.place / "in").mkdir()
    for batch in batches:
        streams.append(batch)
    running = weft.start(
        workload, {"events": streams.read()}, {name: collect(name) for name in found},
        streams.place / "checkpoint", "once", strategy, planner="slice",
    )  # fmt: skip
    running.awaitTermination()
    check_late({name: pa.concat_tables(parts) for name, parts in found.items()}, numbers)
    late = sum(Progress.of(progress).late for progress in running.recentProgress)
    assert late == sum(LATE_FACTS[n].late for n in numbers)


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_empty_micro_batches_and_events_before_1970(streams: Any, strategy: str) -> None:
    """Spark's watermark begins in 1970: native states drop what had ended by then."""
    query = weft.Query(
        "q", source="r", time="ts", keys=["k"],
        windows={"10s": weft.tumbling("10 seconds"), "30s/10s": weft.hopping("30 s", "10 s")},
        aggs={"n": weft.agg.count(), "hi": weft.agg.max("v")}, watermark="10 seconds",
    )  # fmt: skip
    seconds = [[-25.0, -1.0, 3.0, 14.0], [], [-4.0, 26.0], [], [None, 31.0, 2.0], [70.0]]
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "v": pa.int64()})
    (streams.place / "in").mkdir()
    for at, batch in enumerate(seconds):
        times = [None if second is None else round(second * 1_000_000) for second in batch]
        ts = pa.array(times, pa.int64()).cast(schema.field("ts").type)
        keys = pa.array(["a"] * len(batch), pa.string())
        values = pa.array([at] * len(batch), pa.int64())
        streams.append(pa.table([ts, keys, values], schema=schema))
    parts: list[pa.Table] = []
    running = weft.start(
        query, {"r": streams.read()}, lambda rows, _: parts.append(rows.toArrow()),
        streams.place / "c", "once", strategy, planner="slice",
    )  # fmt: skip
    running.awaitTermination()
    record = Checkpoint(Place.of(streams.place / "c")).read()
    assert record is not None
    oracle_of = NativeOracle if strategy == "native" else StreamOracle
    oracle = oracle_of(record.plan, 10_000_000, MILLISECOND_US).played(streams.files())
    wanted = oracle.tables(schema)["q"]
    assert_same_rows(query, pa.concat_tables(parts), wanted)
    before_1970 = sum(end <= 0 for end in wanted["window_end"].cast(pa.int64()).to_pylist())
    assert before_1970 == (0 if strategy == "native" else 5)
    late = sum(Progress.of(p).late for p in running.recentProgress)
    assert late == (oracle.dropped if isinstance(oracle, NativeOracle) else oracle.late_events)
