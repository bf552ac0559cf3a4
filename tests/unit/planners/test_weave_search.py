from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from oracles.weave_exact import weave_exact
from weft.cost.edges.divisors import divisors
from weft.cost.edges.rates import edge_rate
from weft.cost.omega import OMEGA_TECHNIQUES, overlap_factor
from weft.errors import QueryError, UnsupportedError
from weft.planners.weave.groups import WeaveWindows, group_windows
from weft.planners.weave.moves import merge_greedily, move_groups, partition
from weft.planners.weave.search import weave
from weft.planners.weave.trees import TreeModel, Trees
from weft.window import PeriodicWindow, edge_classes

TWO = [(6, 2), (8, 4)]
FOUR = [(12, 4), (24, 6), (60, 20), (60, 10)]


def drawn(count: int, slides, overlap: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    chosen = random.choice(np.array(slides), count)
    return np.stack([chosen * random.integers(1, overlap + 1, count), chosen], axis=1)


@pytest.mark.parametrize(
    ("technique", "mode", "unshared", "shared"),
    [
        ("naive", "paper", 4.0, 3.5),
        ("flat_fit", "paper", 4.25, 4.0),
        ("slick_deque_inv", "paper", 3.5, 3.0),
        ("slick_deque", "paper", 4.875, 3.604),
        ("slick_deque", "corrected", 4.958, 3.792),
    ],
)
def test_two_windows_that_weave_perfectly(technique, mode, unshared, shared):
    plan = weave(TWO, 1, technique, mode)
    assert plan.trees == ((0, 1),)
    assert plan.cost_unshared == pytest.approx(unshared, abs=5e-4)
    assert plan.cost == plan.cost_one_tree == pytest.approx(shared, abs=5e-4)


def test_pair_gains_of_four_windows():
    want = {(0, 1): 0.083, (0, 2): 0.4, (0, 3): -0.35, (1, 2): 0.417, (1, 3): -0.067, (2, 3): 0.85}
    for pair, gain in want.items():
        plan = weave([FOUR[i] for i in pair], 1, "naive")
        assert plan.cost_unshared - plan.cost_one_tree == pytest.approx(gain, abs=5e-4)
        assert plan.cost == pytest.approx(min(plan.cost_unshared, plan.cost_one_tree))


@pytest.mark.parametrize(
    ("technique", "mode", "trees", "unshared", "shared"),
    [
        ("naive", "paper", ((0, 1), (2, 3)), 6.1667, 5.2333),
        ("flat_fit", "paper", ((0, 1), (2, 3)), 5.70, 4.60),
        ("slick_deque_inv", "paper", ((0, 1, 2, 3),), 5.1333, 3.20),
        ("slick_deque", "corrected", ((0, 1, 2, 3),), 6.5256, 4.52),
    ],
)
def test_four_windows(technique, mode, trees, unshared, shared):
    for search in (weave, weave_exact):
        plan = search(FOUR, 1, technique, mode)
        assert plan.trees == trees
        assert plan.cost_unshared == pytest.approx(unshared, abs=5e-5)
        assert plan.cost == pytest.approx(shared, abs=5e-5)


def test_the_greedy_search_finds_the_same_trees_in_the_same_order():
    groups = group_windows(WeaveWindows.of(FOUR))
    trees = Trees.of_groups(TreeModel("naive", "paper", 1.0), groups)
    rows = [sorted(groups.members(g)[0] for g in part) for part in merge_greedily(trees)]
    assert sorted(rows) == [[0, 1], [2, 3]]


def test_exact_mode_counts_running_aggregates_of_the_plan():
    plan = weave(FOUR, 1, "slick_deque_inv", "exact")
    assert plan.cost_one_tree == pytest.approx(1 + 12 * 22 / 60)
    assert plan.cost <= plan.cost_one_tree


def test_triweave_pays_the_edges_of_all_for_each_tree():
    plan = weave(FOUR, 1, "naive", kind="triweave")
    all_edges = 22 / 60
    finals = sum(e * o for e, o in zip(plan.edge_rates, plan.omegas, strict=True))
    assert plan.cost == pytest.approx(1 + len(plan.trees) * all_edges + finals)
    assert plan.cost_unshared == pytest.approx(1 + 4 * all_edges + 6.1667 - 4, abs=1e-4)
    assert plan.cost_one_tree == pytest.approx(1 + all_edges + all_edges * 16)


def test_triweave_is_weaveshare_and_one_rate_when_every_unit_is_an_edge():
    windows = [*FOUR, (5, 1)]
    for technique in ("naive", "flat_fit", "slick_deque"):
        woven, tri = weave(windows, 1, technique), weave(windows, 1, technique, kind="triweave")
        assert tri.trees == woven.trees
        assert tri.cost == pytest.approx(woven.cost + 1)


def test_ends_and_offsets_are_edges_of_the_tree():
    windows = [(5, 3, 1), (14, 8, 2), (9, 6, 4)]
    plan = weave(windows, 50, "naive")
    assert plan.trees == ((0, 1, 2),)
    tree = [PeriodicWindow(*w) for w in windows]
    assert plan.edge_rates[0] == pytest.approx(edge_rate(edge_classes(tree, "pairs")))
    assert plan.omegas[0] == pytest.approx(5 / 3 + 14 / 8 + 9 / 6)


def test_windows_are_values_rows_or_arrays():
    values = [PeriodicWindow(r * 1_000_000, s * 1_000_000) for r, s in FOUR]
    in_seconds = weave(FOUR, 1, "flat_fat")
    in_micros = weave(values, 1e-6, "flat_fat")
    assert in_micros.trees == in_seconds.trees == weave(np.array(FOUR), 1, "flat_fat").trees
    assert in_micros.cost == pytest.approx(in_seconds.cost * 1e-6)


@pytest.mark.parametrize("technique", OMEGA_TECHNIQUES)
@pytest.mark.parametrize("mode", ["paper", "corrected", "exact"])
def test_reported_rates_and_factors_are_those_of_the_windows(technique, mode):
    rows = drawn(40, divisors(360), 50, seed=5)
    plan = weave(rows, 1, technique, mode)
    windows = [PeriodicWindow(int(r), int(s)) for r, s in rows]
    assert sorted(i for tree in plan.trees for i in tree) == list(range(40))
    for tree, rate, omega in zip(plan.trees, plan.edge_rates, plan.omegas, strict=True):
        members = [windows[i] for i in tree]
        assert rate == pytest.approx(edge_rate(edge_classes(members, "pairs")))
        assert omega == pytest.approx(overlap_factor(members, technique, mode))
    finals = sum(e * o for e, o in zip(plan.edge_rates, plan.omegas, strict=True))
    assert plan.cost == pytest.approx(len(plan.trees) + finals)
    apart = sum(
        1 + edge_rate(edge_classes([w], "pairs")) * overlap_factor([w], technique, mode)
        for w in windows
    )
    assert plan.cost_unshared == pytest.approx(apart)


def naive_greedy(trees: Trees) -> list[list[int]]:
    parts = [[row] for row in range(len(trees))]
    rounding = 1e-12 * float(trees.costs.sum())
    while True:
        costs = [trees.unite([part]).costs[0] for part in parts]
        gains = {
            (i, j): round(
                (costs[i] + costs[j] - trees.unite([parts[i] + parts[j]]).costs[0]) / rounding
            )
            for i, j in combinations(range(len(parts)), 2)
        }
        best = max(gains, key=lambda pair: (gains[pair], -pair[0], -pair[1]))
        if gains[best] <= 0:
            return parts
        parts[best[0]] += parts.pop(best[1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("technique", ["naive", "flat_fit", "slick_deque", "slick_deque_inv"])
def test_cached_gains_give_the_plan_of_the_naive_greedy(technique, seed):
    rows = drawn(30, divisors(720), 20, seed)
    trees = Trees.of_groups(
        TreeModel(technique, "paper", 1.0), group_windows(WeaveWindows.of(rows))
    )
    assert merge_greedily(trees) == naive_greedy(trees)


@pytest.mark.parametrize(
    ("technique", "mode", "want"),
    [
        ("naive", "paper", 16.0),
        ("flat_fit", "paper", 9.3),
        ("flat_fat", "paper", 12.4),
        ("flat_fat", "corrected", 11.6),
        ("slick_deque_inv", "paper", 8.7),
        ("slick_deque", "paper", 6.0),
        ("slick_deque", "corrected", 5.1),
    ],
)
def test_tree_counts_of_the_published_setting(technique, mode, want):
    counts = [
        len(weave(drawn(100, divisors(1000), 10_000, seed), 1, technique, mode).trees)
        for seed in range(10)
    ]
    assert sum(counts) / 10 == pytest.approx(want, abs=0.7)


def test_many_unrelated_slides_are_searched_by_estimate_and_costed_anew():
    rows = drawn(400, range(20, 400), 100, seed=3)
    plan = weave(rows, 1, "flat_fit")
    assert plan.cost < plan.cost_one_tree
    assert plan.cost < plan.cost_unshared
    assert sorted(i for tree in plan.trees for i in tree) == list(range(400))
    first = [PeriodicWindow(*rows[i].tolist()) for i in plan.trees[0]]
    assert plan.edge_rates[0] == pytest.approx(edge_rate(edge_classes(first, "pairs")))


def test_tabulated_lookups_find_plans_as_good_as_exact_ones(monkeypatch):
    rows = drawn(300, divisors(720_720)[40:140], 1000, seed=1)
    tabulated = weave(rows, 1, "flat_fat", "exact")
    monkeypatch.setattr("weft.planners.weave.lookup_rows._MOST_PROFILED", 1000)
    assert tabulated.cost == pytest.approx(weave(rows, 1, "flat_fat", "exact").cost, rel=0.005)


def test_more_groups_than_pairs_can_be_kept_are_merged_in_chunks(monkeypatch):
    rows = drawn(200, divisors(5040), 20, seed=2)
    whole = weave(rows, 1, "flat_fit")
    monkeypatch.setattr("weft.planners.weave.moves._MOST_ROWS", 16)
    chunked = weave(rows, 1, "flat_fit")
    assert chunked.cost == pytest.approx(whole.cost, rel=0.1)
    monkeypatch.setattr("weft.planners.weave.moves._MOST_ROWS", 2)
    assert weave(rows, 1, "flat_fit").cost <= whole.cost_unshared


def test_too_many_kinds_of_ends_are_grouped_by_slide(monkeypatch):
    random = np.random.default_rng(4)
    rows = np.stack([random.integers(1, 500, 200), random.integers(1, 13, 200)], axis=1)
    fine = len(group_windows(WeaveWindows.of(rows)))
    monkeypatch.setattr("weft.planners.weave.groups._MOST_FINE_GROUPS", 10)
    groups = group_windows(WeaveWindows.of(rows))
    assert len(groups) == 12 < fine
    assert groups.classes[3] == tuple((residue, 4) for residue in range(4))
    plan = weave(rows, 1, "flat_fit")
    assert plan.cost <= min(plan.cost_unshared, plan.cost_one_tree)


def test_sharing_nothing_wins_when_events_are_free():
    plan = weave([(9, 7), (8, 7)], 0, "naive")
    assert plan.trees == ((0,), (1,))
    assert plan.cost == plan.cost_unshared < plan.cost_one_tree


def test_moves_undo_a_greedy_merge():
    rows = drawn(60, divisors(2520), 30, seed=9)
    trees = Trees.of_groups(
        TreeModel("slick_deque", "paper", 0.3), group_windows(WeaveWindows.of(rows))
    )
    greedy, polished = merge_greedily(trees), partition(trees)
    assert trees.unite(polished).costs.sum() < trees.unite(greedy).costs.sum() - 1e-6


def test_moves_end_where_none_saves_anything():
    trees = Trees.of_groups(TreeModel("naive", "paper", 1.0), group_windows(WeaveWindows.of(FOUR)))
    assert move_groups(trees, partition(trees)) is None


def test_what_cannot_be_woven_is_refused():
    with pytest.raises(QueryError, match="shape"):
        weave([], 1, "naive")
    with pytest.raises(QueryError, match="without extent"):
        weave([(0, 2)], 1, "naive")
    with pytest.raises(QueryError, match="no rate"):
        weave(TWO, -1, "naive")
    with pytest.raises(UnsupportedError, match="no such kind"):
        weave(TWO, 1, "naive", kind="braid")


@pytest.mark.slow
def test_a_million_windows_are_woven_in_seconds():
    plan = weave(drawn(1_000_000, divisors(720_720), 10_000, 0), 1, "flat_fit")
    assert sum(map(len, plan.trees)) == 1_000_000
    assert plan.cost < plan.cost_unshared
