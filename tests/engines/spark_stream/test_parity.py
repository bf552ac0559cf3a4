"""Random workloads and random disorder: what a stream closes are the reference engine's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from pyspark.sql.streaming import TwsTester
from pyspark.sql.types import Row

import weft
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.hosting import HostedScope
from weft.engines.spark.scopes import scopes_of
from weft.engines.spark.streaming.blobs import dump_table
from weft.engines.spark.streaming.processor import BucketProcessor, rows_closed
from weft.engines.spark.streaming.replay import closed_rows
from weft.engines.spark.streaming.versions import Versions
from weft.testing import assert_same_rows
from weft.testing.strategies import calls, events, periodic_windows, queries, windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
SECOND_US = 1_000_000
# Spark's watermark begins in 1970.
LATER_US = 1_700_000_000 * SECOND_US
NATIVE = ("count", "sum", "min", "max", "avg", "first", "last", "bool_and", "bit_xor")


def in_time(draw: Callable[[Any], Any], table: pa.Table, delay: int) -> list[pa.Table]:
    """Cut events into batches that come out of order, none later than the delay allows."""
    known = table.filter(pc.is_valid(table["ts"]))
    noise = draw(st.lists(st.integers(0, delay), min_size=len(known), max_size=len(known)))
    arrival = pc.add(known["ts"].cast(pa.int64()), pa.array(noise, pa.int64()))
    ordered = known.take(pc.sort_indices(arrival))
    cuts = sorted(draw(st.lists(st.integers(0, len(known)), min_size=2, max_size=2)))
    return [ordered.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(known)], strict=True)]


@settings(max_examples=50, deadline=None, suppress_health_check=CHECKS)
@given(data=st.data())
def test_the_processor_closes_what_the_reference_engine_has(data: st.DataObject) -> None:
    unit = SECOND_US
    query = data.draw(queries(windows(unit)))
    table = data.draw(events(unit_us=unit, origin_us=LATER_US))
    delay = data.draw(st.sampled_from([0, 3 * unit, 30 * unit]))
    query = query.with_watermark(delay)
    batches = in_time(data.draw, table, delay)
    plan = weft.optimize(weft.Workload([query]), engine="spark")
    note(plan.explain())
    got = processed(query, plan, batches)
    wanted = ReferenceEngine().answer(weft.Workload([query]), {"events": table})["q"]
    seen = pa.concat_tables(batches)
    assert_same_rows(query, got, closed_rows(query, wanted, seen))


def processed(query: weft.Query, plan: weft.Plan, batches: list[pa.Table]) -> pa.Table:
    """Run the processor as Spark would: a batch, then the watermark that it allows."""
    (scope,) = scopes_of(plan)
    hosted = HostedScope(scope.emits, batches[0].schema)
    processor = BucketProcessor(Versions(None, only={0: hosted.dump()}), 1, 0)
    tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    closed: list[Row] = []
    reached_ms = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        closed += tester.test(0, [Row(bucket=0, payload=dump_table(batch))])
        assert query.watermark_us is not None
        watermark_ms = pc.max(batch["ts"]).value // 1000 - query.watermark_us // 1000
        if watermark_ms > reached_ms:
            reached_ms = watermark_ms
            closed += tester.setWatermark(watermark_ms)
    return named(query, hosted, rows_closed(closed, hosted.output))


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


@pytest.mark.spark
@settings(max_examples=2, deadline=None, suppress_health_check=CHECKS, derandomize=True)
@given(data=st.data())
def test_a_native_stream_closes_what_the_reference_engine_has(
    spark: SparkSession, data: st.DataObject
) -> None:
    unit = SECOND_US
    call = calls(holistic=False).filter(lambda c: c.function in NATIVE)
    window = periodic_windows(unit_us=unit)
    first, second = (data.draw(queries(window, name, call)) for name in ("one", "two"))
    table = data.draw(events(unit_us=unit, origin_us=LATER_US))
    workload = weft.Workload([first.with_watermark(3 * unit), second.with_watermark(3 * unit)])
    report = weft.verify(
        workload, {"events": table}, engines=("reference", "local", "spark-stream")
    )
    assert report.ok, report.differences
