"""Plans as JSON: nothing is lost, and text that is no plan is refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weft.aggregates import AggregateCall, Partial
from weft.errors import QueryError
from weft.plan import Candidate, Emit, Join, JoinSide, Plan, Roll, Scan, Share, Slice
from weft.plan.node_json import window_from_json, window_to_json
from weft.plan.nodes import topological
from weft.statistics import Statistics
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    Edges,
    LandmarkWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    UserWindow,
    Window,
    hopping,
)


class EveryNth(UserWindow):
    def __init__(self, n: int) -> None:
        self.n = n


WINDOWS = [
    PeriodicWindow(20, 5, 2),
    SessionWindow(7),
    CountingWindow(10, 3),
    CumulatingWindow(60, 20),
    CalendarWindow("month", "Europe/Berlin"),
    PunctuatedWindow("kind = 'start'"),
    MeasuredWindow("km", 10.5, 2),
    LandmarkWindow(),
    EveryNth(5),
]
KEYS = (("city", "UPPER(town)"),)
SUM = (Partial("sum", ("x",)), Partial("count", ("x",)))


def whole_plan() -> Plan:
    """A plan with every node kind and every optional field filled."""
    window = hopping("1 hour", "5 minutes")
    scan = Scan("t", None, "x > 0", ("town", "x"), whole_events=True)
    edges = Edges.of([window, CalendarWindow("day")], "begins")
    roll = Roll((Slice(scan, KEYS, edges, SUM),), window, "ranges", KEYS, SUM, "two_stacks")
    sides = (
        JoinSide(scan, "a", LandmarkWindow(), True, KEYS, SUM),
        JoinSide(Scan("u", "ts", None, ()), "b", None, False, (), ()),
    )
    join = Join(sides, (("a.id", "b.id"),), KEYS, SUM)
    outputs = (("p", AggregateCall("percentile", ("x",), (0.9,))), ("n", AggregateCall("count")))
    emits = (
        Emit((roll,), "q", "1h/5m", outputs, ("w", "s", "e")),
        Emit((join,), "j", "", (("m", AggregateCall("avg", ("x",))),)),
    )
    nodes = topological(emits)
    return Plan(
        nodes,
        "mixed",
        "spark",
        "rate",
        "per second",
        tuple(0.1 * i for i in range(len(nodes))),
        (Candidate("independent", 7.25, "2x"), Candidate("mixed", 2.1, "chosen")),
        Statistics(rate=0.5, keys=3, key_skew=0.25, lateness_us=(1, 2, 3)),
        (Share("q", "1h/5m", "HOP 1h/5m", "slices", 0.3, 4.0, ""),),
        ("a note",),
    )


def test_a_plan_with_everything_in_it_comes_back_equal() -> None:
    plan = whole_plan()
    assert Plan.from_json(plan.explain("json")) == plan


def test_the_fingerprint_names_the_nodes_and_nothing_else() -> None:
    plan = whole_plan()
    back = Plan.from_json(plan.explain("json"))
    assert back.fingerprint == plan.fingerprint
    cheaper = Plan(plan.nodes, "other", "local", "paper", "per 2h", (0.0,) * len(plan.nodes))
    assert cheaper.fingerprint == plan.fingerprint
    assert Plan(plan.nodes[:1], "x", "x", "x", "x", (0.0,)).fingerprint != plan.fingerprint


def test_shared_inputs_are_written_once_as_positions() -> None:
    plan = whole_plan()
    nodes = json.loads(plan.explain("json"))["nodes"]
    assert [n["node"] for n in nodes] == ["scan", "slice", "roll", "emit", "scan", "join", "emit"]
    assert nodes[5]["inputs"] == [0, 4]


@pytest.mark.parametrize("window", WINDOWS, ids=lambda w: type(w).__name__)
def test_every_window_kind_comes_back_equal(window: Window) -> None:
    written = json.loads(json.dumps(window_to_json(window)))
    assert window_from_json(written) == window


def test_a_user_window_whose_class_is_gone_is_refused() -> None:
    written = window_to_json(EveryNth(5)) | {"class": "weft.window:Gone"}
    with pytest.raises(QueryError, match="the window class 'Gone' of module"):
        window_from_json(written)


def changed(**values: Any) -> str:
    return json.dumps(whole_plan().to_json() | values)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "KeyError: 'weft_plan'"),
        (changed(weft_plan=99), "version 99, this weft reads version 2"),
        (changed(nodes=[{"node": "loop"}]), "no node 'loop'"),
        (changed(nodes=[{"node": "scan"}]), "KeyError: 'columns'"),
        (changed(nodes=[{"node": "emit", "inputs": [4]}]), "node 0 reads nodes [4]"),
        (changed(statistics={"rate": -1, "lateness_us": [0, 0, 0]}), "plans nothing"),
    ],
)
def test_text_that_is_no_plan_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(QueryError) as error:
        Plan.from_json(text)
    assert reason in str(error.value)
    assert error.value.hint


def test_a_plan_with_an_unknown_aggregate_asks_for_its_definition() -> None:
    written = whole_plan().explain("json").replace('"percentile"', '"my_own"')
    with pytest.raises(QueryError, match="unknown aggregate function 'my_own'"):
        Plan.from_json(written)
