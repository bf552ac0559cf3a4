"""What `weft size` predicts of states, against what Spark reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft import agg
from weft.cost.sizes import Pace, size_of
from weft.engines.spark.streaming.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from engines.spark_stream.conftest import Streams

pytestmark = [pytest.mark.spark, pytest.mark.soak]
START_US = 1_700_000_000_000_000
MINUTE_US = 60_000_000
WINDOWS = {"5m": weft.tumbling("5 minutes"), "30m/5m": weft.hopping("30 minutes", "5 minutes")}


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_states_are_as_predicted(streams: Streams, strategy: str, tmp_path: Path) -> None:
    keys, events, batches, rate = 2000, 120_000, 6, 40
    rng = np.random.default_rng(1)
    times = START_US + np.arange(events) * 1_000_000 // rate
    names = np.char.add("device-", rng.integers(0, keys, events).astype(str))
    columns = {"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "k": pa.array(names)}
    streams.cut(pa.table(columns | {"v": pa.array(rng.random(events))}), batches)
    query = weft.Query(
        "q",
        source="r",
        time="ts",
        keys=["k"],
        windows=WINDOWS,
        aggs={"n": agg.count(), "mean": agg.avg("v")},
        watermark="1 minute",
    )
    pace = Pace(MINUTE_US, events / batches / rate * 1e6)
    known = weft.Statistics(rate=float(rate), keys=keys, key_bytes=11.0)
    plan = weft.optimize(query, "slice", statistics=known, strategy=strategy, micro_batch="500 s")
    running = weft.start(
        plan, {"r": streams.read()}, str(tmp_path / "out"), tmp_path / "c", "once", strategy
    )
    running.awaitTermination()
    told = [Progress.of(progress) for progress in running.recentProgress]
    seen = [one.state_bytes for one in told if one.rows][3:]  # when all windows are full
    size = size_of(plan, known, 0.0, 2, pace)
    assert size.kept_bytes == pytest.approx(float(np.mean(seen)), rel=0.3)
