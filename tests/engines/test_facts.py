"""Facts about windows, on every engine: all in one workload, as one plan."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import weft
from engines.facts import (
    DELAY_S,
    FACTS,
    LATE_FACTS,
    check_late,
    late_batches,
    late_query,
    query_of,
    rows_told,
    table_of,
)
from oracles.streams import MILLISECOND_US, StreamOracle
from weft.plan.planned_scope import planned_scopes
from weft.window import CountingWindow

S = 1_000_000
ENGINES = [
    "reference",
    "local",
    pytest.param("spark native", marks=[pytest.mark.spark, pytest.mark.soak]),
    pytest.param("spark columnar", marks=[pytest.mark.spark, pytest.mark.soak]),
]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def holds(row: tuple[Any, ...], told: tuple[Any, ...]) -> bool:
    return all(map(same, row, told))


@pytest.mark.parametrize("engine", ENGINES)
def test_facts(engine: str) -> None:
    name, _, strategy = engine.partition(" ")
    able = list(range(len(FACTS)))
    if strategy == "native":
        able = [n for n in able if not isinstance(FACTS[n].window, CountingWindow)]
    workload = weft.Workload(query_of(number, FACTS[number]) for number in able)
    results = weft.run(
        workload, {"events": table_of(FACTS)}, engine=name, strategy=strategy or None
    )
    wrong = []
    for number in able:
        fact = FACTS[number]
        result = results[f"fact {number}"]
        rows = rows_told(fact, result if isinstance(result, pa.Table) else result.toArrow())
        for told in fact.rows:
            hit = next((at for at, row in enumerate(rows) if holds(row, told)), None)
            wrong += [f"{fact.says}: no {told}"] if hit is None else []
            rows = rows if hit is None else [*rows[:hit], *rows[hit + 1 :]]
        wrong += [f"{fact.says}: {rows} too"] if rows else []
    assert not wrong, "\n".join(wrong)


def test_facts_about_lateness_in_a_session_and_in_the_oracle() -> None:
    numbers = list(range(len(LATE_FACTS)))
    workload = weft.Workload(late_query(n, LATE_FACTS[n]) for n in numbers)
    plan = weft.optimize(workload, "slice", session=True)
    assert len(planned_scopes(plan)) == len(numbers)
    batches = late_batches(numbers)
    oracle = StreamOracle(plan, DELAY_S * S, MILLISECOND_US).played(batches)
    check_late(oracle.tables(batches[0].schema), numbers)
    session = weft.LocalSession(plan, watermark=DELAY_S * S)
    found: dict[str, list[pa.Table]] = {query.name: [] for query in plan.queries}
    for batch in batches:
        for name, rows in session.push("events", batch).items():
            found[name].append(rows)
    check_late({name: pa.concat_tables(parts) for name, parts in found.items()}, numbers)
    late = {f"late {n}": LATE_FACTS[n].late for n in numbers}
    assert session.metrics.late == oracle.late == late
