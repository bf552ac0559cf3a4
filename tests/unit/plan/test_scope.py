"""Sharing scopes: who may share with whom, and what is asked of each window."""

from __future__ import annotations

from typing import Any

import pytest

from weft.aggregates import AggregateCall, Partial
from weft.plan import Roll, Scan, scopes_of
from weft.plan.nodes import topological
from weft.plan.validate import validate
from weft.query import Query, Workload
from weft.window import UserWindow, session, tumbling

HOUR = tumbling("1 hour")
DAY = tumbling("1 day")


def call(function: str, *args: str) -> AggregateCall:
    return AggregateCall(function, args)


def query(name: str, **changes: Any) -> Query:
    settings: dict[str, Any] = {
        "source": "t",
        "time": "ts",
        "keys": ["device"],
        "windows": {"1h": HOUR},
        "aggs": {"n": call("count")},
    }
    return Query(name, **(settings | changes))


def test_queries_on_the_same_events_under_the_same_keys_share_a_scope() -> None:
    (scope,) = scopes_of(Workload([query("a"), query("b", windows={"1d": DAY})]))
    assert [(d.query, d.label) for d in scope.demands] == [("a", "1h"), ("b", "1d")]
    assert scope.windows == (HOUR, DAY)


@pytest.mark.parametrize(
    "difference",
    [{"source": "u"}, {"time": "at"}, {"where": "x > 0"}, {"keys": ["city"]}, {"keys": []}],
    ids=lambda d: next(iter(d)),
)
def test_another_source_time_filter_or_key_is_another_scope(difference: dict[str, Any]) -> None:
    scopes = scopes_of(Workload([query("a"), query("b", **difference), query("c")]))
    assert [[d.query for d in s.demands] for s in scopes] == [["a", "c"], ["b"]]


def test_filters_that_differ_in_spelling_only_share_a_scope() -> None:
    workload = Workload([query("a", where="x>0"), query("b", where="x   > 0")])
    assert len(scopes_of(workload)) == 1


def test_the_scan_of_a_scope_reads_the_columns_of_all_its_queries_sorted() -> None:
    aggs = {"hi": call("max", "z"), "lo": call("min", "b + c")}
    (scope,) = scopes_of(Workload([query("a"), query("b", aggs=aggs, windows={"d": DAY})]))
    assert scope.scan == Scan("t", "ts", None, ("b", "c", "device", "z"))


class Odd(UserWindow):
    pass


def test_a_user_defined_window_makes_the_scan_keep_whole_events() -> None:
    (scope,) = scopes_of(Workload([query("a"), query("b", windows={"u": Odd()})]))
    assert scope.scan.whole_events


def test_equal_partials_of_a_window_exist_once() -> None:
    first = query("a", aggs={"m": call("avg", "x")})
    second = query("b", aggs={"s": call("sum", "x"), "n": call("count", "x")})
    (scope,) = scopes_of(Workload([first, second]))
    assert scope.shareable_partials(HOUR) == (Partial("sum", ("x",)), Partial("count", ("x",)))


def test_partials_are_those_of_the_window_not_of_the_scope() -> None:
    first = query("a", aggs={"lo": call("min", "x")})
    second = query("b", aggs={"s": call("count")}, windows={"1d": DAY})
    (scope,) = scopes_of(Workload([first, second]))
    assert scope.shareable_partials(HOUR) == (Partial("min", ("x",)),)
    assert scope.shareable_partials(DAY) == (Partial("count_rows", ()),)
    assert scope.partials_for((HOUR, DAY)) == (Partial("min", ("x",)), Partial("count_rows", ()))
    assert scope.is_idempotent(HOUR)
    assert not scope.is_idempotent(DAY)


def test_holistic_partials_stay_on_events_beside_the_shared_ones() -> None:
    aggs = {"mid": call("median", "x"), "lo": call("min", "x")}
    (scope,) = scopes_of(Workload([query("a", aggs=aggs)]))
    assert scope.holistic_partials(HOUR) == (Partial("values", ("x",)),)
    (emit,) = scope.emits({HOUR: scope.from_events(HOUR, scope.shareable_partials(HOUR))})
    assert [r.partials for r in emit.inputs] == [
        (Partial("min", ("x",)),),
        (Partial("values", ("x",)),),
    ]


def test_a_window_of_which_only_holistic_results_are_asked_is_not_shareable() -> None:
    windows = {"1h": HOUR, "s": session("1 minute")}
    only = query("a", aggs={"mid": call("median", "x")}, windows=windows)
    (scope,) = scopes_of(Workload([only, query("b", windows={"1d": DAY, "s2": session("1 day")})]))
    assert scope.shareable == (DAY,)


def test_emits_without_shared_rolls_are_a_legal_plan_from_events() -> None:
    aggs = {"mid": call("median", "x"), "m": call("avg", "x")}
    windows = {"1h": HOUR, "same": HOUR, "s": session("1 minute")}
    (scope,) = scopes_of(Workload([query("a", aggs=aggs, windows=windows)]))
    emits = scope.emits({})
    validate(topological(emits))
    assert emits[0].inputs == emits[1].inputs
    assert all(isinstance(r, Roll) and r.feeder == scope.scan for e in emits for r in e.inputs)


def test_exactness_is_a_matter_of_the_source_and_its_columns() -> None:
    (scope,) = scopes_of(Workload([query("a")]), {"t": frozenset({"cents"})})
    assert scope.is_exact(Partial("sum", ("cents",)))
    assert not scope.is_exact(Partial("sum", ("temp",)))
    (other,) = scopes_of(Workload([query("a")]), {"u": frozenset({"cents"})})
    assert not other.is_exact(Partial("sum", ("cents",)))
