"""Edges at run time: tables agree with plain enumeration."""

from __future__ import annotations

from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import InternalError
from weft.kernels.grouping import edges
from weft.kernels.grouping.edges import (
    PeriodTable,
    marks_per_period,
)
from weft.kernels.grouping.slices import EdgeHorizon

CLASSES = st.lists(st.tuples(st.integers(-30, 30), st.integers(1, 25)), min_size=1, max_size=4)


def enumerated(classes, start, stop):
    return [t for t in range(start, stop) if any((t - r) % m == 0 for r, m in classes)]


@settings(deadline=None, max_examples=100)
@given(classes=CLASSES, times=st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30))
def test_slices_hold_their_instants_and_ordinals_count_edges(classes, times):
    table, instants = PeriodTable.of(classes), np.array(times)
    ordinals = table.slice_of(instants)
    starts, ends = table.bounds(ordinals)
    assert np.all((starts <= instants) & (instants < ends))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        assert enumerated(classes, start, end + 1) == [start, end]
    assert table.slice_of(ends).tolist() == (ordinals + 1).tolist()
    horizon = EdgeHorizon.of(classes)
    assert horizon.slice_of(instants).tolist() == starts.tolist()
    assert [b.tolist() for b in horizon.bounds(starts)] == [starts.tolist(), ends.tolist()]


@settings(deadline=None, max_examples=60)
@given(classes=CLASSES, time=st.integers(-500, 500))
def test_an_ordinal_counts_whole_periods_and_edges_of_one(classes, time):
    table = PeriodTable.of(classes)
    period = lcm(*(m for _, m in classes))
    of_one = enumerated(classes, 0, period)
    want = time // period * len(of_one) + sum(edge <= time % period for edge in of_one)
    assert table.slice_of(np.array([time])).tolist() == [want - 1]


def test_the_same_query_covers_different_numbers_of_slices_at_different_phases():
    queries = [(12, 4), (24, 6), (60, 20), (60, 10)]
    table = PeriodTable.of([(0, slide) for _, slide in queries])
    counts = []
    for size, slide in queries:
        fires = np.arange(0, 60, slide)
        counts.append(set((table.slice_of(fires) - table.slice_of(fires - size)).tolist()))
    assert np.diff(table.slice_of(np.array([0, 60]))).tolist() == [22]
    assert counts == [{4, 5}, {8, 9, 10}, {22}, {22}]


def test_evenly_spaced_edges_become_one_slice_wide():
    table = PeriodTable.of([(1, 4), (3, 4), (5, 6)])
    assert table.width_us == 2
    assert table.slice_of(np.array([0, 1, 2, 3])).tolist() == [-1, 0, 0, 1]
    assert PeriodTable.of([(0, 3), (2, 3)]).width_us is None


def test_a_period_without_direct_lookup_is_searched(monkeypatch):
    times = np.arange(-100, 100)[::-1]
    want = PeriodTable.of([(0, 7), (3, 11)]).slice_of(times)
    monkeypatch.setattr(edges, "TABLE_GRAINS", 10)
    searched = PeriodTable.of([(0, 7), (3, 11)])
    assert searched.slice_of_grain.size == 0
    assert searched.slice_of(times).tolist() == want.tolist()


def test_a_long_period_is_refused_as_a_table():
    classes = [(0, 1009), (3, 1013), (5, 1019)]
    assert marks_per_period(classes) > edges.TABLE_EDGES
    with pytest.raises(InternalError, match="edges for a table"):
        PeriodTable.of(classes)
