"""The published numbers of early aggregation, to the digit, and what was corrected in them."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.cost.joins.tuples import (
    ExpectedEstimates,
    Method,
    PaperEstimates,
    Placement,
    SideLoad,
    TupleCost,
    placement_name,
    placements,
)

DEFAULT = (SideLoad(300, 5000, 150, 10), SideLoad(300, 5000, 1, 10))
THREE = (SideLoad(200, 300, 20, 10), SideLoad(200, 300, 1, 10), SideLoad(200, 300, 1, 10))


def prices(loads: tuple[SideLoad, ...], method: Method) -> dict[str, float]:
    model = TupleCost(PaperEstimates(loads), method=method)
    return {placement_name(p): model.cost(p) for p in placements(len(loads))}


def test_two_way_nested_loop_default_setting() -> None:
    assert prices(DEFAULT, "nested loop") == {
        "LAP": 6_601_200,
        "EAP10": 4_381_200,
        "EAP01": 3_308_400,
        "EAP11": 1_088_400,
    }


def test_two_way_hash_default_setting() -> None:
    assert prices(DEFAULT, "hash") == {
        "LAP": 1_201_200,
        "EAP10": 871_200,
        "EAP01": 603_000,
        "EAP11": 273_000,
    }


def test_three_way_nested_loop_default_setting() -> None:
    assert prices(THREE, "nested loop") == {
        "LAP": 12_241_200,
        "EAP001": 4_353_600,
        "EAP010": 4_353_600,
        "EAP011": 282_400,
        "EAP100": 9_529_200,
        "EAP101": 2_957_600,
        "EAP110": 2_957_600,
        "EAP111": 202_400,
    }


def test_many_groups_on_one_input_leave_it_late() -> None:
    loads = (SideLoad(300, 500, 1500, 100), SideLoad(500, 500, 1, 100))
    found = prices(loads, "nested loop")
    assert {name: round(cost) for name, cost in found.items()} == {
        "LAP": 805_518,
        "EAP10": 808_518,
        "EAP01": 565_342,
        "EAP11": 568_342,
    }
    model = TupleCost(PaperEstimates(loads), method="nested loop")
    assert placement_name(model.best()) == "EAP01"


@pytest.mark.parametrize("rate", [100, 300, 500])
def test_groups_on_both_inputs_aggregate_both_early(rate: int) -> None:
    loads = (SideLoad(rate, 2000, 150, 10), SideLoad(500, 2000, 150, 10))
    found = prices(loads, "nested loop")
    assert min(found, key=lambda name: found[name]) == "EAP11"


def test_the_early_update_searches_the_buckets_of_the_join_not_of_the_groups() -> None:
    # As printed, equation (6) gives 8,497,200 here, above late aggregation.
    assert prices(DEFAULT, "nested loop")["EAP10"] < prices(DEFAULT, "nested loop")["LAP"]


def test_occupancy_fits_what_was_measured() -> None:
    small = ExpectedEstimates((SideLoad(1, 200, 20, 10), SideLoad(1, 200, 1, 10)))
    large = ExpectedEstimates((SideLoad(1, 500, 150, 10), SideLoad(1, 500, 1, 10)))
    assert (round(small.rows(0, True), 1), round(small.matches(0, True), 2)) == (126.6, 12.83)
    assert (round(large.rows(0, True), 1), round(large.matches(0, True), 1)) == (425.3, 42.6)


def test_a_larger_domain_on_the_other_input_has_fewer_matches() -> None:
    estimates = ExpectedEstimates((SideLoad(1, 500, 1, 10), SideLoad(1, 500, 1, 100)))
    assert estimates.matches(0, False) == 5


_sizes = st.floats(1, 5000)
_loads = st.builds(SideLoad, st.floats(0.1, 1000), _sizes, _sizes, _sizes)


@given(st.tuples(_loads, _loads), st.sampled_from(["hash", "nested loop"]), st.booleans())
def test_two_inputs_are_decided_one_by_one(
    loads: tuple[SideLoad, SideLoad], method: Method, paper: bool
) -> None:
    estimates = PaperEstimates(loads) if paper else ExpectedEstimates(loads)
    model = TupleCost(estimates, method=method)
    late, second, first, both = (model.cost(p) for p in placements(2))
    assert late - second == pytest.approx(first - both, rel=1e-6, abs=1e-6 * late)
    assert model.cost(model.best()) <= min(late, second, first, both) * (1 + 1e-9)


@given(st.tuples(_loads, _loads, _loads, _loads), st.sampled_from(placements(4)))
def test_no_probe_order_is_cheaper_than_by_rank(
    loads: tuple[SideLoad, ...], early: Placement
) -> None:
    model = TupleCost(PaperEstimates(loads))

    def probing(order: tuple[int, ...]) -> float:
        matched = cost = 1.0
        for side in order:
            cost += matched * model._probe(side, early[side])
            matched *= model._matches(side, early[side])
        return cost

    best = min(probing(order) for order in permutations((1, 2, 3)))
    assert probing(model.probe_order(0, early)) == pytest.approx(best)


def test_many_inputs_are_climbed_to_the_same_plan() -> None:
    loads = tuple(SideLoad(10, 300, g, 10) for g in (1, 500, 1, 2, 400, 1, 3, 1, 1, 9, 1, 1, 4))
    climbed = TupleCost(PaperEstimates(loads))
    exact = min(placements(13), key=climbed.cost)
    assert climbed.cost(climbed.best()) == pytest.approx(climbed.cost(exact))
