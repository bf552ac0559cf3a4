"""The Spark entries, run on small inputs: stock Spark and weft give the same answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from weft.bench.frame import Case, Contender, Race
from weft.bench.race import run_entry
from weft.bench.registry import entries
from weft.bench.suite.planners.factor import Setup
from weft.bench.suite.spark import plans as spark_plans
from weft.bench.suite.spark.runs import run_shared, run_stock, same_answers

pytestmark = pytest.mark.spark
RACES = {e.name: e for e in entries() if e.group == "spark-batch" and isinstance(e, Race)}
EVENTS = 4_000


def small(entry: Race) -> Race:
    cases = [
        Case(c.label, {**c.arguments, "events": EVENTS}, EVENTS)
        for c in entry.quick
        if c.label != "tumbling 1 s"
    ]
    return replace(entry, quick=tuple(cases), rounds=1)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("spark-batch/tumbling_20", marks=pytest.mark.soak),
        pytest.param("spark-batch/feature_model", marks=pytest.mark.soak),
        pytest.param("spark-batch/rollup", marks=pytest.mark.soak),
        pytest.param("spark-batch/features", marks=pytest.mark.soak),
        pytest.param("spark-batch/mixed_20", marks=pytest.mark.soak),
        "spark-batch/one_window",
        pytest.param("spark-batch/sparse", marks=pytest.mark.soak),
        pytest.param("spark-batch/hop_600_10", marks=pytest.mark.soak),
    ],
)
def test_weft_and_stock_spark_give_the_same_answer(name: str) -> None:
    outcome = run_entry(small(RACES[name]), quick=True)
    assert outcome.status == "ok", outcome.notes
    assert {row["contender"] for row in outcome.rows} == set(RACES[name].contenders)


def test_a_run_that_loses_rows_is_caught() -> None:
    race = small(RACES["spark-batch/tumbling_20"])

    def start(inputs: Any) -> Any:
        return run_shared(inputs._replace(events=inputs.events.where("temp > 20")))

    contenders = {"stock": Contender(run_stock), "weft": Contender(start)}
    outcome = run_entry(replace(race, contenders=contenders, bars=()), quick=True)
    assert outcome.status == "wrong"
    assert outcome.notes[0].startswith("weft, ")


@pytest.mark.soak
def test_boosts_and_the_order_of_costs_come_from_the_same_runs() -> None:
    boosts, order = (run_entry(entry, quick=True) for entry in spark_plans.ENTRIES)
    assert (boosts.status, order.status) == ("ok", "ok"), boosts.notes
    assert [row["setup"] for row in boosts.rows] == ["R-5-tumbling", "S-5-hopping"]
    assert {row["plans of"]: row["plans"] for row in order.rows} == {
        "all": 6,
        "tumbling": 3,
        "hopping": 3,
    }


def test_a_plan_without_factor_windows_has_none() -> None:
    from weft.plan.render.words import factor_windows
    from weft.planners import factor

    inputs = spark_plans._inputs(Setup.of("S-5-tumbling"), 0, EVENTS)
    with_factors, without = (
        spark_plans._plan(inputs, propose, "factor", 10_000_000)
        for propose in (factor.propose, factor.propose_without_factors)
    )
    assert factor_windows(with_factors.nodes)
    assert not factor_windows(without.nodes)
    assert with_factors.cost < without.cost


def test_answers_are_compared_to_the_last_digits_only() -> None:
    wanted = {"q": {"rows": 3, "total": 10.0, "lo": None}}
    assert same_answers(wanted, {"q": {"rows": 3, "total": 10.0 + 1e-9, "lo": None}}) == ""
    assert "total" in same_answers(wanted, {"q": {"rows": 3, "total": 10.1, "lo": None}})
    assert "lo" in same_answers(wanted, {"q": {"rows": 3, "total": 10.0, "lo": 1.0}})
