"""Features served from a session equal those of `as_of` over all that was pushed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.testing.strategies import events

SECOND = 1_000_000
AGGS = {
    "n": weft.agg.count(),
    "whole": weft.agg.sum("i"),
    "lo": weft.agg.min("x"),
    "kinds": weft.agg.count_distinct("i"),
    "middle": weft.agg.median("i"),
    "newest": weft.agg.last("i"),
}


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_session_serves_what_as_of_gives(data: st.DataObject) -> None:
    asked: dict[str, Any] = {
        "by": data.draw(st.sampled_from([[], ["k"], ["k", "flag"], {"i": "i"}])),
        "windows": {"5us": 5, "30us": 30, "last": weft.rows(data.draw(st.integers(1, 4)))},
        "aggs": AGGS,
        "where": data.draw(st.sampled_from([None, "i > -3"])),
        "closed": data.draw(st.sampled_from(["both", "left", "right", "neither"])),
        "round": data.draw(st.sampled_from([None, 7])),
    }
    session = weft.FeatureSession(time="ts", **asked)
    parts = []
    for _ in range(data.draw(st.integers(1, 5))):
        parts.append(data.draw(events(most=15)))
        session.push(parts[-1])
        points = data.draw(events(most=6))
        points = points.rename_columns(["at", *points.column_names[1:]])
        want = weft.as_of(points, pa.concat_tables(parts), time="ts", at="at", **asked)
        got = session.as_of(points, at="at")
        assert repr(got.to_pylist()) == repr(want.to_pylist())
        if data.draw(st.booleans()):
            before, session = session.metrics, weft.FeatureSession.restore(session.snapshot())
            assert session.metrics.held == before.held
            assert repr(session.as_of(points, at="at").to_pylist()) == repr(want.to_pylist())
    rows = pa.concat_tables(parts)
    assert session.metrics.held <= rows.num_rows


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_what_is_forgotten_is_needed_by_no_point_within_the_watermark(data: st.DataObject) -> None:
    asked: dict[str, Any] = {
        "by": ["k"],
        "windows": {"9us": 9, "last": weft.rows(2)},
        "aggs": AGGS,
        "round": data.draw(st.sampled_from([None, 4])),
    }
    session = weft.FeatureSession(time="ts", watermark=5, **asked)
    parts: list[pa.Table] = []
    for step in range(6):
        # Events of every batch lie in the ten microseconds after the last: none is late.
        drawn = data.draw(events(most=12))
        moved = [
            None if t is None else t % 5 + 10 * step
            for t in drawn["ts"].cast(pa.int64()).to_pylist()
        ]
        column = pa.array(moved, pa.int64()).cast(drawn.schema.field("ts").type)
        parts.append(drawn.set_column(0, "ts", column))
        session.push(parts[-1])
        known = [
            t for part in parts for t in part["ts"].cast(pa.int64()).to_pylist() if t is not None
        ]
        now = max(known, default=0)
        at = pa.array([now - 5, now, now + 3], pa.int64()).cast(drawn.schema.field("ts").type)
        points = pa.table({"at": at, "k": ["a", "b", None]})
        want = weft.as_of(points, pa.concat_tables(parts), time="ts", at="at", **asked)
        assert repr(session.as_of(points, at="at").to_pylist()) == repr(want.to_pylist())
    assert session.metrics.late == 0


def test_a_session_forgets_what_no_window_can_reach() -> None:
    session = weft.FeatureSession(
        time="ts", windows={"1m": "1 minute"}, aggs={"n": weft.agg.count()}, watermark="10 seconds"
    )
    for second in range(0, 2_000, 10):
        session.push(pa.table({"ts": [(second + i) * SECOND for i in range(10)]}))
    assert session.metrics.events == 2_000
    # A minute and the watermark; what else is there waits for the next merge.
    assert session.metrics.held <= 4 * 80
    assert session.metrics.held_bytes < 20_000
    session.push(pa.table({"ts": [5 * SECOND]}))
    assert session.metrics.late == 1
    with pytest.raises(weft.DataError, match="is forgotten"):
        session.as_of(pa.table({"at": [1_980 * SECOND]}), at="at")


def test_what_a_large_first_push_brought_is_forgotten_too() -> None:
    session = weft.FeatureSession(
        time="ts",
        by=["k"],
        windows={"1m": "1 minute", "last": weft.rows(1)},
        aggs={"n": weft.agg.count()},
        watermark="10 seconds",
    )
    past = pa.table({"ts": [second * SECOND for second in range(20_000)], "k": [0, 1] * 10_000})
    session.push(past)
    assert session.metrics.held <= 71 + 2  # and the last row of each key before them
    rare = pa.table({"ts": [20_001 * SECOND], "k": [0]})
    session.push(rare)
    points = pa.table({"k": [1, 2], "at": [20_005 * SECOND] * 2})
    found = session.as_of(points, at="at")
    want = weft.as_of(
        points,
        pa.concat_tables([past, rare]),
        time="ts",
        at="at",
        by=["k"],
        windows={"1m": "1 minute", "last": weft.rows(1)},
        aggs={"n": weft.agg.count()},
    )
    assert found.equals(want)


def test_mistakes_leave_a_session_as_it_was() -> None:
    session = weft.FeatureSession(
        time="ts", by=["k"], windows={"1m": "1 minute"}, aggs={"s": weft.agg.sum("x")}
    )
    with pytest.raises(weft.DataError, match="no events were pushed"):
        session.as_of(pa.table({"k": ["a"], "at": [0]}), at="at")
    session.push(pa.table({"k": ["a"], "ts": [0], "x": [1]}))
    with pytest.raises(weft.DataError, match="differ from those that came first"):
        session.push(pa.table({"k": ["a"], "ts": [0], "x": [1.5]}))
    with pytest.raises(weft.DataError, match="'k' is of type int64 in the points"):
        session.as_of(pa.table({"k": [1], "at": [0]}), at="at")
    with pytest.raises(weft.DataError, match="no column 'x'"):
        session.push(pa.table({"k": ["a"], "ts": [0]}))
    found = session.as_of(pa.table({"k": ["a"], "at": [5]}), at="at")
    assert found["s_1m"].to_pylist() == [1]


def test_a_session_that_saw_nothing_has_a_snapshot_and_other_bytes_are_refused() -> None:
    asked: dict[str, Any] = {"windows": {"5us": 5}, "aggs": {"n": weft.agg.count()}, "by": ["k"]}
    session = weft.FeatureSession(time="ts", watermark=3, **asked)
    again = weft.FeatureSession.restore(session.snapshot())
    again.push(pa.table({"k": ["a", "b"], "ts": [10, 12]}))
    assert again.as_of(pa.table({"k": ["a"], "at": [11]}), at="at")["n_5us"].to_pylist() == [1]
    with pytest.raises(weft.DataError, match="is forgotten"):
        weft.FeatureSession.restore(again.snapshot()).as_of(
            pa.table({"k": ["a"], "at": [1]}), at="at"
        )
    whole = again.snapshot()
    for other in (b"", b"nothing", whole[: len(whole) // 2]):
        with pytest.raises(weft.DataError, match="no snapshot of a feature session"):
            weft.FeatureSession.restore(other)
