"""What nobody knows: the choice is the one that is least wrong whatever it is."""

from __future__ import annotations

import weft
from weft.cost.batch.unknowns import plausible, safest
from weft.planners.portfolio import _batch_model


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
