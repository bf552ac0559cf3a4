"""What nobody knows: the choice is the one that is least wrong whatever it is."""

from __future__ import annotations

import weft
from weft.cost.batch.unknowns import WITHIN, plausible, safest
from weft.cost.strategies import columnar_costs, price
from weft.planners.portfolio import _batch_model

_TOTAL = {"total": "sum(x)"}
_SHIPPED = ("slices", "events")


def test_only_what_is_unknown_is_varied() -> None:
    known = weft.Statistics(events=1_000_000, duration="1 day", keys=300)
    assert len(plausible(_batch_model("spark", known, known.lasts_us(), 0.0))) == 1
    unknown = weft.Statistics()
    nothing = plausible(_batch_model("local", unknown, unknown.lasts_us(), 0.0))
    assert len(nothing) == 3
    assert {m.volumes.statistics.key_count for m in nothing} == {5, 100, 20_000}
    assert len({round(m.volumes.events) for m in nothing}) == 3


def test_the_safer_of_two_plans_that_cost_about_the_same_is_chosen() -> None:
    assert safest([(10.0, 10.0, 90.0), (14.0, 11.0, 30.0)]) == 1
    assert safest([(10.0, 10.0, 90.0), (16.0, 10.0, 30.0)]) == 0, "too much dearer as expected"
    assert safest([(float("inf"),), (float("inf"),)]) == 0


def test_without_statistics_a_plan_says_what_it_assumed() -> None:
    hops = {f"{n}m": weft.hopping(f"{n} minutes", "1 minute") for n in (10, 20, 60)}
    query = weft.Query("q", source="t", time="ts", keys=["k"], windows=hops, aggs={"n": "count(*)"})
    plan = weft.optimize(query)
    assert "rate and keys assumed" in plan.explain()
    assert "events in" in plan.explain()
    assert "(assumed)" in plan.explain()
    assert plan.cost <= 1.5 * min(c.cost for c in plan.candidates)


def test_what_kernels_are_sent_is_priced_as_itself_in_every_case() -> None:
    """Slices or events: the choice is made once, whatever the unknown turns out to be."""
    windows = {f"{n}": weft.hopping(f"{n} seconds", "1 second") for n in (2, 5, 60)}
    query = weft.Query("q", source="t", time="ts", keys=["k"], windows=windows, aggs=_TOTAL)
    unknown = weft.Statistics()
    models = plausible(_batch_model("spark", unknown, unknown.lasts_us(), 0.0))
    nodes = weft.optimize(query, "slice", "spark", strategy="columnar").nodes
    priced = price(nodes, models, "columnar")
    assert priced.choice is not None
    ways = {ships: [sum(columnar_costs(nodes, m, ships)) for m in models] for ships in _SHIPPED}
    chosen = ways.pop(priced.choice.ships)
    assert sum(priced.costs) == chosen[0] == priced.choice.columnar
    assert list(priced.cases) == chosen[1:]
    (other,) = ways.values()
    assert any(o < c for o, c in zip(other, chosen, strict=True)), "in no case the other is cheaper"
    best = [min(pair) for pair in zip(chosen, other, strict=True)]
    worst = [max(c / b for c, b in zip(one, best, strict=True)) for one in (chosen, other)]
    assert worst[0] <= worst[1] or other[0] > WITHIN * chosen[0]
