"""Slices of early inputs are shared between joins exactly where that is cheaper."""

from __future__ import annotations

from weft.parsing import parse
from weft.plan import Join, Plan, Slice
from weft.planners.portfolio import optimize
from weft.statistics import Statistics

KNOWN = Statistics(rate=10_000.0, keys=10, join_values=20)


def planned(*windows: str, planner: str = "EAP11", engine: str = "local") -> Plan:
    text = ";\n".join(
        f"SELECT a.g, SUM(b.x) AS total FROM a TIMESTAMP BY ts {window}, b TIMESTAMP BY ts {window}"
        " WHERE a.k = b.k GROUP BY a.g"
        for window in windows
    )
    return optimize(parse(text), planner, engine, KNOWN)


def slices(plan: Plan) -> list[Slice]:
    return [node for node in plan.nodes if isinstance(node, Slice)]


MINUTES = ("[RANGE 10 MINUTES SLIDE 1 MINUTE]", "[RANGE 30 MINUTES SLIDE 5 MINUTES]")


def test_joins_that_differ_in_their_windows_read_the_same_slices() -> None:
    plan = planned(*MINUTES)
    assert len(slices(plan)) == 2
    joins = [node for node in plan.nodes if isinstance(node, Join)]
    assert joins[0].inputs == joins[1].inputs
    assert plan.cost < sum(planned(window).cost for window in MINUTES)
    assert [c.reason[:6] for c in plan.candidates if "shared" in c.planner] == ["chosen"] * 2


def test_windows_whose_edges_never_meet_keep_slices_of_their_own() -> None:
    plan = planned(
        "[RANGE 10 MINUTES SLIDE 10 MINUTES]", "[RANGE 7 MILLISECONDS SLIDE 7 MILLISECONDS]"
    )
    refused = [c.reason for c in plan.candidates if "shared" in c.planner]
    assert slices(plan) == []
    assert all("the cost of slices of their own" in reason for reason in refused)
    assert len(refused) == 2


def test_late_inputs_share_nothing() -> None:
    assert slices(planned(*MINUTES, planner="LAP")) == []


def test_spark_shares_slices_too() -> None:
    plan = planned(*MINUTES, engine="spark")
    assert len(slices(plan)) == 2
    assert plan.cost < sum(planned(window, engine="spark").cost for window in MINUTES)
