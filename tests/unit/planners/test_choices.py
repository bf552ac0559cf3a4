"""What plans say of what was chosen, and which engine's prices it was chosen by."""

from __future__ import annotations

import pytest

import weft
from weft import agg


def test_slices_that_are_regrouped_are_named_by_their_keys() -> None:
    queries = [
        weft.Query(
            name,
            source="readings",
            time="ts",
            keys=keys,
            windows={"1m": weft.tumbling("1 minute")},
            aggs={"hi": agg.max("temp")},
        )
        for name, keys in (("both", ["device", "site"]), ("one", ["device"]), ("none", []))
    ]
    crowded = weft.Statistics(rate=10_000.0, keys=4)
    told = weft.optimize(weft.Workload(queries), engine="local", statistics=crowded).explain()
    wanted = "slices by device, without keys are regrouped from slices by device, site"
    assert wanted in told


def late(engine: str, slide: str) -> float:
    """What it costs to match every bid of an hour with a table, whenever the window moves."""
    query = weft.parse(
        "SELECT i.seller, SUM(b.amount) AS total "
        f"FROM bids TIMESTAMP BY ts [RANGE 1 HOUR SLIDE {slide}] AS b, items AS i "
        "WHERE b.item = i.id GROUP BY i.seller"
    )
    plan = weft.optimize(query, engine=engine, statistics=weft.Statistics(rate=100.0, keys=1000))
    (candidate,) = (c for c in plan.candidates if c.planner == "LAP")
    return candidate.cost


@pytest.mark.parametrize(("engine", "least", "most"), [("local", 30, 70), ("spark", 100, 3_600)])
def test_joins_have_the_prices_of_their_engine(engine: str, least: float, most: float) -> None:
    # Sixty times as many instants; on Spark each also takes copies of sixty times as many slices.
    assert least < late(engine, "1 second") / late(engine, "1 minute") < most
