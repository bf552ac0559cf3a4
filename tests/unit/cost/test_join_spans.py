"""Placements on Spark: the cheapest by cost is the one that was fastest, or as good as that."""

from __future__ import annotations

import pytest

from weft.cost.joins.spans import SpanCost
from weft.cost.joins.tuples import SideLoad, placement_name, placements
from weft.cost.prices import Coefficients, coefficients_of
from weft.plan.joins import Instants
from weft.window import LandmarkWindow, PeriodicWindow

MINUTE = 60_000_000
HOUR = PeriodicWindow(60 * MINUTE, MINUTE)
TEN = PeriodicWindow(10 * MINUTE, MINUTE)
AUCTIONS = SideLoad(18.2, 65_400, 5, 65_400), SideLoad(0, 21_800, 1, 21_800)


@pytest.fixture(autouse=True)
def shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("WEFT_COEFFICIENTS", str(tmp_path))


def cheapest(windows: tuple[object, ...], *loads: SideLoad) -> str:
    known: Coefficients = coefficients_of("spark-joins")
    widths = tuple(2 if at == 0 else 1 for at in range(len(loads)))
    model = SpanCost(loads, Instants(windows), widths, known)  # type: ignore[arg-type]
    return placement_name(min(placements(len(loads)), key=model.cost))


@pytest.mark.parametrize(
    ("at_a_time", "plan"),
    [(1_170, "EAP100"), (0, "LAP")],
    ids=["auctions come and go", "bids on any auction at any time"],
)
def test_bids_are_aggregated_early_where_many_are_of_one_auction(at_a_time: int, plan: str) -> None:
    bids = SideLoad(278.6, 1_002_800, 1, 65_359, at_a_time)
    assert cheapest((HOUR, LandmarkWindow(), None), bids, *AUCTIONS) == plan


@pytest.mark.parametrize(
    ("loads", "fastest"),
    [
        ((SideLoad(27.8, 16_700, 10, 1_000), SideLoad(27.8, 16_700, 3, 1_000)), {"EAP11", "EAP01"}),
        ((SideLoad(13.9, 8_330, 10, 200_000), SideLoad(13.9, 8_330, 3, 200_000)), {"LAP"}),
        ((SideLoad(55.6, 33_300, 10, 3_000), SideLoad(1.4, 830, 3, 3_000)), {"LAP"}),
    ],
    ids=["dense", "sparse", "one input is small"],
)
def test_two_windows_that_move(loads: tuple[SideLoad, ...], fastest: set[str]) -> None:
    """As run on 2 cores: 100k and 100k, 50k and 50k, 200k and 5k tuples in an hour."""
    assert cheapest((TEN, TEN), *loads) in fastest


def test_a_table_whose_ids_are_its_own_gains_nothing_by_early_aggregation() -> None:
    bids = SideLoad(278.6, 1_002_800, 1, 65_359, 1_170)
    windows = (HOUR, LandmarkWindow(), None)
    free = Coefficients("spark-joins", "by hand", read_partial_ns=275.5, fold_event_ns=26.9)
    model = SpanCost((bids, *AUCTIONS), Instants(windows), (4, 1, 1), free)
    assert model.cost((True, False, True)) >= model.cost((True, False, False))
