"""Sums over ranges: exact integers, compensated floats, and nothing leaking from outside."""

from __future__ import annotations

import math
from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.aggregates.laws import Laws
from weft.errors import DataError, InternalError, UnsupportedError
from weft.kernels.compensated import COMPENSATED_SUM, rounded
from weft.kernels.operations import (
    BIT_XOR,
    COUNT,
    MAX_INT64,
    MIN_INT64,
    MOMENTS,
    PRODUCT_FLOAT64,
    SUM_FLOAT64,
    SUM_INT64,
)
from weft.kernels.ranges.choice import FEW_VALUES, aggregate_ranges, choose, survey
from weft.kernels.ranges.prefix_sums import BLOCK, IntegerSums, InvertiblePrefixes, RebasedSums

ROWS = 3_000 if numba.config.DISABLE_JIT else 300_000


def random_ranges(n, count, longest, seed=3):
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, n, count)
    return starts, np.minimum(starts + rng.integers(0, longest, count), n)


def assert_near_exact(got, values, starts, ends):
    for answer, start, end in zip(got, starts, ends, strict=True):
        assert answer == pytest.approx(math.fsum(values[start:end]), rel=1e-9, abs=0.0)


@pytest.mark.parametrize("longest", [5, 3 * BLOCK, 5_000])
@pytest.mark.parametrize("sliding", [True, False])
def test_float_sums_survive_a_spike_elsewhere(longest, sliding):
    values = np.full(ROWS, 0.1) + np.random.default_rng(1).random(ROWS) * 1e-3
    values[ROWS // 3] = 1e16
    values[ROWS // 2] = -1e300
    starts, ends = random_ranges(ROWS, 300, longest)
    if sliding:
        starts, ends = np.sort(starts), np.sort(ends)
    got = aggregate_ranges(values, starts, ends, SUM_FLOAT64)
    assert_near_exact(got, values, starts, np.maximum(starts, ends))


@pytest.mark.parametrize("sliding", [True, False])
def test_float_sums_survive_cancellation_inside_the_range(sliding):
    values = np.tile([1e16, 0.25, -1e16, 0.125, 3.0], 200)
    starts = np.arange(0, 900, 5) if sliding else np.arange(0, 900, 5)[::-1].copy()
    ends = starts + 100
    assert_near_exact(aggregate_ranges(values, starts, ends, SUM_FLOAT64), values, starts, ends)


@settings(deadline=None, max_examples=80)
@given(
    values=st.lists(st.floats(-1e16, 1e16, allow_subnormal=False), min_size=1, max_size=150),
    bounds=st.lists(st.tuples(st.integers(0, 150), st.integers(0, 150)), min_size=1, max_size=20),
)
def test_rebased_sums_are_within_the_rounding_of_magnitudes(values, bounds):
    column = np.array(values)
    starts = np.minimum([s for s, _ in bounds], len(values))
    ends = np.minimum([e for _, e in bounds], len(values))
    sums = RebasedSums.of((column, np.zeros(len(values))))
    for got, start, end in zip(rounded(*sums.query(starts, ends)), starts, ends, strict=True):
        taken = column[start:end]
        assert got == pytest.approx(
            math.fsum(taken), rel=1e-15, abs=float(np.abs(taken).sum()) * 2.0**-96
        )


def test_infinities_and_nan_leave_the_window():
    values = np.array([1.0, np.inf, 2.0, -np.inf, 3.0, np.nan, 4.0])
    pairs = [(0, 1), (0, 2), (0, 4), (2, 3), (2, 5), (4, 6), (6, 7)]
    starts, ends = (np.array(side) for side in zip(*pairs, strict=True))
    want = [1.0, math.inf, math.nan, 2.0, -math.inf, math.nan, 4.0]
    with np.errstate(invalid="ignore"):
        got = aggregate_ranges(values, starts, ends, SUM_FLOAT64)
        back = aggregate_ranges(values, starts[::-1], ends[::-1], SUM_FLOAT64)
    assert got.tolist() == pytest.approx(want, nan_ok=True)
    assert back[::-1].tolist() == pytest.approx(want, nan_ok=True)


@settings(deadline=None, max_examples=80)
@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40),
    start=st.integers(0, 40),
    end=st.integers(0, 40),
)
def test_integer_sums_are_exact_or_refused(values, start, end):
    start, end = min(start, len(values)), min(end, len(values))
    want = sum(values[start:end])
    sums = IntegerSums.of(np.array(values, np.int64))
    if -(2**63) <= want < 2**63:
        assert sums.query(np.array([start]), np.array([end])).tolist() == [want]
    else:
        with pytest.raises(DataError, match=f"an integer sum of {want} does not fit 64 bits"):
            sums.query(np.array([start]), np.array([end]))


def test_prefixes_may_pass_64_bits_when_ranges_do_not():
    values = np.full(100, 2**62)
    starts = np.arange(100)
    assert aggregate_ranges(values, starts, starts + 1, SUM_INT64).tolist() == values.tolist()
    with pytest.raises(DataError, match="does not fit 64 bits"):
        aggregate_ranges(values, starts[:99], starts[:99] + 2, SUM_INT64)


def test_an_overflow_inside_any_technique_is_an_error_of_the_data():
    operation = replace(SUM_INT64, laws=Laws(commutative=True))  # not by prefixes, then
    with np.errstate(over="ignore"), pytest.raises(DataError, match="does not fit 64 bits"):
        aggregate_ranges(np.full(4, 2**62), np.array([0]), np.array([2]), operation)


def test_moments_of_ranges_match_numpy():
    rng = np.random.default_rng(2)
    values = rng.normal(1e6, 1.0, 500)
    partials = (np.ones(500, np.int64), values, np.zeros(500))
    for starts in (np.arange(0, 400, 7), np.arange(0, 400, 7)[::-1]):
        ends = starts + 64
        counts, means, m2s = aggregate_ranges(partials, starts, ends, MOMENTS)
        assert (counts == 64).all()
        for i, start in enumerate(starts):
            assert means[i] == pytest.approx(values[start : start + 64].mean(), rel=1e-14)
            assert m2s[i] / 64 == pytest.approx(values[start : start + 64].var(), rel=1e-8)


def test_the_technique_follows_from_laws_and_order():
    far = FEW_VALUES + 2
    few, many = survey(np.array([1, 0]), np.array([2, 3])), survey(np.array([0]), np.array([far]))
    assert choose(few, MIN_INT64) == "one_by_one"
    assert choose(few, COUNT) == "prefix_sums"
    assert choose(many, MIN_INT64) == "sliding_ranges"
    sliding = survey(np.array([0, 1]), np.array([2, far]))
    jumping = survey(np.array([1, 0]), np.array([2, far]))
    assert choose(sliding, SUM_INT64) == choose(jumping, BIT_XOR) == "prefix_sums"
    assert choose(sliding, MAX_INT64) == choose(sliding, COMPENSATED_SUM) == "sliding_ranges"
    assert choose(jumping, COMPENSATED_SUM) == "rebased_sums"
    assert choose(jumping, MIN_INT64) == "sparse_table"
    assert choose(jumping, PRODUCT_FLOAT64) == "disjoint_sparse_table"


def test_empty_ranges_and_no_ranges_are_the_identity():
    nothing = np.empty(0, np.int64)
    assert aggregate_ranges([], nothing, nothing, COUNT).tolist() == []
    zeros = np.zeros(2, np.int64)
    assert aggregate_ranges([], zeros, zeros, SUM_FLOAT64).tolist() == [0.0, 0.0]
    assert aggregate_ranges([5], np.array([1, 0]), np.array([0, 1]), COUNT).tolist() == [0, 5]


def test_a_range_outside_the_partials_is_our_bug():
    with pytest.raises(InternalError, match="outside the 2 partials"):
        aggregate_ranges([1, 2], np.array([0]), np.array([3]), COUNT)
    with pytest.raises(InternalError, match="outside the 2 partials"):
        aggregate_ranges([1, 2], np.array([-1]), np.array([2]), COUNT)


def test_prefixes_refuse_what_cannot_be_inverted():
    with pytest.raises(UnsupportedError, match="need an invertible combine"):
        InvertiblePrefixes.of([1.0], SUM_FLOAT64)


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="ten million steps need compilation")
def test_no_drift_over_ten_million_values():
    n, width = 10_000_000, 1000
    values = np.full(n, 0.1)
    values[5_000_000] = 1e16
    starts = np.concatenate([np.arange(4_999_000, 5_003_000), np.array([n - width])])
    got = aggregate_ranges(values, starts, starts + width, SUM_FLOAT64)
    assert got[-1] == pytest.approx(100.0, rel=1e-9)
    for i in (0, 999, 1000, 1001, 2000, 2001, 3999):
        want = math.fsum(values[starts[i] : starts[i] + width])
        assert got[i] == pytest.approx(want, rel=1e-9)
