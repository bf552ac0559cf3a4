"""Slicing: the published counts, windows made of whole slices, and windows over partials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.kernels.grouping.edges import PeriodTable
from weft.kernels.grouping.slices import (
    EdgeHorizon,
    instances_within,
    slices_of,
    slices_of_classes,
    window_ranges,
)
from weft.window import PeriodicWindow

WINDOWS = st.builds(PeriodicWindow, st.integers(1, 25), st.integers(1, 25), st.integers(-30, 30))


def edges(slices, start, stop):
    starts, _ = slices.bounds(slices.slice_of(np.arange(start, stop)))
    return np.unique(starts[starts >= start]).size


@pytest.mark.parametrize(
    ("shape", "panes", "pairs", "begins"),
    [
        ((14, 8), 7, 3, 2),
        ((5, 3), 5, 3, 2),
        ((10, 3), 10, 7, 4),
        ((8, 2), 4, 4, 4),
        ((12, 4), 3, 3, 3),
        ((7, 5), 7, 3, 2),
    ],
)
def test_slices_per_window(shape, panes, pairs, begins):
    window = PeriodicWindow(*shape)
    counts = [edges(slices_of([window], s), 0, shape[0]) for s in ("panes", "pairs", "begins")]
    assert counts == [panes, pairs, begins]


def test_edges_of_a_set_of_windows():
    both = [PeriodicWindow(5, 3), PeriodicWindow(14, 8)]
    counts = {s: edges(slices_of(both, s), 0, 24) for s in ("pairs", "begins", "panes")}
    assert counts == {"pairs": 18, "begins": 10, "panes": 24}
    shifted = [PeriodicWindow(5, 3, 1), PeriodicWindow(14, 8, 1)]
    assert edges(slices_of(shifted, "pairs"), 1, 25) == 18


@settings(deadline=None, max_examples=80)
@given(
    windows=st.lists(WINDOWS, min_size=1, max_size=3), slicing=st.sampled_from(["pairs", "panes"])
)
def test_every_window_is_a_whole_number_of_slices(windows, slicing):
    slices = slices_of(windows, slicing)
    for window in windows:
        start = window.offset_us - 2 * window.slide_us
        bounds = np.array([start, start + window.range_us])
        assert slices.bounds(slices.slice_of(bounds))[0].tolist() == bounds.tolist()


def test_begin_aligned_pairs_of_letters():
    times = np.arange(10)
    ordinals = slices_of([PeriodicWindow(5, 3)], "pairs").slice_of(times)
    cuts = np.flatnonzero(np.diff(ordinals)) + 1
    assert ["".join(part) for part in np.split(np.array(list("abcdefghij")), cuts)] == [
        "ab", "c", "de", "f", "gh", "i", "j",
    ]  # fmt: skip


def test_a_long_period_is_numbered_by_instants():
    classes = [(0, 86399), (0, 86400), (0, 86353)]
    slices = slices_of_classes(classes)
    assert isinstance(slices, EdgeHorizon)
    assert slices.slice_of(np.array([86360, 86399, 86400, -1])).tolist() == [
        86353, 86399, 86400, -86353,
    ]  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(
    window=WINDOWS,
    events=st.lists(st.tuples(st.integers(0, 2), st.integers(-60, 60)), max_size=25),
    other=WINDOWS,
)
def test_window_ranges_are_the_instances_with_events(window, events, other):
    slices = slices_of([window, other], "pairs")
    times = np.array([t for _, t in events], np.int64)
    starts_of = slices.bounds(slices.slice_of(times))[0].tolist()
    rows = sorted({(k, s) for (k, _), s in zip(events, starts_of, strict=True)})
    keys = np.array([k for k, _ in rows], np.int64)
    slice_starts = np.array([s for _, s in rows], np.int64)
    found = window_ranges(window, keys, slice_starts)
    got = list(zip(keys[found.starts].tolist(), found.window_starts_us.tolist(), strict=True))
    want = sorted({(k, start) for k, t in events for start, _ in window.instances(t)})
    assert got == want
    assert np.all(np.diff(found.starts) >= 0)
    assert np.all(np.diff(found.ends) >= 0)
    for (key, begin), start, end in zip(got, found.starts, found.ends, strict=True):
        inside = (keys == key) & (slice_starts >= begin) & (slice_starts < begin + window.range_us)
        assert np.flatnonzero(inside).tolist() == list(range(start, end))


def test_even_slices_use_the_table():
    assert isinstance(slices_of([PeriodicWindow(60, 60), PeriodicWindow(90, 30)]), PeriodTable)


def test_ranges_hold_no_more_memory_than_twice_their_own() -> None:
    keys, starts = np.zeros(1_000, np.int64), np.arange(1_000)
    shapes = np.array([(100, 100, 0)], np.int64)
    found = instances_within(keys, starts, shapes, most=1_000)
    assert [column.tolist() for column in found[2:]] == [
        list(range(0, 1_000, 100)),
        list(range(100, 1_001, 100)),
    ]
    assert all((column if column.base is None else column.base).size <= 20 for column in found)
