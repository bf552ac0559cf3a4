"""Slicing of batches: every kind of partial against plain Python, dense and hashed alike."""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import DataError, InternalError
from weft.kernels.arrow_columns import column_of, times_of, validity
from weft.kernels.compensated import rounded
from weft.kernels.grouping import batches as grouping
from weft.kernels.grouping import dense as grouping_dense
from weft.kernels.grouping.batches import Column, Request, slice_events
from weft.kernels.grouping.edges import PeriodTable
from weft.kernels.grouping.slices import EdgeHorizon
from weft.kernels.operations import COUNT, counting
from weft.kernels.partials import KERNEL_KINDS, OF_DOUBLES, Partials, operation_of
from weft.kernels.ranges.choice import aggregate_ranges

FLOATS = st.one_of(st.floats(-100, 100, width=16), st.sampled_from([math.nan, -0.0, math.inf]))
EVENTS = st.lists(
    st.tuples(
        st.integers(-40, 40),  # time
        st.integers(0, 3),  # key
        st.one_of(st.none(), st.integers(-50, 50)),
        st.one_of(st.none(), FLOATS),
    ),
    max_size=40,
)
SLICES = {
    "even": PeriodTable.of([(1, 7)]),
    "uneven": PeriodTable.of([(0, 8), (6, 8), (1, 5)]),
    "horizon": EdgeHorizon.of([(0, 8), (6, 8), (1, 5)]),
}


@contextmanager
def grouped(dense):
    """Group by position, or let no product of keys and slices be small enough for it."""
    with pytest.MonkeyPatch.context() as limits:
        if not dense:
            limits.setattr(grouping_dense, "DENSE_ALWAYS", 0)
            limits.setattr(grouping_dense, "DENSE_PER_ROW", 0)
        yield


def spark_order(value):
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value + 0)


def column(values):
    filled = [0 if v is None else v for v in values]
    dtype = np.float64 if any(isinstance(v, float) for v in filled) else np.int64
    return Column.of(np.array(filled, dtype), [v is not None for v in values])


def groups_of(events, slices, times):
    ordinals = slices.slice_of(np.array(times, np.int64)).tolist()
    groups = defaultdict(list)
    for row, (event, ordinal) in enumerate(zip(events, ordinals, strict=True)):
        groups[event[1], ordinal].append((row, *event))
    return dict(sorted(groups.items()))


def same(got, want):
    return got == want or (got != got and want != want)


@settings(deadline=None, max_examples=60)
@given(events=EVENTS, threads=st.sampled_from([1, 2]))
@pytest.mark.parametrize("slicing", SLICES)
@pytest.mark.parametrize("dense", [True, False])
def test_slices_of_integers_and_floats(slicing, dense, events, threads):
    slices = SLICES[slicing]
    times = np.array([e[0] for e in events], np.int64)
    keys = np.array([e[1] for e in events], np.int32)
    ints = column([e[2] for e in events])
    floats = Column.of(
        np.array([0.0 if e[3] is None else e[3] for e in events]),
        [e[3] is not None for e in events],
    )
    requests = [
        Request("count_rows"),
        *(Request(kind, ints) for kind in ("count", "sum", "min", "max", "bit_and", "bit_or")),
        *(Request(kind, floats) for kind in ("min", "max", "first", "last")),
        Request("bit_xor", ints),
        Request("min_by", None, floats),
        Request("max_by", None, ints),
    ]
    with grouped(dense):
        batch = slice_events(times, keys, slices, requests, threads=threads)
    want = groups_of(events, slices, times)
    assert list(zip(batch.keys.tolist(), batch.ordinals.tolist(), strict=True)) == list(want)
    for i, rows in enumerate(want.values()):
        check_group(batch, i, rows)


def check_group(batch, i, rows):
    whole = [(t, v) for _, t, _, v, _ in rows if v is not None]
    real = [(t, v) for _, t, _, _, v in rows if v is not None]
    ints = [v for _, v in whole]
    ordered = sorted((spark_order(v), v) for _, v in real)
    in_time = sorted((t, spark_order(v), v) for t, v in real)
    xor = 0
    for v in ints:
        xor ^= v
    least_by = min(
        ((spark_order(v), t, row) for row, t, _, _, v in rows if v is not None), default=None
    )
    most_by = max(((v, t, row) for row, t, _, v, _ in rows if v is not None), default=None)
    want = [
        len(rows),
        len(ints),
        sum(ints) if ints else None,
        min(ints, default=None),
        max(ints, default=None),
        _fold(int.__and__, ints),
        _fold(int.__or__, ints),
        ordered[0][1] if real else None,
        ordered[-1][1] if real else None,
        in_time[0][2] if real else None,
        in_time[-1][2] if real else None,
        xor if ints else None,
        least_by[2] if least_by else None,
        most_by[2] if most_by else None,
    ]
    for partials, expected in zip(batch.partials, want, strict=True):
        columns = partials.columns
        value = (columns[-1] if isinstance(columns, tuple) else columns)[i].item()
        absent = partials.present is not None and not partials.present[i]
        assert absent == (expected is None), partials.kind
        if expected is not None:
            assert same(value, expected), partials.kind


def _fold(combine, values):
    if not values:
        return None
    answer = values[0]
    for value in values[1:]:
        answer = combine(answer, value)
    return answer


def test_sums_moments_and_products_of_floats():
    rng = np.random.default_rng(5)
    n = 600
    times, keys = np.arange(n), rng.integers(0, 3, n)
    values = rng.normal(5.0, 1.0, n)
    values[100], values[101] = 1e16, -1e16
    kinds = ("sum", "moments", "product")
    batch = slice_events(
        times, keys, PeriodTable.of([(0, 200)]), [Request(k, Column.of(values)) for k in kinds]
    )
    sums = rounded(*batch.partials[0].columns)
    counts, means, m2s = batch.partials[1].columns
    for i, (key, ordinal) in enumerate(zip(batch.keys, batch.ordinals, strict=True)):
        taken = values[(keys == key) & (times // 200 == ordinal)]
        assert sums[i] == pytest.approx(math.fsum(taken), rel=1e-9)
        assert counts[i] == taken.size
        assert means[i] == pytest.approx(taken.mean(), rel=1e-9)
        assert m2s[i] == pytest.approx(taken.var() * taken.size, rel=1e-9)
        assert batch.partials[2].columns[i] == pytest.approx(np.prod(taken), rel=1e-9)


def test_float_sums_keep_small_values_beside_a_cancelled_spike():
    values = np.array([1e16, 0.1, 0.2, -1e16, 0.3])
    batch = slice_events(
        np.arange(5),
        np.zeros(5, np.int32),
        PeriodTable.of([(0, 10)]),
        [Request("sum", Column.of(values))],
    )
    assert rounded(*batch.partials[0].columns)[0] == pytest.approx(0.6, rel=1e-15)


def test_booleans_are_the_least_and_the_greatest():
    flags = Column.of(np.array([True, False, True, True]))
    batch = slice_events(
        np.array([0, 1, 10, 11]),
        np.zeros(4, np.int32),
        PeriodTable.of([(0, 10)]),
        [Request("bool_and", flags), Request("bool_or", flags)],
    )
    assert [p.columns.tolist() for p in batch.partials] == [[0, 1], [1, 1]]


def test_an_integer_sum_beyond_64_bits_is_refused_whatever_the_order():
    times, keys = np.zeros(4, np.int64), np.zeros(4, np.int32)
    slices = PeriodTable.of([(0, 1)])
    top = 2**63 - 1
    fits = Column.of(np.array([top, 1, -1, -5]))
    batch = slice_events(times, keys, slices, [Request("sum", fits)])
    assert batch.partials[0].columns.tolist() == [top - 5]
    with pytest.raises(DataError, match=f"an integer sum of {top + 1} does not fit 64 bits"):
        slice_events(times, keys, slices, [Request("sum", Column.of(np.array([top, 1, 0, 0])))])
    hidden = Column.of(np.array([top, top, 1, 1]), [True, False, False, False])
    batch = slice_events(times, keys, slices, [Request("sum", hidden)])
    assert batch.partials[0].columns.tolist() == [top]


def test_events_without_time_are_dropped_and_counted():
    times = np.array([3, 10**17, 4])
    batch = slice_events(
        times,
        np.array([0, 5, 0]),
        PeriodTable.of([(0, 10)]),
        [Request("count_rows"), Request("sum", Column.of([1, 2, 4]))],
        times_valid=np.array([True, False, True]),
    )
    assert batch.dropped == 1
    assert (batch.keys.tolist(), batch.partials[1].columns.tolist()) == ([0], [5])


def test_partials_roll_up_to_windows_and_know_empty_ones():
    operation = operation_of("max", "int64")
    partials = Partials(
        "max", operation, np.array([4, operation.identity, 7]), np.array([True, False, True])
    )
    rolled = partials.over_ranges(np.array([0, 1, 1]), np.array([2, 2, 3]))
    assert rolled.present.tolist() == [True, False, True]
    assert rolled.columns[[0, 2]].tolist() == [4, 7]
    counts = Partials("count_rows", COUNT, np.array([1, 2, 3])).over_ranges(
        np.array([0, 2]), np.array([2, 3])
    )
    assert (counts.columns.tolist(), counts.present) == ([3, 3], None)


def test_first_and_min_by_roll_up_over_slices():
    first = operation_of("first", "float64")
    partials = Partials("first", first, (np.array([5, 9, 12]), np.array([1.0, 2.0, 0.5])))
    times, values = partials.over_ranges(np.array([1, 0]), np.array([3, 2])).columns
    assert (times.tolist(), values.tolist()) == ([9, 5], [2.0, 1.0])
    least = operation_of("min_by", "float64")
    rows = (np.array([2.0, np.nan, 2.0]), np.array([7, 1, 7]), np.array([30, 10, 20]))
    by = Partials("min_by", least, rows).over_ranges(np.array([0, 1]), np.array([3, 2]))
    assert by.columns[2].tolist() == [20, 10]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_the_answer(threads):
    rng = np.random.default_rng(9)
    n = 4000
    times, keys = np.sort(rng.integers(-(10**6), 10**6, n)), rng.integers(0, 4, n)
    requests = [Request("count_rows")] + [
        Request(kind, Column.of(rng.integers(-9, 9, n))) for kind in ("sum", "min", "last")
    ]
    slices = PeriodTable.of([(0, 500_000)])
    want = slice_events(times, keys, slices, requests)
    got = slice_events(times, keys, slices, requests, threads=threads)
    assert got.keys.tolist() == want.keys.tolist()
    for a, b in zip(got.partials, want.partials, strict=True):
        np.testing.assert_array_equal(np.array(a.columns), np.array(b.columns))


def test_far_apart_keys_and_times_are_hashed():
    rng = np.random.default_rng(4)
    keys = rng.integers(-(2**62), 2**62, 3000)
    times = rng.integers(-(2**61), 2**61, 3000)
    keys, times = np.concatenate([keys, keys]), np.concatenate([times, times])
    batch = slice_events(times, keys, PeriodTable.of([(0, 1000)]), [Request("count_rows")])
    pairs = sorted(set(zip(keys.tolist(), (times // 1000).tolist(), strict=True)))
    assert list(zip(batch.keys.tolist(), batch.ordinals.tolist(), strict=True)) == pairs
    assert batch.partials[0].columns.sum() == 6000


def test_slices_of_one_width_at_the_seams():
    width, origin = 3, -(10**15)
    table = PeriodTable.of([(origin, width)])
    times = np.concatenate([np.arange(origin, origin + 300), np.arange(origin, origin + 300)[::-1]])
    batch = slice_events(times, np.zeros(600, np.int32), table, [Request("count_rows")])
    assert batch.partials[0].columns.tolist() == [6] * 100
    assert table.bounds(batch.ordinals)[0].tolist() == list(range(origin, origin + 300, 3))


@pytest.mark.parametrize("width", [49, 2**46])
def test_a_reciprocal_that_misses_by_one_is_corrected(width):
    # 49 * (1/49) < 1 rounds down at the begin of a slice; beyond 2**53 the end rounds up.
    begins = np.arange(200, dtype=np.int64) * width
    times = np.concatenate([begins, begins + width - 1])[::-1]  # each in another slice
    batch = slice_events(
        times, np.zeros(400, np.int32), PeriodTable.of([(0, width)]), [Request("count_rows")]
    )
    assert batch.ordinals.tolist() == list(range(200))
    assert batch.partials[0].columns.tolist() == [2] * 200


def test_picking_operations_count_their_combines():
    for kind in ("first", "last", "min_by", "max_by"):
        operation, calls = counting(operation_of(kind, "float64"))
        rows = tuple(np.ones(4, dtype) for dtype in operation.dtypes)
        aggregate_ranges(rows, np.array([0]), np.array([4]), operation)
        assert calls[0] == 3
        assert operation.algebra.combine(operation.identity, operation.identity) is not None
        assert calls[0] == 3


def test_requests_that_cannot_be_served_are_refused():
    with pytest.raises(InternalError, match="a request for min has not the columns it takes"):
        Request("min")
    with pytest.raises(InternalError, match="count_rows has not the columns"):
        Request("count_rows", Column.of([1]))
    with pytest.raises(InternalError, match="carries int64 without NULLs"):
        Request("min_by", Column.of([1.0]), Column.of([1.0]))
    with pytest.raises(DataError, match="bit_or cannot take float64 values"):
        slice_events(
            np.zeros(1, np.int64), np.zeros(1, np.int32), SLICES["even"],
            [Request("bit_or", Column.of([1.0]))],
        )  # fmt: skip
    with pytest.raises(DataError, match="cannot be aggregated as numbers"):
        Column.of(np.array(["x"]))


def test_every_kind_has_an_operation():
    for kind in KERNEL_KINDS:
        dtype = "float64" if kind in OF_DOUBLES else "int64"
        operation = operation_of(kind, dtype)
        assert operation.algebra.identity == operation.identity


def test_a_batch_too_large_for_group_numbers_is_refused(monkeypatch):
    monkeypatch.setattr(grouping, "MOST_ROWS", 3)
    with pytest.raises(InternalError, match="a batch of 4 rows"):
        slice_events(np.zeros(4, np.int64), np.zeros(4, np.int32), SLICES["even"], [])


def test_arrow_arrays_with_offsets_and_nulls():
    array = pa.array([9.0, None, 1.5, 2.5, None])[1:]
    taken = column_of(array)
    assert taken.valid.tolist() == [False, True, True, False]
    assert taken.values[1:3].tolist() == [1.5, 2.5]
    flags = column_of(pa.array([True, None, False, True])[1:])
    assert (flags.values[1:].tolist(), flags.valid.tolist()) == ([0, 1], [False, True, True])
    assert validity(pa.array([1, 2])) is None
    assert column_of(pa.array([], pa.int32())).values.dtype == np.int64
    times, valid = times_of(pa.array([5, None], pa.timestamp("ms", tz="UTC")))
    assert (times[0], valid.tolist()) == (5000, [True, False])
    assert times_of(pa.array([7], pa.int32()))[0].tolist() == [7]
    with pytest.raises(DataError, match="cannot be aggregated as numbers"):
        column_of(pa.array(["x"]))
    with pytest.raises(DataError, match="cannot be the event time"):
        times_of(pa.array([1.5]))
