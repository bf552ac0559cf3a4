"""A search is not made where it would take over half of what it could save."""

from __future__ import annotations

import pytest

import weft

_WINDOWS = {f"{s}s": weft.tumbling(s * 1_000_000) for s in range(10, 90)}
_FEW = weft.Statistics(events=20_000, duration="1 hour", keys=5)
_MANY = weft.Statistics(events=2_000_000_000, duration="7 days", keys=500)


def _query(windows: dict[str, weft.window.Window]) -> weft.Query:
    return weft.Query(
        "q", source="events", time="ts", keys=["k"], windows=windows, aggs={"n": weft.agg.count()}
    )


def _unasked(plan: weft.Plan) -> set[str]:
    return {c.planner for c in plan.candidates if "its search would take" in c.reason}


def test_few_events_do_not_wait_for_a_search() -> None:
    plan = weft.optimize(_query(_WINDOWS), engine="local", statistics=_FEW)
    assert _unasked(plan) == {"factor", "weave", "triweave"}
    reason = next(c.reason for c in plan.candidates if c.planner == "weave")
    assert "its search would take about 320 ms, over half of the" in reason
    assert plan.planner not in _unasked(plan)


def test_many_events_are_worth_every_search() -> None:
    assert not _unasked(weft.optimize(_query(_WINDOWS), engine="local", statistics=_MANY))


def test_few_windows_are_always_searched() -> None:
    few = dict(list(_WINDOWS.items())[:5])
    assert not _unasked(weft.optimize(_query(few), engine="local", statistics=_FEW))


def test_what_every_plan_pays_is_not_at_stake() -> None:
    """Ten million events of ten keys: to fold them costs most, and no search saves any of that."""
    some = dict(list(_WINDOWS.items())[:20])
    dense = weft.Statistics(events=10_000_000, duration="10000 seconds", keys=10)
    plan = weft.optimize(_query(some), engine="spark", statistics=dense)
    assert {"weave", "triweave"} <= _unasked(plan)
    searched = weft.optimize(_query(some), "triweave", "spark", statistics=dense)
    assert plan.cost < 1.02 * searched.cost


@pytest.mark.parametrize(
    "asked",
    [
        {"engine": "local", "session": True, "statistics": _FEW},
        {"engine": "spark", "micro_batch": "1 minute", "statistics": _FEW},
        {"engine": "local"},
        {"engine": "local", "statistics": _FEW, "planner": "weave"},
        {"engine": "local", "statistics": _FEW, "model": "paper"},
    ],
    ids=["session", "stream", "unknown events", "named planner", "paper"],
)
def test_what_is_not_one_run_of_known_events_is_searched(asked: dict[str, object]) -> None:
    plan = weft.optimize(_query(_WINDOWS), **asked)  # type: ignore[arg-type]
    assert not _unasked(plan)
