"""The local engine in batch: on random workloads, whatever the plan, the rows of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from weft.engines.local.output import tables as results
from weft.engines.local.windows import close as emitting
from weft.planners.portfolio import PLANNERS
from weft.running import columns_of_table
from weft.testing import assert_same_rows
from weft.testing.strategies import events, periodic_windows, windows, workloads

if TYPE_CHECKING:
    import pyarrow as pa

RELAXED = settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
statistics = st.builds(
    weft.Statistics, rate=st.sampled_from([1e4, 1e6, 1e8]), keys=st.sampled_from([1, 3, 1000])
)


def check(workload: weft.Workload, table: pa.Table, planner: str, known, model=None) -> None:
    exact = {"events": columns_of_table(table).exact}
    plan = weft.optimize(workload, planner, "local", known, model, exact_columns=exact)
    note(plan.explain("verbose"))
    got = weft.run(plan, {"events": table}, engine="local")
    wanted = weft.run(workload, {"events": table}, engine="reference")
    for query in workload.queries:
        one = len(workload) == 1
        found = got if one else got[query.name]
        expected = wanted if one else wanted[query.name]
        assert found.schema == expected.schema
        assert_same_rows(query, found, expected)
        identity = [*(name for name, _ in query.keys), *query.window_columns]
        assert found.select(identity).equals(expected.select(identity)), "another order of rows"


@pytest.mark.parametrize("planner", [*PLANNERS, "auto"])
@RELAXED
@given(data=st.data())
def test_no_plan_over_periodic_windows_gives_another_answer(planner, data) -> None:
    workload = data.draw(workloads(periodic_windows()))
    check(workload, data.draw(events()), planner, data.draw(statistics))


@pytest.mark.parametrize("planner", [*PLANNERS, "auto"])
@RELAXED
@given(data=st.data())
def test_no_plan_over_any_windows_gives_another_answer(planner, data) -> None:
    workload = data.draw(workloads(windows()))
    check(workload, data.draw(events()), planner, data.draw(statistics))


@pytest.fixture
def few_are_many(monkeypatch) -> None:
    """Let the ways of the engine that many slices and many rows take be taken by all."""
    monkeypatch.setattr(emitting, "FEW_SLICES", -1)
    monkeypatch.setattr(results, "FEW_ROWS", -1)


@pytest.mark.usefixtures("few_are_many")
@settings(RELAXED, max_examples=60)
@given(workloads(windows() | periodic_windows()), events(), statistics)
def test_many_rows_are_put_in_the_same_order(workload, table, known) -> None:
    check(workload, table, "auto", known)


@RELAXED
@given(workloads(periodic_windows()), events(), st.sampled_from(sorted(PLANNERS)))
def test_plans_counted_as_the_papers_do_give_the_same_answer(workload, table, planner) -> None:
    check(workload, table, planner, weft.Statistics(), "paper")
