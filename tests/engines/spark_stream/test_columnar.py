"""The columnar strategy for streams: every window and aggregate, few calls to the state store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.streaming import TwsTester
from pyspark.sql.types import Row

import weft
from weft import agg
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.streaming.checkpoint.versions import Versions
from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
from weft.engines.spark.streaming.columnar.parcels import Parcel
from weft.engines.spark.streaming.columnar.processor import BucketProcessor
from weft.engines.spark.streaming.progress import Progress
from weft.plan.planned_scope import planned_scopes
from weft.planners.running_workload import embed_query
from weft.sessions.replay import closed_rows
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

S = 1_000_000


class ByThrees(weft.UserWindow):
    """Three events of a key each."""

    def begins(self, event: Any, state: dict[str, Any]) -> int:
        state["seen"] = state.get("seen", 0) + 1
        return 1 if state["seen"] % 3 == 1 else 0

    def ends(self, event: Any, state: dict[str, Any]) -> int:
        return 1 if state.get("seen", 0) and state["seen"] % 3 == 0 else 0


ALL_KINDS = {
    "10s": weft.tumbling("10 seconds"),
    "25s/10s": weft.hopping("25 seconds", "10 seconds", "3 seconds"),
    "1m/12s": weft.cumulating("1 minute", "12 seconds"),
    "gap": weft.session("4 seconds"),
    "7 rows": weft.counting(7, 3),
    "day": weft.calendar("day", "Europe/Berlin"),
    "warm": weft.punctuated("v > 25"),
    "threes": ByThrees(),
}
AGGS = {
    "n": agg.count(),
    "s": agg.sum("v"),
    "values": agg.count_distinct("round(v)"),
    "mid": agg.median("v"),
    "last": agg.last("v"),
}


def rows_closed(output: Iterable[Row], schema: pa.Schema) -> pa.Table:
    """Put the rows of closed windows together that a processor gave."""
    blobs = [row["payload"] for row in output if row["payload"] is not None]
    return pa.concat_tables([schema.empty_table(), *map(read_table, blobs)])


def asked(windows: dict[str, Any], aggs: dict[str, Any]) -> weft.Query:
    return weft.Query(
        "q", source="r", time="ts", keys=["k"], windows=windows, aggs=aggs, watermark="5 seconds"
    )


@pytest.mark.spark
def test_every_kind_of_window_has_the_rows_of_the_reference_engine(
    streams: Any, readings: pa.Table, rocks: None
) -> None:
    streams.write(readings, 3)
    query = asked(ALL_KINDS, AGGS)
    workload = weft.Workload([query])
    result = weft.run(workload, {"r": streams.read()}, strategy="columnar")
    done = streams.ran(result)
    assert done.input_rows == readings.num_rows
    wanted = weft.run(workload, {"r": readings}, engine="reference")
    wanted = closed_rows(query, wanted, readings)
    assert set(wanted["window"].to_pylist()) == ALL_KINDS.keys() - {"day"}
    assert_same_rows(query, done.rows, wanted)
    assert done.state_operators == 1
    figures = [Progress.of(p) for p in done.progress]
    assert sum(one.late for one in figures) == 0
    assert figures[0].open_slices > 0
    assert figures[0].open_windows is None
    assert 0 < figures[0].state_bytes < 1_000_000
    shares = {label: size for _, label, size in figures[0].window_bytes}
    assert shares.keys() == ALL_KINDS.keys()
    assert 0 < min(shares.values()) <= max(shares.values()) <= figures[0].state_bytes


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [2, 3, 7])
def test_spark_brings_the_buckets_of_a_scope_to_all_partitions_alike(
    spark: SparkSession, partitions: int
) -> None:
    buckets = Buckets(2 * partitions, partitions)
    for scope in range(3):
        numbers = [(buckets.number(scope, bucket),) for bucket in range(buckets.each)]
        rows = spark.createDataFrame(numbers, "bucket int").repartition(partitions, "bucket")
        counts = rows.groupBy(F.spark_partition_id()).count().collect()
        assert sorted(count for _, count in counts) == [2] * partitions


class Counted(BucketProcessor):
    """Counts the calls to the state store."""

    calls = 0

    def init(self, handle: Any) -> None:
        super().init(handle)
        log = self._log
        owner = type(self)

        class Log:
            def __getattr__(self, name: str) -> Any:
                owner.calls += 1
                return getattr(log, name)

        self._log = Log()  # type: ignore[assignment]


def processor_over(
    query: weft.Query, events: pa.Schema, mode: str = "append"
) -> tuple[BucketProcessor, HostedScope]:
    (scope,) = planned_scopes(weft.optimize(weft.Workload([query]), engine="spark"))
    hosted = HostedScope(Parcel.of(scope).renamed(scope).emits, events)
    return Counted(Versions(None, only={0: hosted.dump()}), Buckets(1), 5 * S, mode), hosted


def payload_of(events: pa.Table) -> Row:
    return Row(bucket=0, payload=table_chunk(events))


def batches(keys: int, rows: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(3)
    for at in range(3):
        times = np.sort(random.integers(at * 20 * S, (at + 1) * 20 * S, rows)) + 1000 * S
        yield pa.table(
            {
                "k0": pa.array(random.integers(0, keys, rows)),
                "time": pa.array(times),
                "a0": pa.array(random.normal(size=rows)),
            }
        )


@pytest.mark.parametrize("keys", [10, 10_000])
def test_state_calls_do_not_grow_with_keys(keys: int) -> None:
    query = asked({"10s": weft.tumbling("10 seconds")}, {"s": agg.sum("v")})
    parts = list(batches(keys, 20_000))
    processor, hosted = processor_over(query, parts[0].schema)
    Counted.calls = 0
    tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    closed: list[Row] = []
    for at, part in enumerate(parts):
        if at:
            closed += tester.setWatermark(1_000_000 + at * 20_000 - 10_000)
        closed += tester.test(0, [payload_of(part)])
    assert Counted.calls <= 4 * len(parts)
    rows = rows_closed(closed, hosted.output)
    events = pa.concat_tables(parts)
    inside = events.filter(pa.array(events["time"].to_numpy() < 1030 * S))
    wanted = len(np.unique(inside["time"].to_numpy() // (10 * S) * keys + inside["k0"].to_numpy()))
    assert rows.num_rows == wanted


def test_a_bucket_without_events_closes_its_windows_when_the_watermark_passes() -> None:
    query = asked({"10s": weft.tumbling("10 seconds")}, {"s": agg.sum("v")})
    first = next(batches(5, 100))
    processor, hosted = processor_over(query, first.schema)
    tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    assert all(row["payload"] is None for row in tester.test(0, [payload_of(first)]))
    assert all(row["payload"] is None for row in tester.setWatermark(1_005_000))
    closed = rows_closed(tester.setWatermark(1_020_000), hosted.output)
    assert sorted(set(closed["end"].to_pylist())) == [1010 * S, 1020 * S]
    assert closed.num_rows == 10


def test_events_that_come_too_late_are_counted_and_change_nothing() -> None:
    query = asked({"10s": weft.tumbling("10 seconds")}, {"s": agg.sum("v")})
    first, second, _ = batches(5, 100)
    processor, hosted = processor_over(query, first.schema)
    tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    tester.test(0, [payload_of(first)])
    once = rows_closed(tester.setWatermark(1_020_000), hosted.output)
    (row,) = tester.test(0, [payload_of(pa.concat_tables([first, second]))])
    assert row["late"] == first.num_rows
    assert row["payload"] is None
    later = rows_closed(tester.setWatermark(1_040_000), hosted.output)
    got = pa.concat_tables([once, later]).select(["k0", "start", "end", "v0"])
    events = pa.concat_tables([first, second])  # each of them once
    starts = pa.array(events["time"].to_numpy() // (10 * S) * (10 * S))
    by_window = events.append_column("start", starts).group_by(["k0", "start"])
    sums = by_window.aggregate([("a0", "sum")]).to_pylist()
    wanted = {(row["k0"], row["start"]): row["a0_sum"] for row in sums}
    found = {(row["k0"], row["start"]): row["v0"] for row in got.to_pylist()}
    assert got.num_rows == len(found)
    assert found == pytest.approx(wanted)


def test_a_bucket_that_nothing_came_to_for_a_while_judges_by_the_watermark_of_all() -> None:
    """Its operator was not called since, or never; the watermark moved on without it."""
    query = asked({"10s": weft.tumbling("10 seconds")}, {"n": agg.count()})
    first, second, _ = batches(5, 100)
    _, hosted = processor_over(query, first.schema)
    for idle in (None, first.slice(0, 1)):
        processor = BucketProcessor(Versions(None, only={0: hosted.dump()}), Buckets(2), 5 * S)
        tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
        if idle is not None:
            tester.test(1, [payload_of(idle)])
            tester.setWatermark(1_020_000)  # it is empty now, and asks for no more calls
        tester.test(0, [payload_of(first)])
        tester.setWatermark(1_030_000)
        (row,) = tester.test(1, [payload_of(pa.concat_tables([first.slice(1), second]))])
        old = sum(time < 1030 * S for time in second["time"].to_pylist())
        assert row["late"] == 99 + old
        assert row["payload"] is None
        (closed,) = tester.setWatermark(1_040_000)
        rows = rows_closed([closed], hosted.output)
        assert sum(rows["v0"].to_pylist()) == second.num_rows - old


def test_updates_leave_out_windows_whose_bounds_events_may_still_move() -> None:
    kinds = {
        "10s": weft.tumbling("10 seconds"),
        "gap": weft.session("4 seconds"),
        "3 rows": weft.counting(3),
        "marked": weft.punctuated("v > 0"),
    }
    marks = pa.array([at % 5 == 0 for at in range(30)])
    first, second, _ = (part.set_column(2, "a0", marks) for part in batches(2, 30))
    processor, hosted = processor_over(asked(kinds, {"n": agg.count()}), first.schema, "update")
    tester = TwsTester(
        processor, timeMode="EventTime", outputMode="update", eventTimeExtractor=lambda _: 2**62
    )
    early = rows_closed(tester.test(0, [payload_of(first)]), hosted.output)
    assert {hosted.emits[node].label for node in early["node"].to_pylist()} == {"10s"}
    assert sum(early["v0"].to_pylist()) == first.num_rows
    # A session that the second batch prolongs would otherwise have come with two ends.
    tester.test(0, [payload_of(second)])
    closed = rows_closed(tester.setWatermark(1_060_000), hosted.output)
    assert {hosted.emits[n].label for n in closed["node"].to_pylist()} == set(kinds)
    identity = list(zip(*(closed[c].to_pylist() for c in ("node", "k0", "start")), strict=True))
    assert len(set(identity)) == len(identity)


class Later(Versions):
    """Runs by its second version what was written by the first."""

    def at(self, batch: int) -> tuple[int, dict[int, HostedScope]]:
        return 1, self.of(1)

    def of(self, number: int) -> dict[int, HostedScope]:
        return {0: HostedScope.load(self.only[number])}


def test_an_operator_takes_over_the_state_of_another_version() -> None:
    twenties = asked({"20s": weft.tumbling("20 seconds")}, {"s": agg.sum("v")})
    tens = weft.Query(
        "tens",
        source="r",
        time="ts",
        keys=["k"],
        windows={"40s": weft.tumbling("40 seconds"), "10s": weft.tumbling("10 seconds")},
        aggs={"s": agg.sum("v")},
        watermark="5 seconds",
    )
    parts = list(batches(5, 200))
    _, before = processor_over(twenties, parts[0].schema)
    first = BucketProcessor(Versions(None, only={0: before.dump()}), Buckets(1), 5 * S)
    tester = TwsTester(first, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    tester.test(0, [payload_of(parts[0])])
    plan_before = weft.optimize(weft.Workload([twenties]), "slice")
    (scope,) = planned_scopes(embed_query(plan_before, tens))
    after = HostedScope(Parcel.of(scope).renamed(scope).emits, parts[0].schema)
    second = BucketProcessor(
        Later(None, only={0: before.dump(), 1: after.dump()}), Buckets(1), 5 * S
    )
    again = TwsTester(second, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    again.updateListState("log", 0, tester.peekListState("log", 0))
    again.setWatermark(1_015_000)
    (row,) = again.test(0, [payload_of(parts[1])])
    limits = {label: us for _, label, us in json.loads(row["complete_from"])}
    # Slices of 20 s serve 40 s windows as they are; those of 10 s begin with the next events.
    assert limits == {"40s": None, "10s": 1030 * S}
    closed = rows_closed(again.setWatermark(1_040_000), after.output)
    labels = [after.emits[node].label for node in closed["node"].to_pylist()]
    starts = closed["start"].to_pylist()
    got = {(label, start // S) for label, start in zip(labels, starts, strict=True)}
    assert got == {("20s", 1000), ("20s", 1020), ("40s", 1000), ("10s", 1030)}


class Money(int):
    """What only a pickle can keep."""


def test_partials_that_are_not_plain_are_refused_before_there_is_state_or_kept_on_trust() -> None:
    total = agg.custom(
        "money_total", lift=Money, combine=lambda a, b: Money(a + b), lower=int, identity=Money(0),
        commutative=True, idempotent=False,
    )  # fmt: skip
    query = asked({"10s": weft.tumbling("10 seconds")}, {"s": total("v")})
    first = next(batches(5, 100)).set_column(2, "a0", pa.array(range(100)))
    _, hosted = processor_over(query, first.schema)
    with pytest.raises(weft.UnsupportedError, match="Money, which only a pickle can keep"):
        hosted.check_kept(NO_PICKLES)
    trust = Trust(True, b"a key of sixteen bytes or more")
    hosted.check_kept(trust)
    versions = Versions(None, only={0: hosted.dump()})

    def tester(trust: Trust) -> TwsTester:
        processor = BucketProcessor(versions, Buckets(1), 5 * S, trust=trust)
        return TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)

    before = tester(trust)
    before.test(0, [payload_of(first)])
    log = before.peekListState("log", 0)
    for refused in (NO_PICKLES, Trust(True), Trust(True, b"another key of sixteen bytes")):
        thief = tester(refused)
        thief.updateListState("log", 0, log)
        with pytest.raises(weft.DataError, match="pickles"):
            thief.test(0, [payload_of(first.slice(0, 1))])
    after = tester(trust)
    after.updateListState("log", 0, log)
    after.test(0, [payload_of(first.slice(0, 0))])
    closed = rows_closed(after.setWatermark(1_040_000), hosted.output)
    assert sum(closed["v0"].to_pylist()) == sum(range(100))
