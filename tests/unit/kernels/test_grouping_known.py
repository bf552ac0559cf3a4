"""One pass over events with known keys gives what numbering and accumulating them gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.kernels.grouping.batches import Column, Request, slice_events
from weft.kernels.grouping.edges import PeriodTable
from weft.kernels.grouping.known_keys import KnownKeys, fold_known
from weft.kernels.partials import operation_of

LEAST = 5
TABLE = np.array([2, -1, 0, 1], np.int32)  # the codes of 5, 7 and 8; 6 has none
SLICES = PeriodTable.of([(1, 7)])
VALUES = {
    "int64": st.sampled_from([-(2**63), -3, 0, 4, 2**63 - 1]),
    "float64": st.sampled_from([-math.inf, -0.0, 0.0, 2.5, math.inf, math.nan]),
}


def folded(times, keys, values, kind):
    column = Column.of(values)
    operation = operation_of(kind, values.dtype.name)
    known = KnownKeys(keys, LEAST, TABLE, 3)
    bounds_us = (int(times.min()), int(times.max()))
    with np.errstate(over="ignore"):  # distances of keys wrap around, also where not compiled
        return fold_known(known, times, bounds_us, SLICES, column, operation)


@settings(deadline=None, max_examples=60)
@given(given_events=st.data())
@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("key_type", [np.int8, np.int32, np.int64])
def test_one_pass_equals_numbering_and_accumulating(key_type, dtype, kind, given_events):
    event = st.tuples(st.integers(-40, 40), st.sampled_from([5, 7, 8]), VALUES[dtype])
    events = given_events.draw(st.lists(event, min_size=1, max_size=40))
    times, keys, values = (np.array(each) for each in zip(*events, strict=True))
    keys, values = keys.astype(key_type), values.astype(dtype)
    codes = TABLE[keys.astype(np.int64) - LEAST]
    want = slice_events(times, codes, SLICES, [Request(kind, Column.of(values))])
    got = folded(times, keys, values, kind)
    assert got.keys.tolist() == want.keys.tolist()
    assert got.starts_us.tolist() == SLICES.bounds(want.ordinals)[0].tolist()
    np.testing.assert_array_equal(got.totals, want.partials[0].columns)


@pytest.mark.parametrize("new", [4, 6, 9, -(2**63), 2**63 - 1])
def test_a_key_without_a_code_is_noticed(new):
    times, values = np.array([0, 1, 30]), np.array([1.0, 2.0, 3.0])
    assert folded(times, np.array([5, 7, 8]), values, "min") is not None
    assert folded(times, np.array([5, new, 8]), values, "min") is None
    # Even where its value changes nothing.
    assert folded(times, np.array([5, new, new]), np.array([1.0, math.nan, 9.0]), "min") is None


def test_slices_too_far_apart_are_left_to_hashing():
    times = np.array([0, 10**12])
    assert folded(times, np.array([5, 7]), np.array([1.0, 2.0]), "min") is None
