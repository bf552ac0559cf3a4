"""What nobody knows: the choice is the one that is least wrong whatever it is."""

from __future__ import annotations

import pytest

import weft
from weft.cost.batch.unknowns import WITHIN, plausible, safest
from weft.cost.strategies import columnar_costs, price
from weft.cost.streams import CATCHING_UP_US, StreamModel
from weft.engines.spark.streaming.engine import SparkStreamEngine
from weft.engines.spark.streaming.streams import streams_of
from weft.generate.random_workloads import drawn
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


def test_a_stream_is_asked_for_what_a_micro_batch_may_have() -> None:
    hour = CATCHING_UP_US
    known = weft.Statistics(rate=50.0, keys=300)
    assert plausible(StreamModel.of(known, hour)) == (StreamModel.of(known, hour),)
    expected, *others = plausible(StreamModel.of(weft.Statistics(keys=300), hour))
    assert {m.statistics.key_count for m in others} == {300}
    rates = [m.events_per_second / expected.events_per_second for m in others]
    assert rates == pytest.approx([10.0, 0.1])
    assert {m.micro_batch_us for m in others} == {hour}
    several = plausible(StreamModel.of(weft.Statistics(rate=0.001), hour))
    assert [m.statistics.key_count for m in several] == [100, 5, 3], "no more keys than events"


def test_a_stream_runs_by_what_may_cost_least_at_worst() -> None:
    """The plan names the strategy, and the engine runs that, whatever is cheaper as expected."""
    for seed in range(40):
        one = drawn(seed, (100_000, 400_000), "1 second")
        plan = weft.optimize(one.workload(), micro_batch="1 hour")
        (choice,) = plan.strategies
        (stream,) = streams_of(plan)
        assert SparkStreamEngine().choice(stream, plan).name == choice.strategy
        if "may cost far more" in choice.reason:
            break
    else:
        pytest.fail("the expected was always the safest")
    told = SparkStreamEngine().choice(stream, plan)
    assert told.reason == choice.reason
    assert getattr(choice, choice.strategy) > min(choice.native, choice.columnar)


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
