"""The batch forms against brute force, their combine counts, and their worked traces."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import InternalError, UnsupportedError
from weft.kernels.columns import load
from weft.kernels.operations import (
    AFFINE_MODULO,
    COUNT,
    MAX_FLOAT64,
    MAX_INT64,
    SUM_INT64,
    counting,
)
from weft.kernels.ranges import van_herk
from weft.kernels.ranges.choice import aggregate_ranges
from weft.kernels.ranges.disjoint_sparse_table import DisjointSparseTable
from weft.kernels.ranges.sliding import slide_within
from weft.kernels.ranges.sparse_table import SparseTable
from weft.kernels.ranges.suffix_scan import suffixes

OPERATIONS = (SUM_INT64, MAX_INT64, AFFINE_MODULO)
STREAM = [6, 1, 5, 2, 8, 3, 7, 4]
WIDTHS = (*range(1, 18), 60 if numba.config.DISABLE_JIT else 1000)


def partials_of(operation, n, seed=0):
    rng = np.random.default_rng(seed)
    if operation is AFFINE_MODULO:
        return rng.integers(1, 2**31 - 1, n), rng.integers(0, 2**31 - 1, n)
    return rng.integers(0, 9, n)  # few values, so that max has ties


def brute(operation, values, start, end):
    """Fold oldest to newest in plain Python, whole numbers of any size."""
    answer = operation.identity
    for i in range(start, end):
        value = load(values, i)
        exact = tuple(map(int, value)) if isinstance(value, tuple) else int(value)
        answer = operation.algebra.combine(answer, exact)
    return answer


def rows_of(columns):
    return (
        list(zip(*(c.tolist() for c in columns), strict=True))
        if isinstance(columns, tuple)
        else columns.tolist()
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@pytest.mark.parametrize("width", WIDTHS)
def test_van_herk_answers_every_full_window(operation, width):
    values = partials_of(operation, 2 * width + 5, width)
    want = [brute(operation, values, i, i + width) for i in range(width + 6)]
    assert rows_of(van_herk.slide(values, width, operation)) == want


def test_van_herk_trace():
    assert van_herk.slide(STREAM, 3, MAX_INT64).tolist() == [6, 5, 8, 8, 8, 7]
    assert van_herk.slide(STREAM, 9, MAX_INT64).tolist() == []
    with pytest.raises(InternalError, match="a window of 0 partials"):
        van_herk.slide(STREAM, 0, MAX_INT64)


@pytest.mark.parametrize("width", [2, 3, 4, 8, 17])
def test_van_herk_combines_three_minus_four_over_w_times_per_answer(width):
    operation, calls = counting(COUNT)
    blocks = 12
    # Whole blocks of answers after the first window; every value is real, none the identity.
    answers = len(van_herk.slide(np.ones(width * (blocks + 1), np.int64), width, operation))
    assert answers == width * blocks + 1
    assert calls[0] == (width - 1) + blocks * (3 * width - 4)
    assert (calls[0] - (width - 1)) / (answers - 1) == 3 - 4 / width


def test_sparse_table_cells_and_combines_of_a_thousand_values():
    operation, calls = counting(MAX_INT64)
    table = SparseTable.of(np.arange(1, 1001), operation)
    assert table.cells.size == 8987
    assert calls[0] == 8987 - 1000
    starts, ends = np.array([0, 5, 3]), np.array([1000, 9, 6])
    assert table.query(starts, ends).tolist() == [1000, 9, 6]
    assert calls[0] == 8987 - 1000 + 2  # a run of exactly 2**k needs no combine


def test_sparse_table_refuses_what_overlap_would_count_twice():
    with pytest.raises(UnsupportedError, match="needs an idempotent combine"):
        SparseTable.of(STREAM, SUM_INT64)


def test_disjoint_sparse_table_combines_once_per_answer():
    operation, calls = counting(COUNT)
    table = DisjointSparseTable.of(np.ones(11, np.int64), operation)
    built = int(calls[0])
    assert table.query(np.array([2]), np.array([7])).tolist() == [5]
    assert calls[0] == built + 1
    assert table.query(np.array([4, 4]), np.array([5, 4])).tolist() == [1, 0]
    assert calls[0] == built + 1


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_tables_answer_every_range(operation, n):
    values = partials_of(operation, n, n)
    pairs = [(s, e) for s in range(n) for e in range(s, n + 1)]
    starts, ends = (np.array(side) for side in zip(*pairs, strict=True))
    want = [brute(operation, values, s, e) for s, e in pairs]
    assert rows_of(DisjointSparseTable.of(values, operation).query(starts, ends)) == want
    if operation.laws.idempotent:
        assert rows_of(SparseTable.of(values, operation).query(starts, ends)) == want
    assert rows_of(aggregate_ranges(values, starts, ends, operation)) == want


def test_suffix_scan_meets_all_ranges_in_one_walk():
    operation, calls = counting(COUNT)
    sizes = np.arange(1, 101)
    out = suffixes(np.ones(500, np.int64), np.array([400, 500]), sizes, operation)
    assert out.tolist() == [sizes.tolist(), sizes.tolist()]
    assert calls[0] == 2 * 99  # the longest minus one, per edge, for a hundred ranges


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_suffix_scan_keeps_order_and_takes_what_there_is(operation):
    values = partials_of(operation, 20)
    ends, sizes = np.array([0, 1, 7, 20]), np.array([5, 0, 1, 30, 5])
    out = suffixes(values, ends, sizes, operation)
    for row, end in enumerate(ends):
        for column, size in enumerate(sizes):
            got = tuple(c[row, column] for c in out) if isinstance(out, tuple) else out[row, column]
            assert got == brute(operation, values, max(0, end - size), end)


def slide_ranges(values, starts, ends, operation):
    scratch = operation.columns(int(np.max(ends - starts, initial=0)))
    return slide_within(operation.as_columns(values), starts, ends, scratch, operation)


@settings(deadline=None, max_examples=60)
@given(
    moves=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30),
    seed=st.integers(0, 5),
)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_sliding_ranges_equal_brute_force(operation, moves, seed):
    steps = np.array(moves or [(0, 0)])
    starts, ends = np.cumsum(steps[:, 0]), np.cumsum(steps[:, 1])
    values = partials_of(operation, int(max(starts[-1], ends[-1])) + 1, seed)
    want = [brute(operation, values, s, e) for s, e in zip(starts, ends, strict=True)]
    assert rows_of(slide_ranges(values, starts, ends, operation)) == want
    assert rows_of(aggregate_ranges(values, starts, ends, operation)) == want


def test_sliding_ranges_combine_at_most_twice_a_value_and_once_an_answer():
    n, width = 2000, 100
    operation, calls = counting(COUNT)
    starts = np.arange(n - width)
    slide_ranges(np.ones(n, np.int64), starts, starts + width, operation)
    assert calls[0] <= 2 * n + starts.size
    # A flip every `width` answers: 3 - 3/n as TwoStacks.
    assert calls[0] / starts.size == pytest.approx(3 - 3 / width, rel=0.02)
    calls[0] = 0
    tumbling = np.arange(0, n, width)
    slide_ranges(np.ones(n, np.int64), tumbling, tumbling + width, operation)
    assert calls[0] == n - tumbling.size


def test_max_of_ranges_takes_nan_for_the_largest():
    values = np.array([1.0, np.nan, 3.0, 2.0])
    starts, ends = np.array([0, 2, 3]), np.array([2, 4, 3])
    assert aggregate_ranges(values, starts, ends, MAX_FLOAT64).tolist() == pytest.approx(
        [np.nan, 3.0, -np.inf], nan_ok=True
    )
