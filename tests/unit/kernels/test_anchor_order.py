"""Rows by key and time, and the positions of windows at anchors, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engines.local.anchors.order import LEAST, order_of, positions, shifted, spans
from weft.kernels.operations import MAX_INT64, MOMENTS, SUM_INT64
from weft.kernels.ranges.choice import aggregate_ranges

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-6, 6)), max_size=40)


def arrays(rows):
    keys = np.array([key for key, _ in rows], np.int32)
    return keys, np.array([time for _, time in rows], np.int64)


@settings(deadline=None)
@given(ROWS)
def test_rows_are_ordered_by_key_time_and_place(rows):
    order = order_of(*arrays(rows))
    found = list(range(len(rows))) if order is None else order.tolist()
    assert found == sorted(range(len(rows)), key=lambda i: (*rows[i], i))
    assert (order is None) == (rows == sorted(rows))


@settings(deadline=None)
@given(ROWS, ROWS)
def test_positions_are_those_of_a_search(rows, anchors):
    rows, anchors = sorted(rows), sorted(anchors)
    found = positions(*arrays(rows), *arrays(anchors))
    assert found.tolist() == [sum(row < anchor for row in rows) for anchor in anchors]


@settings(deadline=None)
@given(ROWS, ROWS, st.integers(0, 3))
def test_spans_hold_a_key_from_an_instant_on_and_some_rows_before(rows, wanted, before):
    rows = sorted(rows)
    starts, stops = spans(*arrays(rows), *arrays(wanted), before)
    for (key, instant), start, stop in zip(wanted, starts, stops, strict=True):
        own = [row for row in rows if row[0] == key]
        kept = sum(time >= instant for _, time in own) + before
        assert rows[start:stop] == own[-kept:] if kept else start == stop


def test_instants_stay_at_the_ends_of_time():
    ends = np.array([LEAST, LEAST + 1, 2**63 - 1])
    assert shifted(ends, -5).tolist() == [LEAST, LEAST, 2**63 - 6]
    assert shifted(ends, 1).tolist() == [LEAST + 1, LEAST + 2, 2**63 - 1]
    assert shifted(ends, 0, 1000).tolist()[0] == LEAST


@pytest.mark.parametrize(
    ("operation", "technique"),
    [
        (SUM_INT64, "prefix_sums"),
        (SUM_INT64, "sliding_ranges"),
        (SUM_INT64, "disjoint_sparse_table"),
        (MAX_INT64, "sliding_ranges"),
        (MAX_INT64, "sparse_table"),
        (MAX_INT64, "one_by_one"),
        (MOMENTS, "sliding_ranges"),
        (MOMENTS, "disjoint_sparse_table"),
    ],
)
def test_a_technique_that_is_told_gives_what_the_chosen_one_gives(operation, technique):
    draw = np.random.default_rng(3)
    whole = draw.integers(0, 9, 300)
    values = (
        whole if operation is not MOMENTS else (np.ones(300, np.int64), whole * 1.0, whole * 0.0)
    )
    ends = np.sort(draw.integers(0, 301, 80))
    starts = np.maximum(ends - 40, 0)
    told = aggregate_ranges(values, starts, ends, operation, technique)
    chosen = aggregate_ranges(values, starts, ends, operation)
    assert np.allclose(told, chosen)
