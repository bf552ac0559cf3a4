"""The Spark entries, run on small inputs: stock Spark and weft give the same answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from weft.bench.frame import Case, Contender, Race
from weft.bench.race import run_entry
from weft.bench.registry import entries
from weft.bench.suite.spark_runs import run_shared, run_stock, same_answers

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
        "spark-batch/tumbling_20",
        "spark-batch/mixed_20",
        pytest.param("spark-batch/one_window", marks=pytest.mark.soak),
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


def test_answers_are_compared_to_the_last_digits_only() -> None:
    wanted = {"q": {"rows": 3, "total": 10.0, "lo": None}}
    assert same_answers(wanted, {"q": {"rows": 3, "total": 10.0 + 1e-9, "lo": None}}) == ""
    assert "total" in same_answers(wanted, {"q": {"rows": 3, "total": 10.1, "lo": None}})
    assert "lo" in same_answers(wanted, {"q": {"rows": 3, "total": 10.0, "lo": 1.0}})
