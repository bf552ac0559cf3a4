from __future__ import annotations

from statistics import mean

import pytest

from weft.errors import QueryError
from weft.generate.workloads import (
    SECOND_US,
    WeaveSetting,
    random_windows,
    sequential_windows,
    subsumption_windows,
    weave_experiment,
)


def test_slides_divide_the_largest_and_ranges_are_multiples_within_the_overlap():
    setting = WeaveSetting(queries=500, slide_max=720, overlap_max=9)
    windows = setting.windows(seed=1)
    assert len(windows) == 500
    assert all(720 * SECOND_US % w.slide_us == 0 and w.range_us % w.slide_us == 0 for w in windows)
    assert {w.range_us // w.slide_us for w in windows} == set(range(1, 10))
    assert windows == setting.windows(seed=1) != setting.windows(seed=2)


def test_skew_favours_large_slides_above_zero_and_small_ones_below():
    def mean_slide(skew: float) -> float:
        return mean(w.slide_us for w in WeaveSetting(queries=4000, skew=skew).windows(seed=0))

    assert mean_slide(-1) < mean_slide(0) < mean_slide(1)


def test_experiments_vary_one_parameter_around_the_same_middle():
    assert [len(weave_experiment(n)) for n in range(1, 6)] == [5] * 5
    assert all(WeaveSetting() in weave_experiment(n) for n in range(1, 6))
    assert [s.slide_max for s in weave_experiment(2)] == [10, 100, 1000, 10_000, 100_000]
    assert [s.overlap_max for s in weave_experiment(3)] == [100, 1000, 10_000, 100_000, 1_000_000]
    assert [s.rate for s in weave_experiment(4)] == [0.01, 0.1, 1.0, 10.0, 100.0]
    with pytest.raises(QueryError, match="no weave experiment 6"):
        weave_experiment(6)


@pytest.mark.parametrize("count", [5, 10, 20])
def test_random_sets_have_distinct_windows_of_the_published_shape(count):
    for seed in range(20):
        tumbling = random_windows(count, seed, tumbling=True)
        assert len(set(tumbling)) == count
        for window in tumbling:
            range_s = window.range_us // SECOND_US
            assert window.is_tumbling
            assert any(range_s % base == 0 and 2 <= range_s // base <= 50 for base in (2, 5, 10))
        assert all(
            w.range_us == 2 * w.slide_us for w in random_windows(count, seed, tumbling=False)
        )


def test_sequential_sets_are_consecutive_multiples():
    bases = set()
    for seed in range(20):
        windows = sequential_windows(6, seed, tumbling=True)
        base = windows[0].range_us // 2
        bases.add(base // SECOND_US)
        assert [w.range_us for w in windows] == [base * n for n in range(2, 8)]
    assert bases == {2, 5, 10}
    with pytest.raises(QueryError, match="cannot draw a set of 50 windows: there are 49"):
        sequential_windows(50, 0, tumbling=True)


@pytest.mark.parametrize(("kind", "slide_max"), [("smooth", 10), ("medium", 20), ("abrupt", 30)])
@pytest.mark.parametrize("whole_slides", [False, True])
def test_subsumption_classes_bound_the_slide(kind, slide_max, whole_slides):
    windows = subsumption_windows(kind, 2000, seed=0, whole_slides=whole_slides)
    assert len(windows) == 2000
    assert max(w.slide_us for w in windows) == slide_max * SECOND_US
    assert all(w.slide_us < w.range_us <= 60 * SECOND_US for w in windows)
    assert all(w.range_us % w.slide_us == 0 for w in windows) == whole_slides


def test_unknown_subsumption_class_is_refused():
    with pytest.raises(QueryError, match="no window class 'bumpy'"):
        subsumption_windows("bumpy", 1, seed=0)
