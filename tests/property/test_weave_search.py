from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oracles.weave_exact import weave_exact
from weft.planners.weave.groups import WeaveWindows, group_windows
from weft.planners.weave.moves import exact_partition, partition
from weft.planners.weave.search import weave
from weft.planners.weave.trees import TreeModel, Trees

TECHNIQUES = (
    "naive",
    "flat_fat",
    "flat_fit",
    "slick_deque_inv",
    "slick_deque",
    "prefix_ring",
    "two_stacks",
)
MODES = ("paper", "corrected", "exact")

windows = st.lists(
    st.tuples(
        st.integers(1, 60),
        st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 20, 30]),
        st.sampled_from([0, 0, 0, 1, 2, 5]),
    ),
    min_size=1,
    max_size=14,
)
searches = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([0.01, 0.3, 1.0, 20.0]),
        "technique": st.sampled_from(TECHNIQUES),
        "mode": st.sampled_from(MODES),
        "kind": st.sampled_from(["weave", "triweave"]),
    }
)


@settings(deadline=None)
@given(windows=windows, search=searches)
def test_every_window_is_in_one_tree_and_sharing_never_costs_more(windows, search):
    plan = weave(windows, **search)
    assert sorted(i for tree in plan.trees for i in tree) == list(range(len(windows)))
    assert len(plan.trees) == len(plan.edge_rates) == len(plan.omegas)
    assert plan.cost <= min(plan.cost_unshared, plan.cost_one_tree) * (1 + 1e-12)
    assert plan == weave(windows, **search)


@settings(deadline=None, max_examples=50)
@given(windows=st.lists(windows.map(lambda w: w[0]), min_size=1, max_size=7), search=searches)
def test_few_groups_are_woven_at_the_least_cost(windows, search):
    assert weave(windows, **search).cost == weave_exact(windows, **search).cost


@settings(deadline=None, max_examples=50)
@given(
    windows=windows.map(lambda w: w[:9]),
    technique=st.sampled_from(TECHNIQUES),
    mode=st.sampled_from(MODES),
    rate=st.sampled_from([0.05, 0.3, 1.0]),
)
def test_the_search_is_within_five_percent_of_the_optimum(windows, technique, mode, rate):
    trees = Trees.of_groups(
        TreeModel(technique, mode, rate), group_windows(WeaveWindows.of(windows))
    )
    found = float(trees.unite(partition(trees)).costs.sum())
    optimum = float(trees.unite(exact_partition(trees)).costs.sum())
    assert optimum * (1 - 1e-9) <= found <= optimum * 1.05


@settings(deadline=None, max_examples=50)
@given(windows=windows, search=searches, unit=st.sampled_from([7, 1_000_000]))
@example(  # five partials, or a trifle less: the published cost of a lookup jumps there
    windows=[(1, 1, 0), (1, 3, 0), (10, 4, 0)],
    search={"rate": 0.01, "technique": "flat_fat", "mode": "paper", "kind": "weave"},
    unit=7,
)
@example(  # costs are equal but for rounding, which decides the trees that are united first
    windows=[
        *((1, 1, 0), (1, 2, 0), (1, 3, 0), (1, 4, 0), (1, 9, 0)),
        *((1, 12, 0), (2, 2, 0), (3, 12, 0), (20, 12, 0)),
    ],
    search={"rate": 0.01, "technique": "flat_fit", "mode": "paper", "kind": "triweave"},
    unit=7,
)
def test_the_time_unit_does_not_matter(windows, search, unit):
    """Of few windows the best trees are found; of more, trees within a twentieth of the best."""
    scaled = [(r * unit, s * unit, o * unit) for r, s, o in windows]
    plan = weave(windows, **search)
    in_unit = weave(scaled, **{**search, "rate": search["rate"] / unit})
    assert in_unit.cost * unit == pytest.approx(plan.cost, rel=1e-6 if len(windows) <= 7 else 0.05)
