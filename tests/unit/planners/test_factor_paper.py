"""The figures of Wu et al., "Factor Windows" (arXiv:2008.12379), and the corrections."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from oracles.factor_paper import (
    benefit,
    best_covering_factor,
    best_partitioning_factor,
    covering_candidates,
    insert_factors,
    partitioning_candidates,
    partitioning_pays,
    time_unit_us,
)
from oracles.rate_cost import RateCost
from weft.cost.factor_cost import PaperCost
from weft.errors import UnsupportedError
from weft.planners.factor.graph import feeds
from weft.planners.factor.search import min_cost_graph, search_factors
from weft.window.periodic import PeriodicWindow

ROOT = PeriodicWindow(1, 1)


def tumbling(*ranges: int) -> list[PeriodicWindow]:
    return [PeriodicWindow(r, r) for r in ranges]


def unshared(windows: list[PeriodicWindow], cost: PaperCost | RateCost) -> float:
    return sum(map(cost.from_events, windows))


@pytest.mark.parametrize("relation", ["covered", "tiled"])
def test_example_6_shares_four_tumbling_windows(relation):
    wanted = tumbling(10, 20, 30, 40)
    cost = PaperCost.of(wanted)
    plan = min_cost_graph(wanted, cost, relation, published=True)
    assert (unshared(wanted, cost), plan.cost) == (480, 150)
    assert [plan.feeder[w] for w in wanted] == [None, wanted[0], wanted[0], wanted[1]]
    # The paper says 62.5 %.
    assert 1 - plan.cost / 480 == 0.6875


@pytest.mark.parametrize("relation", ["covered", "tiled"])
def test_example_7_gains_a_factor_window_of_ten(relation):
    wanted = tumbling(20, 30, 40)
    cost = PaperCost.of(wanted)
    assert unshared(wanted, cost) == 360
    assert min_cost_graph(wanted, cost, relation, published=True).cost == 246
    for plan in (
        insert_factors(wanted, cost, relation),
        insert_factors(wanted, cost, relation, as_printed=True),
        search_factors(wanted, cost, relation, published=True),
    ):
        assert (plan.cost, plan.factors) == (150, tuple(tumbling(10)))


def test_example_7_by_keys():
    wanted = tumbling(20, 30, 40)
    ten = tumbling(10)[0]
    figures = []
    for keys in (1, 10, 100):
        cost = RateCost(1.0, keys=keys)
        factor = cost.from_events(ten) + cost.from_feeder(wanted[0], ten)
        factor += cost.from_feeder(wanted[1], ten) + cost.from_feeder(wanted[2], wanted[0])
        plans = (unshared(wanted, cost), min_cost_graph(wanted, cost, "tiled").cost, factor)
        figures.append([round(120 * c, 1) for c in plans])
    assert figures == [[360, 246, 150], [360, 292.7, 329.0], [360, 349.3, 458.7]]


def test_example_8_has_three_candidates_and_keeps_the_longest():
    children = tumbling(20, 30)
    assert partitioning_candidates(ROOT, children) == tuple(tumbling(10, 5, 2))
    assert all(partitioning_pays(f, 1, children, 120) for f in (10, 5))
    cost = PaperCost.of(tumbling(20, 30, 40))
    assert best_partitioning_factor(None, children, cost) == tumbling(10)[0]


def test_coverage_candidates_of_example_7():
    children = tumbling(20, 30)
    cost = PaperCost.of(tumbling(20, 30, 40))
    assert len(list(covering_candidates(ROOT, children))) == 31
    assert best_covering_factor(None, children, cost) == (tumbling(10)[0], 96.0)


def test_the_search_finds_a_factor_that_no_common_divisor_gives():
    wanted = tumbling(6, 10, 15)
    cost = PaperCost.of(wanted)
    assert insert_factors(wanted, cost, "tiled").cost == 90
    plan = search_factors(wanted, cost, "tiled", published=True)
    assert (plan.cost, plan.factors, plan.exact) == (72, tuple(tumbling(5)), True)


def test_algorithm_3_as_printed_loses_against_algorithm_1():
    wanted = tumbling(30, 48, 120, 4)
    cost = PaperCost.of(wanted)
    printed = insert_factors(wanted, cost, "tiled", as_printed=True)
    assert (printed.cost, set(printed.factors)) == (558, set(tumbling(2, 24)))
    assert min_cost_graph(wanted, cost, "tiled", published=True).cost == 548
    assert insert_factors(wanted, cost, "tiled").cost == 548
    assert search_factors(wanted, cost, "tiled", published=True).cost == 548


def test_a_factor_of_hopping_windows_divides_their_slides():
    children = [PeriodicWindow(20, 5), PeriodicWindow(40, 10)]
    assert partitioning_candidates(ROOT, children)[0] == PeriodicWindow(5, 5)


def test_factors_keep_the_phase():
    children = [PeriodicWindow(20, 20, 7), PeriodicWindow(30, 30, 17)]
    candidates = partitioning_candidates(PeriodicWindow(1, 1), children)
    assert candidates[0] == PeriodicWindow(10, 10, 7)
    assert all(f.partitions(child) for f in candidates for child in children)


def test_algorithm_4_agrees_with_the_benefit_it_stands_for():
    children_of_six = [PeriodicWindow(r, s) for r, s in ((12, 6), (12, 12), (24, 6), (36, 12))]
    for parent, factor in ((1, 6), (2, 6), (3, 6), (1, 2), (1, 3)):
        for count in (1, 2, 3):
            for children in combinations(children_of_six, count):
                cost = PaperCost.of(children)
                saved = benefit(*tumbling(factor, parent), children, cost)
                period = cost.period_us
                assert partitioning_pays(factor, parent, children, period) == (saved > 0)
                printed = partitioning_pays(factor, parent, children, period, as_printed=True)
                assert printed == (saved >= 0)


def test_the_longest_partitioning_factor_is_the_best_one():
    # Theorem 9 as printed prefers the shorter one of 10 and 5 here.
    children = tumbling(20, 30)
    cost = PaperCost(60)
    saved = [benefit(f, None, children, cost) for f in partitioning_candidates(ROOT, children)]
    assert saved == sorted(saved, reverse=True)
    assert saved[0] - saved[1] == 84 - 72


def test_paper_relations_have_no_reuse_and_no_overlapping_tiles():
    fine, coarse = PeriodicWindow(10, 2), PeriodicWindow(10, 4)
    assert not feeds("covered", published=True)(fine, coarse)
    assert feeds("covered")(fine, coarse)
    assert feeds("tiled")(fine, coarse)
    assert feeds("reused")(fine, coarse)
    assert not feeds("reused")(PeriodicWindow(5, 5), PeriodicWindow(10, 10))
    assert not any(
        feeds(relation, published=p)(fine, fine)
        for relation, p in product(("covered", "tiled", "reused"), (True, False))
    )


def test_instances_that_do_not_fill_the_period_are_rounded_down():
    # Starts 0 and 4 of a period of 20 leave room for [0, 10), [4, 14), [8, 18).
    assert PaperCost(20).instances(PeriodicWindow(10, 4)) == 3


def test_rate_model_charges_hopping_windows_for_every_overlap():
    hop, two = PeriodicWindow(10, 4), PeriodicWindow(2, 2)
    for rate, alone, shared in ((1.0, 2.5, 2.25), (10.0, 25.0, 11.25)):
        cost = RateCost(rate)
        assert cost.from_events(hop) == alone
        assert cost.from_events(two) + cost.from_feeder(hop, two) == shared


def test_the_unit_of_time_is_the_longest_that_fits():
    minute = 60_000_000
    assert time_unit_us([PeriodicWindow(20 * minute, 30 * minute)]) == minute
    assert time_unit_us([PeriodicWindow(20 * minute, 30 * minute, 1_000_000)]) == 1_000_000
    assert time_unit_us(tumbling(20)) == 1


def test_real_durations_give_the_paper_s_factor():
    minute = 60_000_000
    wanted = tumbling(20 * minute, 30 * minute, 40 * minute)
    cost = PaperCost.of(wanted, events_per_us=1 / minute)
    for relation in ("covered", "tiled"):
        plan = insert_factors(wanted, cost, relation)
        assert plan.factors == tuple(tumbling(10 * minute))
        assert plan.cost == pytest.approx(150)


def test_long_ranges_of_short_slides_stay_tractable():
    second = 1_000_000
    wanted = [PeriodicWindow(d * 86_400 * second, 60 * second) for d in (1, 7, 30)]
    wanted.append(PeriodicWindow(3600 * second, second))
    plan = insert_factors(wanted, PaperCost.of(wanted, 1e-6), "covered")
    assert plan.cost <= min_cost_graph(wanted, PaperCost.of(wanted, 1e-6), "covered").cost


def test_impossible_statistics_are_refused():
    with pytest.raises(UnsupportedError, match="no common period"):
        PaperCost.of(tumbling(*(10**9 + k for k in range(1, 200, 2))))


def test_rows_never_exceed_events():
    cost = RateCost(0.01, keys=50)
    assert cost.rows(PeriodicWindow(10, 10)) == pytest.approx(0.1)
    assert RateCost(1.0).rows(PeriodicWindow(10, 10)) == 1
