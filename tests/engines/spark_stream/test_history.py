"""Streams that begin with a slice store: windows over the seam are as of all events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import weft
from weft import agg
from weft.sessions.sink_fan_out import FanOutBatches
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.slow]
S = 1_000_000
QUERY = weft.Query(
    "counts",
    source="r",
    time="ts",
    keys={"k": "k", "warm": "v > 20"},
    windows={"20s": weft.tumbling("20 seconds"), "2m": weft.hopping("120 seconds", "20 seconds")},
    aggs={"n": agg.count(), "lo": agg.min("v"), "mean": agg.avg("v")},
    watermark="5 seconds",
)


def test_a_stream_begins_with_the_slices_of_a_store(streams: Any, readings: pa.Table) -> None:
    readings = readings.sort_by("ts")
    half = readings.num_rows // 2
    store = weft.Store(streams.place / "store", QUERY)
    store.append(readings.slice(0, half), id="history")
    streams.write(readings.slice(half), 3)
    files = sorted((streams.place / "in").iterdir())
    files[2].rename(streams.place / "later")
    collected: list[pa.Table] = []

    def collect(rows: DataFrame, batch_id: int) -> None:
        collected.append(rows.toArrow())

    def run() -> None:
        source = {"r": streams.read()}
        weft.start(
            QUERY, source, collect, streams.place / "c", "once", store=store
        ).awaitTermination()

    run()
    (streams.place / "later").rename(files[2])
    run()  # from its checkpoint: history is there, and comes no second time
    streams.events = readings
    wanted = streams.closed(weft.run(QUERY, {"r": readings}, engine="reference"), 5 * S)
    assert_same_rows(QUERY, pa.concat_tables(collected), wanted)
    native = weft.UnsupportedError
    with pytest.raises(native, match="native strategy cannot begin with the slices of a store"):
        weft.start(
            QUERY,
            {"r": streams.read()},
            collect,
            streams.place / "c2",
            "once",
            "native",
            store=store,
        )


def test_a_first_micro_batch_that_is_cut_off_begins_again_with_the_same_slices(
    streams: Any, readings: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = readings.sort_by("ts")
    half = readings.num_rows // 2
    store = weft.Store(streams.place / "store", QUERY)
    store.append(readings.slice(0, half), id="history")
    streams.write(readings.slice(half), 2)
    collected: list[pa.Table] = []

    def killed(self: FanOutBatches, rows: DataFrame, batch_id: int) -> None:
        rows.collect()  # so that executors have written the state of the micro-batch
        raise OSError("killed")

    def collect(rows: DataFrame, batch_id: int) -> None:
        collected.append(rows.toArrow())

    def run(given: weft.Store | None) -> None:
        source, checkpoint = {"r": streams.read()}, streams.place / "c"
        weft.start(QUERY, source, collect, checkpoint, "once", store=given).awaitTermination()

    with monkeypatch.context() as patched:
        patched.setattr(FanOutBatches, "write", killed)
        with pytest.raises(Exception, match="killed"):
            run(store)
    assert not collected
    store.append(readings.slice(half), id="what the stream reads too")
    other = weft.Store(streams.place / "other", QUERY)
    with pytest.raises(weft.QueryError, match=r"begins with the store .* is another"):
        run(other)
    run(None)  # the checkpoint knows with what it begins, and as of which version
    streams.events = readings
    wanted = streams.closed(weft.run(QUERY, {"r": readings}, engine="reference"), 5 * S)
    assert_same_rows(QUERY, pa.concat_tables(collected), wanted)
