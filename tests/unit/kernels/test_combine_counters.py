"""Combines per slide, counted, against the formulas of the planner's table and of the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft.kernels.operations import COUNT, MAX_INT64, counting
from weft.kernels.registry import technique
from weft.techniques import INCREMENTAL, TECHNIQUES

FIFO = [name for name in INCREMENTAL if name not in ("slick_deque", "fiba")]


def _affine(length):
    rng = np.random.default_rng(3)
    return rng.integers(2, 2**31 - 1, length), rng.integers(1, 2**31 - 1, length)


def _counts(kernel, calls, n, slides, order):
    """Count the combines of each of the last `slides` slides, after 4n slides to settle."""
    partials = list(zip(*(c.tolist() for c in _affine(4 * n + slides)), strict=True))
    state, counts = kernel.new(n + 1, counts=(n,)), []
    for partial in partials:
        before = int(calls[0])
        if order == "ei" and kernel.size(state) >= n:
            state = kernel.evict(state)
        state = kernel.insert(state, partial)
        if order == "ie" and kernel.size(state) > n:
            state = kernel.evict(state)
        kernel.query(state)
        counts.append(int(calls[0]) - before)
    return counts[4 * n :]


@pytest.mark.parametrize("n", [2, 4, 8, 16])
@pytest.mark.parametrize("name", [name for name in FIFO if name not in ("flat_fat", "b_int")])
def test_average_combines_equal_the_planners_formula(name, n, counted_affine):
    operation, calls = counted_affine
    counts = _counts(technique(name, operation), calls, n, n * (n + 1), "ei")
    assert sum(counts) / len(counts) == pytest.approx(TECHNIQUES[name].combines_per_slide(n))


@pytest.mark.parametrize("n", [2, 4, 8, 16])
@pytest.mark.parametrize("name", ["flat_fat", "b_int"])
def test_average_combines_of_the_trees_equal_the_planners_formula(name, n, counted_affine):
    operation, calls = counted_affine
    kernel = technique(name, operation)
    state, values = kernel.new(n), _affine(6 * n)
    kernel.slide(tuple(c[: 2 * n] for c in values), n, state)
    calls[0] = 0
    kernel.slide(tuple(c[2 * n :] for c in values), n, state)
    assert calls[0] / (4 * n) == pytest.approx(TECHNIQUES[name].combines_per_slide(n))


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("name", ["two_stacks", "two_stacks_lite"])
def test_two_stacks_in_the_other_order_and_on_the_worst_slide(name, n, counted_affine):
    operation, calls = counted_affine
    kernel = technique(name, operation)
    evict_first = _counts(kernel, calls, n, 4 * n, "ei")
    insert_first = _counts(kernel, calls, n, 4 * (n + 1), "ie")
    assert sum(evict_first) / len(evict_first) == pytest.approx(3 - 3 / n)
    assert max(evict_first) == n
    assert sum(insert_first) / len(insert_first) == pytest.approx((3 * n - 1) / (n + 1))
    assert max(insert_first) == n + 1


@pytest.mark.parametrize("n", [4, 7, 8, 9])
@pytest.mark.parametrize(
    ("name", "most", "base", "less"), [("daba", 8, 5, 8), ("daba_lite", 6, 4, 6)]
)
def test_no_slide_of_daba_is_slow(name, most, base, less, n, counted_affine):
    operation, calls = counted_affine
    kernel = technique(name, operation)
    even = n + n % 2
    for order in ("ei", "ie"):
        counts = _counts(kernel, calls, n, 2 * n * (n + 1), order)
        assert max(counts) <= most
        average = sum(counts) / len(counts)
        if n % 2 == 0 or order == "ie":
            assert average == pytest.approx(base - less / even)
        else:
            assert base - less / even <= average <= base - less / even + 0.11


@pytest.mark.parametrize("name", ["two_stacks_lite", "daba_lite", "subtract_on_evict"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_the_batch_loops_combine_exactly_as_often_as_single_steps(name, n, counted_affine):
    operation, calls = counted_affine
    kernel, values = technique(name, operation), _affine(10 * n + 5)
    kernel.slide(values, n)
    in_batch, calls[0] = int(calls[0]), 0
    state = kernel.new(n)
    for partial in zip(*(c.tolist() for c in values), strict=True):
        if kernel.size(state) >= n:
            state = kernel.evict(state)
        state = kernel.insert(state, partial)
        kernel.query(state)
    assert in_batch == calls[0]


@pytest.mark.parametrize("n", [2, 4, 7, 16])
def test_flat_fit_has_one_reset_slide_in_each_cycle(n, counted_affine):
    operation, calls = counted_affine
    counts = _counts(technique("flat_fit", operation), calls, n, 3 * (n + 1), "ei")
    assert sum(counts) == 9 * (n - 1)
    assert max(counts) == n - 1
    assert n < 3 or counts.count(n - 1) == 3 or n - 1 <= 2


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_trees_update_and_answer_within_log2_n(k, counted_affine):
    operation, calls = counted_affine
    n = 2**k
    for name in ("flat_fat", "b_int"):
        kernel = technique(name, operation)
        counts, state = [], kernel.new(n)
        first, second = _affine(3 * n)
        kernel.slide((first[:n], second[:n]), n, state)
        for t in range(n, 3 * n):
            before = int(calls[0])
            kernel.slide((first[t : t + 1], second[t : t + 1]), n, state)
            counts.append(int(calls[0]) - before)
        assert max(counts) <= 2 * k


def test_flat_fat_answers_a_commutative_operation_from_its_root():
    operation, calls = counting(COUNT)
    kernel = technique("flat_fat", operation)
    state = kernel.new(16)
    kernel.slide(np.arange(1, 40), 16, state)
    calls[0] = 0
    assert kernel.query(state) == sum(range(24, 40))
    assert calls[0] == 0
    kernel.slide(np.arange(1, 17), 16, state)
    assert calls[0] == 16 * 4  # update only: log2(16) each


@pytest.mark.parametrize(
    ("count", "average"), [(2, 0.5), (3, 1.0), (4, 1.25), (5, 1.5), (7, 2.0), (8, 2.125)]
)
def test_flat_fat_combines_per_range_averaged_over_all_positions(count, average, counted_affine):
    operation, calls = counted_affine
    kernel = technique("flat_fat", operation)
    state, spent = kernel.new(8), 0
    first, second = _affine(16)
    kernel.slide((first[:8], second[:8]), 8, state)
    for t in range(8, 16):
        kernel.slide((first[t : t + 1], second[t : t + 1]), 8, state)
        before = int(calls[0])
        kernel.query_last(state, count)
        spent += int(calls[0]) - before
    k = count.bit_length() - 1
    assert spent / 8 == average == k - 2 + (count + 1) / 2**k


def test_b_int_updates_cost_less_than_one_combine(counted_affine):
    operation, calls = counted_affine
    kernel = technique("b_int", operation)
    state = kernel.new(16)
    first, second = _affine(64)
    for partial in zip(first.tolist(), second.tolist(), strict=True):
        if kernel.size(state) == 16:
            state = kernel.evict(state)
        state = kernel.insert(state, partial)
    assert calls[0] == 64 * (1 - 1 / 16)


def test_several_ranges_cost_what_their_techniques_promise(counted_affine):
    operation, calls = counted_affine
    spent, counts = {}, (16, 9, 4, 2)
    for name in ("prefix_ring", "slick_deque_inv", "naive"):
        kernel = technique(name, operation)
        state, values = kernel.new(16, counts=counts), _affine(96)
        kernel.slide_ranges(tuple(c[:32] for c in values), counts, state)
        calls[0] = 0
        kernel.slide_ranges(tuple(c[32:] for c in values), counts, state)
        spent[name] = calls[0] / 64
    assert spent == {
        "prefix_ring": 1 + len(counts),
        "slick_deque_inv": 2 * len(counts),
        "naive": sum(count - 1 for count in counts),
    }


@pytest.mark.parametrize("n", [4, 8, 64])
def test_slick_deque_compares_less_than_twice_and_keeps_a_harmonic_number(n, compiled):
    operation, calls = counting(MAX_INT64)
    kernel = technique("slick_deque", operation)
    slides = 200_000 if compiled else 20_000
    state = kernel.new(n)
    values = np.random.default_rng(n).integers(1, 2**62, slides)
    lengths = []
    for start in range(0, slides, 100):
        kernel.slide(values[start : start + 100], n, state)
        lengths.append(int(state.at[0, 3] - state.at[0, 2]))
    assert calls[0] / slides == pytest.approx(2 - 2 / n, abs=0.02)
    harmonic = math.fsum(1 / i for i in range(1, n + 1))
    assert np.mean(lengths) == pytest.approx(harmonic, rel=0.03 if compiled else 0.15)


def test_slick_deque_compares_with_all_it_keeps_on_its_worst_slide():
    operation, calls = counting(MAX_INT64)
    kernel = technique("slick_deque", operation)
    state = kernel.new(8)
    kernel.slide([90, 80, 70, 60, 50, 40, 30], 8, state)
    calls[0] = 0
    kernel.slide([99], 8, state)
    assert calls[0] == 7


def test_fiba_costs_about_twelve_combines_in_order_and_more_the_later_data_come(
    counted_affine, compiled
):
    operation, calls = counted_affine
    kernel = technique("fiba", operation)
    window, slides = (1024, 6000) if compiled else (256, 1200)
    first, second = _affine(window + slides)
    rng, spent = np.random.default_rng(0), {}
    for disorder in (0, 16, 256):
        times = np.argsort(np.arange(window + slides) + rng.integers(0, disorder + 1, len(first)))
        state = kernel.new(window + 1)
        for i, time in enumerate(times.tolist()):
            state = kernel.insert_at(state, time, (int(first[i]), int(second[i])))
            if i == window:
                calls[0] = 0
            if i >= window:
                state = kernel.evict(state)
                kernel.query(state)
        spent[disorder] = calls[0] / slides
    assert spent[0] == pytest.approx(TECHNIQUES["fiba"].combines_per_slide(window), abs=1)
    assert spent[0] < spent[16] < spent[256] < 3 * spent[0]


def test_partials_kept_are_what_the_planner_counts():
    for name in (
        "naive",
        "two_stacks",
        "two_stacks_lite",
        "daba",
        "daba_lite",
        "flat_fat",
        "b_int",
    ):
        operation = MAX_INT64
        state = technique(name, operation).new(64)
        cells = sum(member.size for member in state[:-1])  # `at` holds positions, not partials
        assert cells == TECHNIQUES[name].partials_stored(64)
