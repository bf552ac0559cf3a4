"""What plans say of what was chosen, and which engine's prices it was chosen by."""

from __future__ import annotations

import pyarrow as pa
import pytest

import weft
from weft import agg
from weft.testing import assert_same_rows


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


@pytest.mark.parametrize("engine", ["reference", "spark"])
def test_events_that_a_filter_drops_are_read_all_the_same(engine: str) -> None:
    query = weft.Query(
        "hot",
        source="readings",
        time="ts",
        where="temp > 30",
        windows={"1m": weft.tumbling("1 minute")},
        aggs={"hi": agg.max("temp")},
    )
    every = weft.Statistics(rate=100.0, duration="1 hour", keys=1, kept={"temp > 30": 0.5})
    kept = weft.Statistics(rate=50.0, duration="1 hour", keys=1, kept={"temp > 30": 1.0})
    costs = [weft.optimize(query, "independent", engine, statistics=s).cost for s in (every, kept)]
    assert costs[0] > costs[1]


# Slices by (a, b) or by (a, c) can be regrouped by a; only one of them may be.
KEY_SETS = {"ab": ["a", "b"], "ac": ["a", "c"], "a": ["a"], "b": ["b"], "c": ["c"]}


def test_slices_are_regrouped_from_one_finer_key_set() -> None:
    workload = weft.Workload(
        weft.Query(
            name,
            source="t",
            time="ts",
            keys=keys,
            windows={"1m": weft.tumbling("1 minute"), "1h": weft.tumbling("1 hour")},
            aggs={"n": agg.count(), "s": agg.sum("x")},
        )
        for name, keys in KEY_SETS.items()
    )
    crowded = weft.Statistics(rate=10_000.0, keys=4)
    plan = weft.optimize(workload, engine="local", statistics=crowded)
    told = [note for note in plan.explain().splitlines() if "are regrouped from slices" in note]
    coarser = [
        name for note in told for name in note.split("slices ")[1].split(" are ")[0].split(", ")
    ]
    assert len(told) == 2
    assert sorted(coarser) == ["by a", "by b", "by c"]
    numbers = list(range(2_000))
    columns = {name: [at % n for at in numbers] for name, n in (("a", 2), ("b", 3), ("c", 5))}
    times = pa.array([at * 7_000_000 for at in numbers], pa.timestamp("us", "UTC"))
    events = pa.table({"ts": times, **columns, "x": [float(at) for at in numbers]})
    got = weft.run(plan, {"t": events}, engine="local")
    wanted = weft.run(workload, {"t": events}, engine="reference")
    for query in workload:
        assert_same_rows(query, got[query.name], wanted[query.name])
