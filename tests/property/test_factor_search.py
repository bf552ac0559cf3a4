"""Any set of periodic windows: legal plans, right answers, no plan below the proven optimum."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.factor_paper import insert_factors
from oracles.rate_cost import RateCost
from weft.cost.factor_cost import PaperCost
from weft.planners.factor.candidates import factor_candidates
from weft.planners.factor.exact import solve_milp
from weft.planners.factor.graph import feeds, legal_arcs, sharing_graph
from weft.planners.factor.search import min_cost_graph, search_factors
from weft.window.periodic import PeriodicWindow

RELATIONS = ("covered", "tiled", "reused")

windows = st.builds(
    PeriodicWindow, st.integers(1, 24), st.integers(1, 12), st.integers(0, 11)
) | st.integers(1, 24).map(lambda r: PeriodicWindow(r, r))
window_sets = st.lists(windows, min_size=1, max_size=7, unique=True)
rate_costs = st.builds(
    RateCost,
    st.sampled_from([0.1, 1.0, 10.0]),
    keys=st.sampled_from([1, 3, 50]),
    per_operator=st.sampled_from([0.0, 0.05]),
)


@settings(deadline=None)
@given(window_sets, st.sampled_from(RELATIONS), st.booleans())
def test_arcs_are_exactly_the_legal_ones(wanted, relation, published):
    if relation == "reused":
        published = False
    test = feeds(relation, published=published)
    arcs = legal_arcs(wanted, relation, published=published)
    for v, window in enumerate(wanted):
        assert arcs[v] == [p for p, feeder in enumerate(wanted) if test(feeder, window)]


@settings(deadline=None)
@given(window_sets, rate_costs, st.sampled_from(RELATIONS))
def test_plans_are_legal_priced_right_and_never_worse_than_unshared(wanted, cost, relation):
    plan = search_factors(wanted, cost, relation)
    assert set(plan.feeder) == {*wanted, *plan.factors}
    assert not set(wanted) & set(plan.factors)
    may_feed = feeds(relation)
    total = 0.0
    for window, feeder in plan.feeder.items():
        assert feeder is None or may_feed(feeder, window)
        total += cost.from_events(window) if feeder is None else cost.from_feeder(window, feeder)
    assert plan.cost == pytest.approx(total)
    assert plan.cost <= min_cost_graph(wanted, cost, relation).cost * (1 + 1e-12)
    assert plan.cost <= sum(map(cost.from_events, wanted)) * (1 + 1e-12)


@settings(deadline=None, max_examples=60)
@given(window_sets, rate_costs, st.sampled_from(RELATIONS))
def test_a_proven_plan_is_the_optimum_of_the_integer_program(wanted, cost, relation):
    plan = search_factors(wanted, cost, relation)
    graph = sharing_graph(wanted, factor_candidates(wanted, relation), cost, relation)
    best = graph.settle(solve_milp(graph))[0]
    assert plan.cost >= best * (1 - 1e-9)
    if plan.exact:
        assert plan.cost <= best * (1 + 1e-9)


@settings(deadline=None)
@given(window_sets, rate_costs, st.sampled_from(RELATIONS))
def test_every_instance_is_made_of_the_events_it_holds(wanted, cost, relation):
    """Ticks stand for events; side by side each occurs once, overlapping at least once."""
    plan = search_factors(wanted, cost, relation)

    @cache
    def ticks(window: PeriodicWindow, start: int) -> tuple[int, ...]:
        assert (start - window.offset_us) % window.slide_us == 0
        feeder = plan.feeder[window]
        if feeder is None:
            return tuple(range(start, start + window.range_us))
        count, distance = window.reads(feeder)
        starts = range(start, start + count * distance, distance)
        return tuple(t for s in starts for t in ticks(feeder, s))

    for window in wanted:
        for m in (-3, 0, 1, 2, 7):
            start = window.offset_us + m * window.slide_us
            got = ticks(window, start)
            want = list(range(start, start + window.range_us))
            assert (sorted(set(got)) if relation == "covered" else list(got)) == want


@settings(deadline=None)
@given(window_sets, st.sampled_from(["covered", "tiled"]))
def test_corrected_algorithm_3_is_legal_and_never_worse_than_algorithm_1(wanted, relation):
    cost = PaperCost.of(wanted)
    inserted = insert_factors(wanted, cost, relation)
    assert inserted.cost <= min_cost_graph(wanted, cost, relation, published=True).cost
    may_feed = feeds(relation, published=True)
    for window, feeder in inserted.feeder.items():
        assert feeder is None or may_feed(feeder, window)
