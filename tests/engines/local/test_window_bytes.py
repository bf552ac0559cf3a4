"""What of the state each window reads: slices since its oldest open instance began."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import weft
from weft.engines.local.state.window_bytes import window_bytes

if TYPE_CHECKING:
    from weft.window import Window

MINUTE = 60_000_000
EVENTS = pa.table(
    {
        "ts": pa.array(np.arange(0, 200 * MINUTE, MINUTE // 4), pa.timestamp("us")),
        "k": pa.array(np.arange(800) % 7),
        "x": pa.array(np.arange(800) * 0.5),
    }
)


def shares(windows: dict[str, Window], planner: str) -> tuple[dict[str, int], int, list[int]]:
    """Return the bytes of each window, those of all, and where the held slices begin."""
    query = weft.Query(
        "q", source="s", time="ts", keys="k", windows=windows, aggs={"t": "sum(x)", "hi": "max(x)"}
    )
    session = weft.LocalSession(query, planner=planner)
    for batch in EVENTS.to_batches(max_chunksize=100):
        session.push("s", batch)
    (operator,) = session._streams["s"].operators
    labels = [emit.label for emit in operator.emits]
    starts = [
        start
        for node in operator.plan.bases
        for flow in operator.slices_of(node)
        for start in flow.starts_us.tolist()
    ]
    told = dict(zip(labels, window_bytes(operator), strict=True))
    return told, operator.nbytes, starts


@pytest.mark.parametrize("planner", ["independent", "slice", "factor"])
def test_one_window_reads_all_of_the_state(planner: str) -> None:
    for window in (weft.tumbling("1 hour"), weft.session("1 minute"), weft.calendar("day")):
        told, size, _ = shares({"w": window}, planner)
        assert told == {"w": size} != {"w": 0}


def test_windows_that_share_slices_read_those_of_their_open_instances() -> None:
    hours = weft.tumbling("1 hour")
    told, size, starts = shares({"5m": weft.tumbling("5 minutes"), "1h": hours}, "slice")
    assert told["1h"] == size  # nothing older is held
    # The watermark is at 199.75 minutes: 5 minutes began at 195, the hour at 180.
    young = sum(start >= 195 * MINUTE for start in starts)
    assert told["5m"] == round(size * young / len(starts)) < size / 2
