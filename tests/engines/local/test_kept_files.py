"""Files that released versions of weft wrote: they still open and go on, or are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming import TwsTester
from pyspark.sql.types import Row

import weft
from fixtures.kept import DELAY, FEATURES, QUERY, events
from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.streaming.checkpoint.versions import Versions
from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
from weft.engines.spark.streaming.columnar.processor import BucketProcessor
from weft.testing import assert_same_rows

KEPT = Path(__file__).parents[2] / "fixtures" / "0.1.0"


def closed_since(first_us: int) -> pa.Table:
    """All rows but those that the half of the events had closed before."""
    before = weft.LocalSession(QUERY, watermark=DELAY)
    given = before.push("s", events(0, first_us))
    rows = weft.run(QUERY, {"s": events(0, 100)}, engine="reference")
    identity = ["k", "window", "window_start", "window_end"]
    gone = {tuple(row.values()) for row in given.select(identity).to_pylist()}
    keep = [tuple(row.values()) not in gone for row in rows.select(identity).to_pylist()]
    return rows.filter(pa.array(keep))


def test_a_snapshot_of_a_session_goes_on() -> None:
    session = weft.LocalSession.restore((KEPT / "session-5.bin").read_bytes(), QUERY)
    rows = pa.concat_tables([session.push("s", events(50, 100)), session.finish()])
    assert_same_rows(QUERY, rows, closed_since(50))


def test_a_snapshot_of_another_format_is_refused_with_its_number() -> None:
    with pytest.raises(
        weft.DataError, match="is of version 4, and this weft reads version 5"
    ) as no:
        weft.LocalSession.restore((KEPT / "session-4.bin").read_bytes())
    assert no.value.hint == "restore it with the version of weft that wrote it"


def test_a_snapshot_of_a_feature_session_goes_on() -> None:
    session = weft.FeatureSession.restore((KEPT / "features-1.bin").read_bytes())
    session.push(events(50, 100))
    points = pa.table({"k": ["a", "b"] * 3, "at": [40, 51, 60, 77, 99, 100]})
    wanted = weft.as_of(points, events(0, 100), time="ts", at="at", by=["k"], **FEATURES)
    assert session.as_of(points, at="at").equals(wanted)


def test_the_state_of_a_columnar_stream_goes_on() -> None:
    """Its changes have no checksum yet."""
    hosted = HostedScope.from_json(json.loads((KEPT / "scope-2.json").read_text()))
    processor = BucketProcessor(Versions(None, only={0: hosted.dump()}), Buckets(1), DELAY)
    tester = TwsTester(processor, timeMode="EventTime", eventTimeExtractor=lambda _: 2**62)
    log = [gzip.decompress((KEPT / f"state-2-{at}.bin.gz").read_bytes()) for at in range(2)]
    tester.updateListState("log", 0, [(blob,) for blob in log])
    tester.test(0, [Row(bucket=0, payload=table_chunk(events(50, 100)))])
    closed = [row["payload"] for row in tester.setWatermark(2_000) if row["payload"] is not None]
    rows = pa.concat_tables(map(read_table, closed))
    by_clock = [emit.label for emit in hosted.emits]
    labels = pa.array(by_clock).take(rows["node"].combine_chunks())
    ended = {"10", "20/5", "cum", "gap"}  # the day has not, and rows are counted on
    got = sorted(
        (label, k, start, end)
        for label, k, start, end in zip(
            labels.to_pylist(), *(rows[c].to_pylist() for c in ("k0", "start", "end")), strict=True
        )
        if label in ended
    )
    wanted = weft.run(QUERY, {"s": events(0, 100)}, engine="reference")
    bounds = [wanted[c].cast(pa.int64()).to_pylist() for c in ("window_start", "window_end")]
    told = zip(wanted["window"].to_pylist(), wanted["k"].to_pylist(), *bounds, strict=True)
    assert got == sorted(row for row in told if row[0] in ended)
