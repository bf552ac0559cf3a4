from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.edges import composite_edges
from weft.cost.lookups import RangeProfile, flat_fat_lookup, published_flat_fat_lookup
from weft.cost.omega import (
    OMEGA_TECHNIQUES,
    check_omega,
    harmonic,
    overlap_factor,
    running_aggregates,
)
from weft.errors import UnsupportedError
from weft.techniques import TECHNIQUES
from weft.window import PeriodicWindow, edge_classes

TWO = [PeriodicWindow(6, 2), PeriodicWindow(8, 4)]
FOUR = [PeriodicWindow(r, s) for r, s in ((12, 4), (24, 6), (60, 20), (60, 10))]


@pytest.mark.parametrize(
    ("technique", "mode", "want"),
    [
        ("naive", "paper", 5.0),
        ("flat_fit", "paper", 6.0),
        ("flat_fit", "exact", 4.0),  # 1.5 windows close per edge
        ("slick_deque_inv", "paper", 4.0),
        ("slick_deque", "paper", 2 - 2 / 4 + 2 + (1 + 1 / 2 + 1 / 6 + 1 / 24)),
        ("slick_deque", "corrected", 2 - 2 / 4 + 2 + (1 + 1 / 2 + 1 / 3 + 1 / 4)),
        ("slick_deque", "exact", 2 - 2 / 4 + 1.5 + (1 + 1 / 2 + 1 / 3 + 1 / 4)),
        ("prefix_ring", "paper", 3.0),
        ("prefix_ring", "exact", 2.5),
        ("two_stacks", "exact", 6.0),
        ("daba", "paper", 10.0),
        # windows of 3 and of 4 partials
        ("flat_fat", "paper", (1 + 2 / 2) + (1 + 3 / 4)),
        ("flat_fat", "corrected", 2 + 1 + 1.25),
        ("flat_fat", "exact", 2 + 1 + 1.25 / 2),
    ],
)
def test_factor_of_two_windows(technique, mode, want):
    assert overlap_factor(TWO, technique, mode) == pytest.approx(want)


def test_every_technique_with_a_factor_is_a_technique():
    assert set(OMEGA_TECHNIQUES) <= set(TECHNIQUES)


def test_a_given_edge_rate_replaces_the_count():
    assert overlap_factor(TWO, "slick_deque", "exact", rate=1.0) == pytest.approx(
        2 - 2 / 8 + 0.75 + float(harmonic(np.array([8.0]))[0])
    )


def test_running_aggregates_of_uneven_slices():
    assert running_aggregates(FOUR, "paper") == 3
    assert running_aggregates(FOUR) == 6
    assert overlap_factor(FOUR, "slick_deque_inv", "exact") == 12.0
    assert overlap_factor(FOUR, "slick_deque_inv", "corrected") == 6.0


def spans(windows: list[PeriodicWindow]) -> set[int]:
    period, edges = composite_edges(edge_classes(windows, "pairs"))
    reach = 1 + max(w.range_us for w in windows) // period
    marks = [e + k * period for k in range(reach + 1) for e in edges]
    return {
        sum(begin <= mark < begin + w.range_us for mark in marks)
        for w in windows
        for begin in range(w.offset_us, period, w.slide_us)
    }


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.builds(PeriodicWindow, st.integers(1, 40), st.integers(1, 12), st.integers(0, 11)),
        min_size=1,
        max_size=4,
    )
)
def test_running_aggregates_are_the_slice_counts_that_occur(windows):
    assert running_aggregates(windows) == len(spans(windows))


def test_a_period_too_long_to_walk_assumes_two_per_range():
    windows = [PeriodicWindow(10 * s, s) for s in (10_007, 10_009, 10_037)]
    assert running_aggregates(windows) == 6


@settings(deadline=None)
@given(st.integers(1, 3000))
def test_harmonic_numbers(n):
    want = sum(1 / i for i in range(1, n + 1))
    assert float(harmonic(np.array([float(n)]))[0]) == pytest.approx(want, abs=1e-9)


def ordered_lookup(partials: int) -> float:
    k = int(log2(partials))
    return k - 2 + (partials + 1) / 2**k


@settings(deadline=None)
@given(st.integers(1, 5000))
def test_lookup_costs_at_whole_numbers_of_partials(partials):
    at = np.array([float(partials)])
    assert flat_fat_lookup().each(at)[0] == pytest.approx(ordered_lookup(partials))
    if partials > 1:
        k = int(log2(partials))
        want = int(log2(partials - 1)) + (partials - 1) / 2**k
        assert published_flat_fat_lookup().each(at)[0] == pytest.approx(want)


@settings(deadline=None)
@given(
    ranges=st.lists(st.integers(1, 10**6), min_size=1, max_size=20),
    rate=st.floats(1e-4, 1.0),
)
def test_a_profile_adds_up_its_lookups(ranges, rate):
    values = np.array(ranges, dtype=float)
    weights = 1 / values
    for cost in (flat_fat_lookup(), published_flat_fat_lookup()):
        want = float((cost.each(values * rate) * weights).sum())
        halves = [RangeProfile.of(values[i::2], weights[i::2]) for i in (0, 1) if len(values[i::2])]
        got = RangeProfile.union(halves).total(np.array([rate]), cost)[0]
        assert got == pytest.approx(want, rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(st.floats(1, 1e6), st.floats(0, 1e5))
def test_longer_lookups_cost_no_less_than_the_stated_drop(partials, more):
    at = np.array([partials, partials + more])
    for cost in (flat_fat_lookup(), published_flat_fat_lookup()):
        shorter, longer = cost.each(at)
        assert longer >= shorter - cost.largest_drop - 1e-9


def test_unknown_names_are_refused():
    with pytest.raises(UnsupportedError, match="technique fiba has no overlap factor"):
        overlap_factor(TWO, "fiba")
    with pytest.raises(UnsupportedError, match="mode 'guess'"):
        check_omega("naive", "guess")
