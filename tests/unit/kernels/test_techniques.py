"""Every technique against brute force: sliding, by hand, in both orders, over ranges, by key."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import DataError, UnsupportedError
from weft.kernels.columns import load
from weft.kernels.operations import MAX_INT64, OPERATIONS, SUM_FLOAT64, SUM_INT64
from weft.kernels.registry import IMPLEMENTATIONS, technique
from weft.techniques import INCREMENTAL, TECHNIQUES


def _part(columns, start, stop):
    if isinstance(columns, tuple):
        return tuple(column[start:stop] for column in columns)
    return columns[start:stop]


@pytest.mark.parametrize("n", [*range(1, 18), 1000])
def test_sliding_in_batches_of_any_size_equals_brute_force(case, n, compiled):
    length = 4 * n + 9 if n < 1000 else 2600 if compiled else 1100
    values = case.random(length, seed=n)
    rng = np.random.default_rng(n)
    state, start, answers = case.kernel.new(n), 0, []
    while start < length:
        stop = start + int(rng.integers(1, 3 * n + 2))
        answers += case.partials(case.kernel.slide(_part(values, start, stop), n, state))
        start = stop
    times = range(length) if n < 1000 else [*rng.integers(0, length, 12).tolist(), length - 1]
    want = case.oracle(case.partials(values), n, times)
    assert [answers[t] for t in times] == want


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 16, 17])
def test_insert_before_evict_gives_the_same_answers(case, n):
    partials = case.partials(case.random(4 * n + 3, seed=n))
    state = case.kernel.new(n + 1)
    for t, partial in enumerate(partials):
        state = case.kernel.insert(state, partial)
        if case.kernel.size(state) > n:
            state = case.kernel.evict(state)
        if case.kernel.technique.name == "slick_deque_inv":
            answer = case.kernel.query_last(state, n + 1)
        else:
            answer = case.kernel.query(state)
        assert answer == case.fold(partials[max(0, t - n + 1) : t + 1])


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(st.integers(-6, 8), max_size=40), seed=st.integers(0, 5))
def test_windows_of_changing_size_may_empty_and_refill(case, steps, seed):
    partials = iter(case.partials(case.random(400, seed)))
    state, held = case.kernel.new(64), deque()
    for step in steps:
        for _ in range(step):
            if len(held) < 64:
                held.append(next(partials))
                state = case.kernel.insert(state, held[-1])
        if step < -3:
            leaving = min(-step, len(held))
            state = case.kernel.bulk_evict(state, leaving)
            for _ in range(leaving):
                held.popleft()
        else:
            for _ in range(min(-step, len(held))):
                state = case.kernel.evict(state)
                held.popleft()
        assert case.kernel.size(state) == len(held)
        assert case.kernel.query(state) == case.fold(held)


def _able(member):
    return {name for name, module in IMPLEMENTATIONS.items() if hasattr(module, member)}


def test_any_range_of_the_window_equals_brute_force(case_with_any_range):
    case = case_with_any_range
    fiba = case.kernel.technique.name == "fiba"
    rng = np.random.default_rng(4)
    partials = case.partials(case.random(120))
    state, front = case.kernel.new(32), 0
    for end, partial in enumerate(partials, start=1):
        if end - front > 30 or (end > 3 and rng.random() < 0.3 and end - front > 1):
            state = case.kernel.evict(state)
            front += 1
        state = case.kernel.insert(state, partial)
        for _ in range(4):
            first, stop = sorted(int(x) for x in rng.integers(0, end - front + 1, 2))
            shift = front if fiba else 0  # fiba asks for times, and time is the position here
            got = case.kernel.query_range(state, first + shift, stop + shift)
            assert got == case.fold(partials[front + first : front + stop])


def test_any_suffix_of_the_window_equals_brute_force(case_with_suffixes):
    case = case_with_suffixes
    counts = (13, 1, 5, 8)
    partials = case.partials(case.random(60))
    state = case.kernel.new(13, counts=counts)
    for end, partial in enumerate(partials, start=1):
        if end > 13:
            state = case.kernel.evict(state)
        state = case.kernel.insert(state, partial)
        for count in counts:
            got = case.kernel.query_last(state, count)
            assert got == case.fold(partials[max(end - 13, end - count, 0) : end])


def test_several_ranges_in_one_pass_equal_one_range_each(case_with_several_ranges):
    case = case_with_several_ranges
    counts, values = (3, 17, 1, 8, 17), case.random(80)
    state = case.kernel.new(17, counts=counts)
    parts = [
        case.kernel.slide_ranges(_part(values, start, stop), counts, state)
        for start, stop in ((0, 30), (30, 31), (31, 80))
    ]
    partials = case.partials(values)
    for q, count in enumerate(counts):
        column = [
            load(tuple(f[:, q] for f in part) if isinstance(part, tuple) else part[:, q], i)
            for part in parts
            for i in range(len(part[0] if isinstance(part, tuple) else part))
        ]
        assert column == case.oracle(partials, count, range(80))


@pytest.mark.parametrize("n", [1, 5, 8])
def test_many_keys_in_one_set_of_arrays_equal_one_window_each(case_with_keys, n):
    case = case_with_keys
    keys, values = np.random.default_rng(1).integers(0, 7, 300), case.random(300)
    state = case.kernel.new(n, keys=7)
    got = [
        *case.partials(case.kernel.slide_keyed(keys[:90], _part(values, 0, 90), n, state)),
        *case.partials(case.kernel.slide_keyed(keys[90:], _part(values, 90, 300), n, state)),
    ]
    partials = case.partials(values)
    for key in range(7):
        mine = np.flatnonzero(keys == key)
        own = [partials[i] for i in mine]
        assert [got[i] for i in mine] == case.oracle(own, n, range(len(own)))


def test_snapshot_and_restore_in_the_middle_change_nothing(case):
    values = case.random(90)
    state = case.kernel.new(12)
    case.kernel.slide(_part(values, 0, 41), 12, state)
    restored = case.kernel.restore(case.kernel.snapshot(state))
    assert restored is not state
    for member, twin in zip(state, restored, strict=True):
        pairs = zip(member, twin, strict=True) if isinstance(member, tuple) else ((member, twin),)
        for array, copy in pairs:
            assert array.dtype == copy.dtype
            np.testing.assert_array_equal(array, copy)
    went_on = case.kernel.slide(_part(values, 41, 90), 12, state)
    again = case.kernel.slide(_part(values, 41, 90), 12, restored)
    assert case.partials(went_on) == case.partials(again)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda o: o.name)
@pytest.mark.parametrize("name", INCREMENTAL)
def test_a_technique_runs_an_operation_if_and_only_if_its_laws_hold(name, operation):
    laws = operation.laws
    legal = (laws.invertible or "invertible" not in TECHNIQUES[name].needs) and (
        laws.selective or "selective" not in TECHNIQUES[name].needs
    )
    if legal:
        assert technique(name, operation).operation is operation
    else:
        with pytest.raises(UnsupportedError, match=f"technique {name} cannot run {operation.name}"):
            technique(name, operation)


def test_every_technique_of_the_planner_has_a_kernel():
    assert list(IMPLEMENTATIONS) == list(INCREMENTAL)


def test_several_ranges_are_promised_exactly_where_they_are_answered():
    able = _able("query_last") | _able("query_range")
    assert {name for name in INCREMENTAL if TECHNIQUES[name].several_ranges} == able


def test_requests_that_cannot_be_served_say_why():
    sums, maxima = technique("two_stacks_lite", SUM_INT64), technique("daba", MAX_INT64)
    tree, full = technique("flat_fat", SUM_INT64), sums.insert(sums.new(1), 7)
    refusals = [
        (lambda: technique("magic", SUM_INT64), UnsupportedError, "no technique 'magic'"),
        (lambda: sums.evict(sums.new(4)), DataError, "cannot evict 1 partials: the window holds 0"),
        (lambda: sums.insert(full, 7), DataError, "the window is full: it holds 1 partials"),
        (lambda: sums.slide([1], 0), DataError, "a window of 0 partials cannot slide"),
        (lambda: sums.slide([1], 9, full), DataError, "does not fit: the capacity is 1"),
        (lambda: sums.slide([1], 1, out=np.empty(2)), DataError, "cannot answer into these"),
        (lambda: sums.slide([0.5], 1), DataError, "cannot take float64 values"),
        (lambda: sums.slide_keyed([3], [1], 1, full), DataError, "key codes go from 3 to 3"),
        (lambda: sums.query(full, key=1), DataError, "there is no key 1: the windows are for 1"),
        (lambda: sums.size(full, key=-1), DataError, "there is no key -1"),
        (lambda: sums.new(0), DataError, "a window for 0 partials and 1 keys cannot be made"),
        (lambda: sums.restore(b"zip"), DataError, "not a snapshot of a window"),
        (
            lambda: sums.restore(maxima.snapshot(maxima.new(1))),
            DataError,
            "from a snapshot of daba",
        ),
        (lambda: sums.restore(sums.snapshot(full)[:-8]), DataError, "cut short"),
        (
            lambda: sums.restore(sums.snapshot(full).replace(b'"version": 1', b'"version": 9')),
            DataError,
            "format 9",
        ),
        (lambda: sums.query_last(full, 1), UnsupportedError, "never answers ranges within"),
        (lambda: maxima.slide_keyed([0], [1], 1, None), UnsupportedError, "never slides many keys"),
        (lambda: technique("naive", SUM_INT64).slide_ranges([1], []), DataError, "at least 1"),
        (
            lambda: technique("slick_deque_inv", SUM_INT64).query_last(
                technique("slick_deque_inv", SUM_INT64).new(4, counts=(4, 2)), 3
            ),
            DataError,
            "not made for this range",
        ),
        (lambda: tree.query_range(tree.new(4), 0, 1), DataError, "holds 0 partials, not 0 up to 1"),
        (lambda: tree.query_last(tree.new(4), -1), DataError, "no range of -1 partials"),
        (lambda: tree.evict_before(tree.new(4), 9), UnsupportedError, "never evicts by time"),
        (lambda: OPERATIONS["moments"].as_columns([1.0]), DataError, "takes 3 columns"),
    ]
    for ask, error, words in refusals:
        with pytest.raises(error, match=words) as refusal:
            ask()
        assert refusal.value.hint


def test_a_partial_of_three_fields_slides_like_any_other():
    x = np.random.default_rng(2).normal(size=50)
    lifted = np.ones(50, np.int64), x, np.zeros(50)
    count, mean, deviations = technique("two_stacks_lite", OPERATIONS["moments"]).slide(lifted, 10)
    for t in (0, 9, 10, 37, 49):
        window = x[max(0, t - 9) : t + 1]
        assert count[t] == len(window)
        assert mean[t] == pytest.approx(window.mean(), rel=1e-12)
        assert deviations[t] == pytest.approx(window.var() * len(window), rel=1e-9, abs=1e-15)


def test_integers_given_to_a_float_operation_are_taken_as_floats():
    sums = technique("naive", SUM_FLOAT64)
    assert sums.query(sums.insert(sums.new(2), 3)) == 3.0


def test_answers_can_go_into_columns_that_exist():
    sums, out = technique("two_stacks_lite", SUM_INT64), np.zeros(5, np.int64)
    assert sums.slide([1, 2, 3, 4, 5], 2, out=out) is out
    assert out.tolist() == [1, 3, 5, 7, 9]
