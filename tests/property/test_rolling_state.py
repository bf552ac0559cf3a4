"""Rows of a stream, handed out as the watermark passes them, equal the reference engine's.

The state is written and read back now and then, as a checkpoint does, and what is late is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from asked_features import CALLS, ROW, UNITS, assert_same, described, windows
from sampling import examples
from weft.engines.local.anchors import rolling_state
from weft.engines.local.anchors.rolling_rows import EVENT, TIME, RollingRows
from weft.engines.local.anchors.rolling_state import RollingState
from weft.testing.strategies import events

SECOND, HOUR, DAY = 10**6, 3600 * 10**6, 86_400 * 10**6


@dataclass
class Stream:
    """A state that is fed, and now and then written and read back."""

    of: RollingRows
    state: RollingState = field(init=False)
    chunks: dict[str, bytes] = field(default_factory=dict)
    found: list[pa.Table] = field(default_factory=list)
    kept: list[pa.Table] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = RollingState(self.of)

    def push(self, rows: pa.Table, watermark_us: int) -> None:
        times = rows[TIME].to_pylist()
        in_time = [t is None or t >= self.state.watermark_us for t in times]
        self.kept.append(rows.filter(pa.array(in_time, pa.bool_())))
        late = self.state.late
        self.found.append(self.state.process(rows, watermark_us))
        assert self.state.late - late == in_time.count(False)

    def save(self, restart: bool) -> None:
        self.state.changes().apply(self.chunks)
        if restart:
            self.state = RollingState.load(self.of, dict(self.chunks))

    def check(self, asked: dict[str, Any]) -> None:
        """Compare all that was handed out with the reference over all that was not late."""
        known = pa.concat_tables(self.kept)
        if EVENT in known.column_names:
            asked = {**asked, "where": EVENT}
        want = weft.rolling(known, time=TIME, engine="reference", **asked)
        complete = [t is None or t < self.state.watermark_us for t in known[TIME].to_pylist()]
        want = want.filter(pa.array(complete, pa.bool_())).sort_by(ROW)
        assert_same(pa.concat_tables(self.found).sort_by(ROW), want, asked["aggs"])


PLAIN = [call for call in CALLS if all(argument.isidentifier() for argument in call.args)]


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_rows_of_a_stream_equal_the_reference_whenever_it_is_restarted(data: st.DataObject) -> None:
    unit_us = data.draw(st.sampled_from(UNITS))
    calls = data.draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=4, unique=True))
    asked = {
        "by": data.draw(st.sampled_from([[], ["k"], ["k", "flag"], ["x"]])),
        "windows": data.draw(windows(unit_us)),
        "aggs": {f"a{i}": call for i, call in enumerate(calls)},
        "closed": data.draw(st.sampled_from(["both", "left", "right", "neither"])),
        "round": data.draw(st.sampled_from([None, 3, 7 * unit_us])),
    }
    filtered = data.draw(st.booleans())
    with pytest.MonkeyPatch.context() as patch:
        # Real streams write all anew when much has come; here whenever one is drawn.
        few_bytes = data.draw(st.sampled_from([0, 0, 4_000]))
        patch.setattr(rolling_state, "_FEW_BYTES", few_bytes)
        check_stream(data, asked, unit_us, filtered=filtered)


def check_stream(
    data: st.DataObject, asked: dict[str, Any], unit_us: int, *, filtered: bool
) -> None:
    stream, watermark_us, number = None, -(10**15), 0
    for _ in range(data.draw(st.integers(1, 6))):
        rows = data.draw(events(unit_us=unit_us, most=25))
        times = rows["ts"].cast(pa.int64())
        rows = rows.set_column(0, TIME, times)
        rows = rows.add_column(0, ROW, pa.array(np.arange(number, number + rows.num_rows)))
        number += rows.num_rows
        if filtered:
            flags = pa.array([data.draw(st.booleans()) for _ in range(rows.num_rows)], pa.bool_())
            rows = rows.append_column(EVENT, flags)
        stream = stream or Stream(described(rows, asked))
        latest = [t for t in times.to_pylist() if t is not None]
        moved = data.draw(st.sampled_from(latest)) if latest else watermark_us
        watermark_us = max(watermark_us, moved + data.draw(st.sampled_from([0, 0, 1, unit_us])))
        stream.push(rows, watermark_us)
        if data.draw(st.booleans()):
            stream.save(restart=data.draw(st.booleans()))
    assert stream is not None
    stream.check(asked)


def test_state_is_bounded_by_the_longest_range_and_late_rows_are_counted() -> None:
    asked: dict[str, Any] = {
        "by": ["k"],
        "windows": {"1m": "1 minute", "last": weft.rows(2)},
        "aggs": {"n": weft.agg.count(), "s": weft.agg.sum("x")},
    }
    second = np.arange(20)
    stream: Stream | None = None
    most = bytes_held = 0
    for step in range(300):
        times = (second // 2 + step * 10) * SECOND
        rows = pa.table(
            {
                ROW: pa.array(np.arange(20) + 20 * step),
                TIME: pa.array(times),
                "k": pa.array((second % 5).astype(str)),
                "x": pa.array(second),
                "note": pa.array(["a payload that is not kept with events"] * 20),
            }
        )
        stream = stream or Stream(described(rows, asked))
        stream.push(rows, int(times[-1]) - 5 * SECOND)
        stream.save(restart=True)
        most = max(most, len(stream.state))
        bytes_held = max(bytes_held, sum(map(len, stream.chunks.values())))
    assert stream is not None
    # Two rows a second: a minute and the delay are held, of 6,000 rows.
    assert most <= 2 * (60 + 10) + 5 * 2
    assert bytes_held < 3 * (1 << 16)
    stream.check(asked)
    stream.push(rows.slice(0, 3), 0)
    assert stream.state.late == 3
    assert stream.found[-1].num_rows == 0


@pytest.mark.parametrize("round_us", [None, HOUR])
def test_ranges_of_weeks_hold_slices_for_the_tail_where_they_are_rounded(
    round_us: int | None,
) -> None:
    asked: dict[str, Any] = {
        "by": ["k"],
        "windows": {"1d": "1 day", "4w": "4 weeks"},
        "aggs": {"n": weft.agg.count(), "s": weft.agg.sum("x"), "lo": weft.agg.min("x")},
        "round": round_us,
    }
    draw = np.random.default_rng(4)
    stream: Stream | None = None
    held: list[int] = []
    for day in range(60):
        times = np.sort(draw.integers(day * DAY, (day + 1) * DAY, 4_000))
        rows = pa.table(
            {
                ROW: pa.array(np.arange(4_000) + 4_000 * day),
                TIME: pa.array(times),
                "k": pa.array(draw.integers(0, 3, 4_000)),
                "x": pa.array(draw.integers(0, 99, 4_000)),
            }
        )
        stream = stream or Stream(described(rows, asked))
        stream.push(rows, int(times[-1]))
        stream.save(restart=True)
        held.append(len(stream.state))
    assert stream is not None
    found = pa.concat_tables(stream.found).sort_by(ROW)
    known = pa.concat_tables(stream.kept)
    want = weft.rolling(known, time=TIME, **asked).slice(0, found.num_rows).sort_by(ROW)
    assert found.equals(want)
    if round_us is None:
        assert held[-1] > 28 * 4_000
    else:
        # Slices of an hour, of three keys, and the events since all was written anew.
        assert max(held[30:]) < 29 * 24 * 3 + 6 * 4_000
