"""The default search: quality against the optimum, speed, and windows of awkward shape."""

from __future__ import annotations

import sys
from itertools import combinations
from random import Random
from time import process_time

import pytest

from oracles.factor_paper import insert_factors
from oracles.rate_cost import RateCost
from weft.cost.factor_cost import PaperCost
from weft.errors import InternalError, QueryError
from weft.generate.workloads import random_windows, sequential_windows
from weft.planners.factor.candidates import divisors, factor_candidates
from weft.planners.factor.exact import branch_and_bound, dual_ascent, solve_milp
from weft.planners.factor.graph import sharing_graph
from weft.planners.factor.local_search import local_search
from weft.planners.factor.search import min_cost_graph, search_factors
from weft.window.periodic import PeriodicWindow

PER_SECOND = 1e-6

untraced = pytest.mark.skipif(
    sys.gettrace() is not None, reason="measuring coverage takes its own time"
)


def window_set(kind: str, size: int, seed: int, *, hopping: bool) -> list[PeriodicWindow]:
    draw = random_windows if kind == "R" else sequential_windows
    return draw(size, seed, tumbling=not hopping)


def costs(windows: list[PeriodicWindow]) -> list[PaperCost | RateCost]:
    """One event per second, which is the unit of time of the drawn windows."""
    return [
        PaperCost.of(windows, PER_SECOND),
        RateCost(PER_SECOND),
        RateCost(PER_SECOND / 2, keys=20, per_operator=PER_SECOND / 100),
    ]


CASES = [
    (kind, hopping, relation)
    for kind in "RS"
    for hopping, relation in ((False, "tiled"), (True, "covered"), (True, "tiled"))
]


def optimum(windows, cost, relation) -> float:
    graph = sharing_graph(windows, factor_candidates(windows, relation), cost, relation)
    return graph.settle(solve_milp(graph))[0]


@pytest.mark.parametrize(("kind", "hopping", "relation"), CASES)
def test_plans_are_close_to_the_optimum(kind, hopping, relation):
    gaps = []
    for number, size in enumerate((5, 5, 5, 10, 10, 10)):
        windows = window_set(kind, size, number, hopping=hopping)
        cost = costs(windows)[number % 3]
        plan = search_factors(windows, cost, relation)
        best = optimum(windows, cost, relation)
        assert plan.cost >= best * (1 - 1e-9)
        if plan.exact:
            assert plan.cost <= best * (1 + 1e-9)
        gaps.append(plan.cost / best - 1)
    assert sum(gaps) / len(gaps) < 0.005


@pytest.mark.soak
@pytest.mark.parametrize("size", [5, 10, 20])
@pytest.mark.parametrize(("kind", "hopping", "relation"), CASES)
def test_plans_of_two_hundred_sets_are_close_to_the_optimum(kind, hopping, relation, size):
    """Proven plans are believed here; the integer program has checked such proofs above."""
    gaps = []
    for number in range(200):
        windows = window_set(kind, size, number, hopping=hopping)
        cost = costs(windows)[number % 3]
        plan = search_factors(windows, cost, relation)
        best = plan.cost if plan.exact else optimum(windows, cost, relation)
        gaps.append(plan.cost / best - 1)
    assert sum(gaps) / len(gaps) < 0.005


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize(("kind", "hopping", "relation"), CASES)
def test_plans_are_never_worse_than_the_paper_s(kind, hopping, relation, published):
    for size in (3, 8, 15):
        windows = window_set(kind, size, 7, hopping=hopping)
        cost = PaperCost.of(windows, PER_SECOND)
        plan = search_factors(windows, cost, relation, published=published)
        assert plan.cost <= sum(map(cost.from_events, windows)) * (1 + 1e-12)
        shared = min_cost_graph(windows, cost, relation, published=published)
        assert plan.cost <= shared.cost * (1 + 1e-12)
        if published:
            assert plan.cost <= insert_factors(windows, cost, relation).cost * (1 + 1e-12)


@pytest.mark.parametrize("ranges", [(6, 10, 15), (20, 30, 40), (12, 18, 20, 30), (30, 48, 120, 4)])
def test_tumbling_optimum_over_all_divisors(ranges):
    """The closure under gcd loses nothing: every set of divisors is tried here."""
    windows = [PeriodicWindow(r, r) for r in ranges]
    cost = PaperCost.of(windows)
    others = sorted({d for r in ranges for d in divisors(r)} - set(ranges))
    factors = [PeriodicWindow(d, d) for d in others]
    best = min(
        min_cost_graph([*windows, *chosen], cost, "tiled", published=True).cost
        for count in range(4)
        for chosen in combinations(factors, count)
    )
    assert search_factors(windows, cost, "tiled", published=True).cost == best


@untraced
@pytest.mark.parametrize(
    ("hopping", "relation", "limit_s"),
    [(False, "tiled", 0.020), (True, "covered", 0.040), (True, "tiled", 0.040)],
)
def test_twenty_windows_are_planned_in_milliseconds(hopping, relation, limit_s):
    spent = []
    for number in range(9):
        windows = window_set("R", 20, number, hopping=hopping)
        cost = costs(windows)[number % 3]
        started = process_time()
        search_factors(windows, cost, relation)
        spent.append(process_time() - started)
    assert sorted(spent)[len(spent) // 2] < limit_s


@untraced
def test_hundreds_of_unrelated_windows_are_planned_in_seconds():
    rng = Random(5)
    windows = [
        PeriodicWindow(s * rng.randint(1, 9), s, rng.randint(0, 3))
        for s in (rng.randint(20, 1000) for _ in range(200))
    ]
    started = process_time()
    search_factors(windows, RateCost(0.1, keys=5), "covered")
    assert process_time() - started < 5


def test_windows_of_different_phase_share_a_factor_that_divides_the_distance():
    windows = [PeriodicWindow(20, 20), PeriodicWindow(20, 20, 4), PeriodicWindow(20, 20, 8)]
    plan = search_factors(windows, RateCost(1.0), "tiled")
    assert plan.factors == (PeriodicWindow(4, 4),)
    assert set(plan.feeder.values()) == {None, PeriodicWindow(4, 4)}


def test_sampling_windows_share_a_factor_with_gaps():
    windows = [PeriodicWindow(5, s) for s in (20, 30, 50, 70, 110, 130, 170)]
    plan = search_factors(windows, RateCost(1.0), "reused")
    assert plan.factors == (PeriodicWindow(5, 10),)
    assert plan.cost == pytest.approx(0.5 + sum(1 / w.slide_us for w in windows))


def test_equal_ranges_are_read_as_they_are_whatever_the_aggregate():
    fine, coarse = PeriodicWindow(10, 4), PeriodicWindow(10, 8)
    for relation in ("reused", "tiled", "covered"):
        plan = min_cost_graph([coarse, fine], RateCost(1.0), relation)
        assert plan.feeder == {fine: None, coarse: fine}


def test_overlapping_factors_serve_long_ranges():
    windows = [PeriodicWindow(40, 5), PeriodicWindow(60, 5)]
    plan = search_factors(windows, RateCost(1.0), "tiled")
    assert plan.factors == (PeriodicWindow(5, 5), PeriodicWindow(20, 5))
    assert plan.cost == pytest.approx(1 + 4 / 5 + 2 / 5 + 3 / 5)


def test_duplicates_count_once_and_plans_repeat():
    windows = window_set("R", 12, 11, hopping=True)
    once = search_factors(windows, RateCost(PER_SECOND), "covered")
    twice = search_factors([*windows, *windows], RateCost(PER_SECOND), "covered")
    assert once == twice
    assert list(once.feeder) == list(twice.feeder)


def test_feeders_come_before_their_readers_and_every_factor_is_read():
    for relation in ("covered", "tiled"):
        windows = window_set("R", 15, 13, hopping=True)
        plan = search_factors(windows, RateCost(PER_SECOND), relation)
        seen: set[PeriodicWindow | None] = {None}
        for window, feeder in plan.feeder.items():
            assert feeder in seen
            seen.add(window)
        assert set(plan.factors) <= set(plan.feeder.values())


def test_more_effort_is_never_worse():
    proven = 0
    for seed in (2, 6, 12):
        windows = window_set("R", 20, seed, hopping=True)
        plans = [
            search_factors(windows, RateCost(PER_SECOND), "covered", effort=effort)
            for effort in ("none", "local", "default", "exact")
        ]
        assert [p.cost for p in plans] == sorted((p.cost for p in plans), reverse=True)
        assert plans[3].exact
        proven += plans[2].exact
    # Where the bounded proof does not get through, the integer program has to.
    assert proven < 3


def test_without_steps_nothing_is_proven():
    windows = window_set("R", 15, 2, hopping=True)
    candidates = factor_candidates(windows, "covered")
    graph = sharing_graph(windows, candidates, RateCost(PER_SECOND), "covered")
    assert branch_and_bound(graph, frozenset(), node_limit=0) == (frozenset(), False)


def test_kicks_never_lose_the_start():
    windows = window_set("R", 20, 6, hopping=True)
    candidates = factor_candidates(windows, "covered")
    graph = sharing_graph(windows, candidates, RateCost(PER_SECOND), "covered")
    start = local_search(graph)
    kicked = local_search(graph, start=start, kicks=10, seed=1)
    assert graph.settle(kicked)[0] <= graph.settle(start)[0]
    assert kicked == local_search(graph, start=start, kicks=10, seed=1)


def test_one_candidate_leaves_nothing_to_kick():
    windows = window_set("R", 4, 5, hopping=False)
    (factor, *_) = factor_candidates(windows, "covered")
    graph = sharing_graph(windows, [factor], RateCost(PER_SECOND), "covered")
    assert len(graph.candidates) == 1
    assert local_search(graph, kicks=3) == local_search(graph)


def test_the_dual_bound_is_below_every_plan():
    for seed in range(4):
        windows = window_set("R", 7, seed, hopping=True)
        candidates = factor_candidates(windows, "covered")
        graph = sharing_graph(windows, candidates, RateCost(PER_SECOND), "covered")
        best = graph.settle(solve_milp(graph))[0]
        assert dual_ascent(graph).value <= best * (1 + 1e-9)
        for factor in graph.candidates:
            with_it = dual_ascent(graph, taken={factor}).value
            without = dual_ascent(graph, banned={factor}).value
            assert min(with_it, without) <= best * (1 + 1e-9)


def test_one_window_alone_reads_events():
    window = PeriodicWindow(10, 10)
    plan = search_factors([window], RateCost(1.0), "tiled")
    assert (plan.feeder, plan.factors, plan.exact) == ({window: None}, (), True)


def test_no_window_is_refused():
    with pytest.raises(QueryError, match="no window"):
        search_factors([], RateCost(1.0), "tiled")


def test_a_price_that_is_no_number_is_our_bug():
    with pytest.raises(InternalError, match="prices TUMBLE 10us at nan"):
        search_factors([PeriodicWindow(10, 10)], RateCost(1.0, per_event=float("nan")), "tiled")
