"""The native strategy for streams: one read, two states, the rows of the reference engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft import agg
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    import pyarrow as pa

pytestmark = pytest.mark.spark
S = 1_000_000

WINDOWS = {
    "10s": weft.tumbling("10 seconds"),
    "15s": weft.tumbling("15 seconds"),
    "20s": weft.tumbling("20 seconds"),
    "25s/10s": weft.hopping("25 seconds", "10 seconds", "3 seconds"),
    "1m/12s": weft.cumulating("1 minute", "12 seconds"),
    "4s/20s": weft.hopping("4 seconds", "20 seconds"),
}
AGGS = {
    "n": agg.count(),
    "s": agg.sum("v"),
    "lo": agg.min("v"),
    "mean": agg.avg("v"),
    "sd": agg.stddev("v"),
    "last": agg.last("v"),
}


def query_over(windows: dict[str, Any], name: str = "q", **more: Any) -> weft.Query:
    asked = {"keys": ["k"], "aggs": AGGS, "watermark": "5 seconds", **more}
    return weft.Query(name, source="r", time="ts", windows=windows, **asked)


@pytest.mark.parametrize("planner", ["auto", "slice", "independent"])
def test_closed_windows_have_the_rows_of_the_reference_engine(
    streams: Any, readings: pa.Table, planner: str
) -> None:
    streams.write(readings, 5)
    query = query_over(WINDOWS)
    result = weft.run(weft.Workload([query]), {"r": streams.read()}, planner=planner)
    assert result.isStreaming
    done = streams.ran(result)
    wanted = weft.run(weft.Workload([query]), {"r": readings}, engine="reference")
    expected = streams.closed(wanted, 5 * S)
    assert 0 < expected.num_rows < wanted.num_rows
    assert_same_rows(query, done.rows, expected)
    assert done.input_rows == readings.num_rows
    assert done.state_operators == (1 if planner == "independent" else 2)
