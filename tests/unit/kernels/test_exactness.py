"""Numbers: float sums that do not drift, integers that do not wrap, NaN, and what stays on disk."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from weft.errors import DataError
from weft.kernels.operations import (
    MAX_FLOAT64,
    MIN_FLOAT64,
    OPERATIONS,
    PRODUCT_FLOAT64,
    SUM_FLOAT64,
    SUM_INT64,
)
from weft.kernels.registry import technique
from weft.kernels.techniques.subtract_on_evict import slide_drifting
from weft.techniques import INCREMENTAL, TECHNIQUES

KERNELS = {name: TECHNIQUES[name] for name in INCREMENTAL}

COMPILED = not numba.config.DISABLE_JIT
# The code of a technique is the same for every operation; compiled, a few stand for all.
SUMMING = (
    ["two_stacks_lite", "daba_lite", "flat_fat"]
    if COMPILED
    else [name for name, t in KERNELS.items() if not SUM_FLOAT64.laws.missing(t.needs)]
)


def _spiked(length):
    values = np.random.default_rng(8).random(length)
    values[length // 3] = 1e16
    values[length // 3 + 5000 :: 7] = 0.1
    return values


@pytest.mark.parametrize("name", SUMMING)
def test_float_sums_stay_within_1e_9_of_exact_sums_after_a_spike(name):
    length, n = (10_000_000, 1000) if COMPILED and name != "flat_fat" else (20_000, 64)
    values = _spiked(length)
    answers = technique(name, SUM_FLOAT64).slide(values, n)
    rng, spike = np.random.default_rng(9), length // 3
    near = np.arange(spike - 2, spike + n + 3, max(n // 50, 1))
    for t in (*near, *rng.integers(0, length, 200), spike + n, length - 1):
        exact = math.fsum(values[max(0, t - n + 1) : t + 1])
        assert answers[t] == pytest.approx(exact, rel=1e-9)


def test_running_subtraction_over_floats_is_wrong_after_a_spike():
    values, n = np.full(400, 0.1), 50
    values[120] = 1e16
    answers = np.empty(400)
    slide_drifting(values, n, answers)
    assert answers[119] == pytest.approx(5.0)
    assert answers[171] != pytest.approx(5.0, rel=1e-3)  # the spike has left, its rounding has not
    assert answers[201:] == pytest.approx(np.full(199, 5.0))  # built anew: correct again


@pytest.mark.parametrize("n", [1, 3, 64, 1000])
def test_running_subtraction_agrees_with_exact_sums_on_gentle_values(n):
    values = np.random.default_rng(n).random(2500)
    answers = np.empty(2500)
    slide_drifting(values, n, answers)
    for t in (0, n - 1, n, 2 * n, 2499):
        if t < 2500:
            exact = math.fsum(values[max(0, t - n + 1) : t + 1])
            assert answers[t] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, entry in KERNELS.items()
        if not SUM_INT64.laws.missing(entry.needs) and not (COMPILED and name == "fiba")
    ],
)
def test_an_integer_sum_that_leaves_64_bits_is_an_error(name):
    sums = technique(name, SUM_INT64)
    big = 2**62
    assert sums.slide([big, big - 1, -big, big], 2).tolist() == [big, 2 * big - 1, -1, 0]
    for value in (big, -big - 1):
        with pytest.raises(DataError, match="sum_int64 overflows"):
            sums.slide([value, value], 2)


def test_a_prefix_ring_outlives_the_sum_of_its_stream():
    values = np.full(100, 2**61)
    answers = technique("prefix_ring", SUM_INT64).slide(values, 3)
    assert answers.tolist() == [2**61, 2**62, *[3 * 2**61] * 98]
    negative = technique("prefix_ring", SUM_INT64).slide(-values, 4)
    assert negative.tolist()[3:] == [-(2**63)] * 97


def _spark_key(value):
    return (1, 0.0) if math.isnan(value) else (0, value)


@pytest.mark.parametrize("name", ["two_stacks_lite", "slick_deque"])
@pytest.mark.parametrize(("operation", "pick"), [(MAX_FLOAT64, max), (MIN_FLOAT64, min)])
def test_nan_is_larger_than_any_number(name, operation, pick):
    rng = np.random.default_rng(3)
    values = rng.integers(-3, 4, 300).astype(float)
    values[rng.random(300) < 0.3] = np.nan
    values[rng.random(300) < 0.05] = np.inf
    values[100:110] = np.nan
    for n in (1, 2, 5, 9):
        answers = technique(name, operation).slide(values, n)
        want = [pick(values[max(0, t - n + 1) : t + 1], key=_spark_key) for t in range(300)]
        np.testing.assert_array_equal(answers, want)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda o: o.name)
def test_the_identity_is_neutral_and_laws_hold(operation):
    op, rng = operation.algebra, np.random.default_rng(1)

    def draw():
        fields = [
            int(rng.integers(1, 1000)) if dtype == "int64" else float(rng.integers(-8, 9))
            for dtype in operation.dtypes
        ]
        return fields[0] if len(fields) == 1 else tuple(fields)

    for _ in range(50):
        a, b, c = draw(), draw(), draw()
        assert op.same(op.combine(op.identity, a), a)
        assert op.same(op.combine(a, op.identity), a)
        left, right = op.combine(op.combine(a, b), c), op.combine(a, op.combine(b, c))
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)
        if operation.laws.commutative:
            np.testing.assert_allclose(op.combine(a, b), op.combine(b, a), rtol=1e-12, atol=1e-12)
        if operation.laws.idempotent:
            assert op.same(op.combine(a, a), a)
        if operation.laws.selective:
            assert op.same(op.combine(a, b), a) or op.same(op.combine(a, b), b)
        if operation.laws.invertible:
            assert op.same(op.inverse(op.combine(b, a), b), a)
        assert operation.laws.invertible == hasattr(op, "inverse")
        assert operation.laws.invertible == (operation.prefix_algebra is not None)


def test_infinities_and_zeros_leave_a_product_when_they_leave_the_window():
    values = np.array([2.0, 0.0, 3.0, np.inf, 2.0, 2.0])
    products = technique("two_stacks_lite", PRODUCT_FLOAT64).slide(values, 2)
    np.testing.assert_array_equal(products, [2.0, 0.0, 0.0, np.inf, np.inf, 4.0])


_SECOND_PROCESS = """
import numpy as np
from weft.kernels.techniques import naive
from weft.kernels.operations import MAX_FLOAT64
from weft.kernels.registry import technique
technique("naive", MAX_FLOAT64).slide(np.arange(9.0), 4)
stats = naive.slide.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled, so nothing is cached")
def test_a_second_process_compiles_nothing(tmp_path):
    def run():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", _SECOND_PROCESS]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    assert run().stdout.split() == ["0", "1"]
    assert run().stdout.split() == ["1", "0"]
