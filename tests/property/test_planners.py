"""Every planner, on random workloads: legal, deterministic, and never another answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from sampling import examples
from weft.plan.validate import validate
from weft.planners.portfolio import PLANNERS
from weft.running import columns_of_table
from weft.testing import assert_same_rows
from weft.testing.strategies import events, periodic_windows, windows, workloads

if TYPE_CHECKING:
    import pyarrow as pa

RELAXED = settings(
    deadline=None, max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow]
)
statistics = st.builds(
    weft.Statistics, rate=st.sampled_from([1e4, 1e6, 1e8]), keys=st.sampled_from([1, 3, 1000])
)


def plan_of(workload: weft.Workload, table: pa.Table, planner: str, known, model=None):
    exact = {"events": columns_of_table(table).exact}
    return weft.optimize(workload, planner, "reference", known, model, exact_columns=exact)


def check(workload: weft.Workload, table: pa.Table, plan: weft.Plan) -> None:
    note(plan.explain("verbose"))
    validate(plan.nodes)
    tables = {"events": table}
    got = weft.run(plan, tables, engine="reference")
    wanted = weft.run(workload, tables, engine="reference")
    for query in workload.queries:
        one = len(workload) == 1
        assert_same_rows(
            query, got if one else got[query.name], wanted if one else wanted[query.name]
        )


@pytest.mark.parametrize("planner", [*PLANNERS, "auto"])
@RELAXED
@given(data=st.data())
def test_no_planner_changes_the_answer_of_periodic_windows(planner, data) -> None:
    workload = data.draw(workloads(periodic_windows()))
    table = data.draw(events())
    check(workload, table, plan_of(workload, table, planner, data.draw(statistics)))


@pytest.mark.parametrize("planner", [*PLANNERS, "auto"])
@RELAXED
@given(data=st.data())
def test_no_planner_changes_the_answer_of_any_window(planner, data) -> None:
    workload = data.draw(workloads(windows()))
    table = data.draw(events())
    check(workload, table, plan_of(workload, table, planner, data.draw(statistics)))


@RELAXED
@given(workloads(windows()), events(), statistics, st.sampled_from([None, "paper"]))
def test_auto_costs_the_minimum_of_its_candidates_and_is_deterministic(
    workload, table, known, model
) -> None:
    plan = plan_of(workload, table, "auto", known, model)
    assert plan.cost == pytest.approx(min(c.cost for c in plan.candidates))
    again = plan_of(workload, table, "auto", known, model)
    assert plan == again
    assert plan.fingerprint == again.fingerprint
    assert plan.explain() == again.explain()
    assert weft.Plan.from_json(plan.explain("json")) == plan


@RELAXED
@given(workloads(periodic_windows()), events(), st.sampled_from(sorted(PLANNERS)))
def test_plans_counted_as_the_papers_do_give_the_same_answer(workload, table, planner) -> None:
    check(workload, table, plan_of(workload, table, planner, weft.Statistics(), "paper"))
