"""`weft.as_of` and `weft.rolling`: tables of any library, mistakes, sums, and what a plan says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import weft
from weft.errors import InternalError
from weft.kernels.ranges import choice
from weft.plan.anchors import FeaturePlan, validate_features

ORDERS = pa.table(
    {
        "user": ["a", "a", "b", "a"],
        "ts": pa.array([10, 20, 20, 40], pa.timestamp("us")),
        "amount": [1.0, 2.0, 4.0, 8.0],
        "items": [1, 2, 3, 4],
    }
)
LABELS = pa.table({"user": ["b", "a"], "at": pa.array([25, 40], pa.timestamp("us"))})
ASKED: dict[str, Any] = {"windows": {"w": 30}, "aggs": {"spend": weft.agg.sum("amount")}}


def test_a_pandas_frame_keeps_its_index_and_its_columns() -> None:
    labels = LABELS.to_pandas().set_index(pd.Index([7, 3], name="row"))
    labels["odd"] = pd.Categorical(["x", "y"])
    found = weft.as_of(labels, ORDERS.to_pandas(), time="ts", at="at", by=["user"], **ASKED)
    pd.testing.assert_frame_equal(found[labels.columns], labels)
    assert found["spend_w"].tolist() == [4.0, 3.0]


def test_a_pandas_index_may_repeat_itself() -> None:
    labels = LABELS.to_pandas().set_index(pd.Index([1, 1]))
    found = weft.as_of(labels, ORDERS, at="at", by=["user"], **ASKED)
    assert found["spend_w"].tolist() == [4.0, 3.0]


def test_a_polars_frame_keeps_its_columns() -> None:
    orders = pl.from_arrow(ORDERS)
    found = weft.rolling(orders, by=["user"], **ASKED)
    assert isinstance(found, pl.DataFrame)
    assert found.drop("spend_w").equals(orders)
    assert found["spend_w"].to_list() == [1.0, 3.0, 4.0, 11.0]


def test_lazy_frames_readers_and_short_forms_are_taken() -> None:
    asked: dict[str, Any] = {"by": "user", "windows": {"w": 30}, "aggs": {"spend": "sum(amount)"}}
    lazy = weft.rolling(pl.from_arrow(ORDERS).lazy(), **asked)
    assert isinstance(lazy, pl.DataFrame)
    assert lazy["spend_w"].to_list() == [1.0, 3.0, 4.0, 11.0]
    read = weft.rolling(ORDERS.to_reader(), **asked)
    assert read.drop_columns(["spend_w"]).equals(ORDERS)


def test_a_pandas_index_of_times_is_a_column() -> None:
    orders = ORDERS.to_pandas().set_index("ts")
    found = weft.rolling(orders, by="user", **ASKED)
    pd.testing.assert_frame_equal(found.drop(columns="spend_w"), orders)
    assert found["spend_w"].tolist() == [1.0, 3.0, 4.0, 11.0]


def test_tables_of_several_libraries_may_meet() -> None:
    found = weft.as_of(pl.from_arrow(LABELS), ORDERS.to_pandas(), at="at", by=["user"], **ASKED)
    assert isinstance(found, pl.DataFrame)
    assert found["spend_w"].to_list() == [4.0, 3.0]


def test_keys_may_be_expressions_over_the_events() -> None:
    shouted = ORDERS.set_column(0, "Client", pa.array(["A", "A", "B", "A"]))
    found = weft.as_of(LABELS, shouted, at="at", by={"user": "lower(Client)"}, **ASKED)
    assert found["spend_w"].to_pylist() == [4.0, 3.0]


def test_empty_tables_have_features_too() -> None:
    for points, events, rows in ((LABELS.slice(0, 0), ORDERS, 0), (LABELS, ORDERS.slice(0, 0), 2)):
        for engine in ("reference", "local"):
            found = weft.as_of(points, events, at="at", by=["user"], engine=engine, **ASKED)
            assert found["spend_w"].to_pylist() == [None] * rows
            assert found.schema.field("spend_w").type == pa.float64()
    assert weft.rolling(ORDERS.slice(0, 0), by=["user"], **ASKED).num_rows == 0


@pytest.mark.parametrize(
    ("options", "said", "hint"),
    [
        ({"windows": {"w": weft.tumbling("1 hour")}}, "'w' does not end at an anchor", "'1 hour'"),
        ({"windows": {"w": "1 huor"}}, "'w' does not end at an anchor", "weft.rows(10)"),
        ({"windows": {"w": 0}}, "a trailing window of 0s holds nothing", "greater than zero"),
        ({"windows": {}}, "no window is asked of 'events'", "add one"),
        ({"windows": ["1 hour"]}, "windows of 'events' is no mapping", "name each"),
        ({"aggs": {}}, "asks for no aggregate", "add one"),
        ({"aggs": {"n": 3}}, "'n' is 3, not an aggregate", "weft.agg"),
        ({"aggs": {"n": weft.agg.sum("amuont")}}, "no column 'amuont'", "'amount'"),
        ({"aggs": {"n": weft.agg.sum("user")}}, "user is of type string", "needs numbers"),
        ({"closed": "lft"}, "cannot be closed at 'lft'", "'left'"),
        ({"round": 0}, "cannot be rounded to 0s", "greater than zero"),
        ({"at": "when"}, "the points have no column 'when'", "the columns are"),
        ({"time": "when"}, "the events have no column 'when'", "the columns are"),
        ({"by": ["usr"]}, "have no column 'usr'", "'user'"),
        ({"at": "user"}, "the time column 'user' is of type string", "use a timestamp"),
        ({"where": "amount"}, "amount is of type double, not a condition", "compare it"),
        ({"engine": "duck"}, "unknown engine 'duck'", "use one of"),
        ({"engine": "spark-stream"}, "is for streams, and there is none", "spark.readStream"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(options: dict[str, Any], said: str, hint: str) -> None:
    with pytest.raises(weft.WeftError) as told:
        weft.as_of(LABELS, ORDERS, **{"time": "ts", "at": "at", "by": ["user"], **ASKED, **options})
    assert said in told.value.message
    assert hint in (told.value.hint or "")


def test_which_timestamp_counts_must_be_said_where_there_are_several() -> None:
    twice = ORDERS.append_column("paid", ORDERS["ts"])
    with pytest.raises(weft.QueryError, match="there are several: ts, paid"):
        weft.rolling(twice, **ASKED)


def test_a_source_among_several_must_be_weft_events() -> None:
    with pytest.raises(weft.QueryError, match=r"not weft\.Events"):
        weft.as_of(LABELS, {"orders": ORDERS}, **ASKED)
    with pytest.raises(weft.QueryError, match="there are no events"):
        weft.as_of(LABELS, {}, **ASKED)


def test_a_source_named_points_does_not_hide_the_points() -> None:
    found = weft.as_of(LABELS, {"points": weft.Events(ORDERS)}, by=["user"], **ASKED)
    assert found["points_spend_w"].to_pylist() == [4.0, 3.0]


def test_sums_are_within_1e_9_of_the_exact_sum_whatever_left_the_window() -> None:
    draw = np.random.default_rng(4)
    values = draw.normal(size=3000) * 10.0 ** draw.integers(-12, 13, 3000)
    values[::97] = 1e200
    times = np.sort(draw.integers(0, 10_000, 3000))
    rows = pa.table({"ts": times, "x": values})
    found = weft.rolling(
        rows, time="ts", windows={"w": 40}, aggs={"s": weft.agg.sum("x"), "m": weft.agg.avg("x")}
    )
    for at, total, mean in zip(times, *(found[f"{n}_w"].to_pylist() for n in "sm"), strict=True):
        inside = values[(times >= at - 40) & (times <= at)]
        exact = math.fsum(inside)
        size = math.fsum(abs(inside))
        assert abs(total - exact) <= 1e-9 * max(abs(exact), 1e-7 * size)
        assert abs(mean - exact / inside.size) <= 1e-9 * max(abs(exact), 1e-7 * size)


def test_integer_sums_beyond_64_bits_are_refused_and_those_within_are_exact() -> None:
    big = 2**62
    rows = pa.table({"ts": [0, 1, 2, 3], "x": [big, big - 1, -big, big]})
    asked: dict[str, Any] = {"time": "ts", "aggs": {"s": weft.agg.sum("x")}}
    found = weft.rolling(rows, windows={"w": 1}, **asked)
    assert found["s_w"].to_pylist() == [big, 2 * big - 1, -1, 0]
    with pytest.raises(weft.DataError, match="64 bits"):
        weft.rolling(pa.table({"ts": [0, 1], "x": [big, big]}), windows={"w": 1}, **asked)


def test_times_near_the_end_of_time_do_not_wrap() -> None:
    rows = pa.table({"ts": [-(2**63) + 5, 0, 2**63 - 2]})
    asked: dict[str, Any] = {"time": "ts", "aggs": {"n": weft.agg.count()}}
    for engine in ("reference", "local"):
        found = weft.rolling(rows, windows={"w": 2**62}, engine=engine, **asked)
        assert found["n_w"].to_pylist() == [1, 1, 1]
        rounded = weft.rolling(rows, windows={"w": 10}, round=1000, engine=engine, **asked)
        assert rounded["n_w"].to_pylist() == [1, 1, 1]


PLAN = """\
FEATURES as of, for local
statistics: 4 events, 2 points; kernels 0.00012 ms, sorted 1x

p0 := POINTS points at at
s1 := SCAN events by ts where items > 1
t2 := TRAIL 30us [t-30us, t) of s1 at p0 by user: sum(items) with prefix_sums, \
count(items) with prefix_sums, min(amount) with sliding_ranges, distinct(user) with sliding_counts
t3 := ROWS 2 before t of s1 at p0 by user: sum(items) with prefix_sums, \
count(items) with prefix_sums, min(amount) with sliding_ranges, distinct(user) with sliding_counts
t2 -> items_30us = sum(items), lo_30us = min(amount), who_30us = count_distinct(user)
t3 -> items_last = sum(items), lo_last = min(amount), who_last = count_distinct(user)"""


def _plan(**options: Any) -> FeaturePlan:
    asked: dict[str, Any] = {
        "windows": {"30us": 30, "last": weft.rows(2)},
        "aggs": {
            "items": weft.agg.sum("items"),
            "lo": weft.agg.min("amount"),
            "who": weft.agg.count_distinct("user"),
        },
        "where": "items > 1",
    }
    plan = weft.as_of(
        LABELS, ORDERS, time="ts", at="at", by=["user"], explain=True, **{**asked, **options}
    )
    assert isinstance(plan, FeaturePlan)
    return plan


def test_a_plan_says_what_is_computed_and_how() -> None:
    lines, wanted = str(_plan()).splitlines(), PLAN.splitlines()
    assert [line for line in lines if "kernels" not in line] == [
        line for line in wanted if "kernels" not in line
    ]
    assert lines[1].startswith("statistics: 4 events, 2 points; kernels ")


def test_equal_windows_under_two_labels_are_one_trail() -> None:
    plan = _plan(windows={"1m": "1 minute", "60s": "60 seconds"})
    assert len(plan.trails) == 1
    found = weft.as_of(
        LABELS, ORDERS, at="at", windows={"1m": "1 minute", "60s": "60 seconds"}, aggs=ASKED["aggs"]
    )
    assert found["spend_1m"].equals(found["spend_60s"])


def test_what_a_plan_names_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, str]] = []
    run = choice._run

    def recorded(*given: Any) -> Any:
        *_, operation, technique = given
        ran.append((technique, operation.name))
        return run(*given)

    monkeypatch.setattr(choice, "_run", recorded)
    draw = np.random.default_rng(1)
    rows = 20_000
    columns = {"ts": np.arange(rows), "x": draw.normal(size=rows), "q": np.ones(rows, np.int64)}
    events = pa.table(columns)
    asked: dict[str, Any] = {
        "windows": {"w10": 10, "w40": 40},
        "aggs": {"lo": weft.agg.min("x"), "s": weft.agg.sum("x"), "q": weft.agg.sum("q")},
        "time": "ts",
        "at": "ts",
    }
    plan = weft.as_of(events.select(["ts"]), events, explain=True, **asked)
    pairs = zip(plan.trails[0].partials, plan.trails[0].techniques, strict=True)
    assert {str(p): technique for p, technique in pairs} == {
        "min(x)": "sliding_ranges",
        "sum(x)": "sliding_ranges",
        "count(x)": "prefix_sums",
        "sum(q)": "prefix_sums",
        "count(q)": "prefix_sums",
    }
    weft.as_of(events.select(["ts"]), events, **asked)
    # Counts of columns without NULL are differences of positions, which need no prefix sum.
    assert set(ran) == {
        ("sliding_ranges", "min_float64"),
        ("sliding_ranges", "compensated_sum"),
        ("prefix_sums", "count"),
    }


def test_a_broken_plan_is_named_by_its_invariant() -> None:
    from dataclasses import replace

    plan = _plan()
    features = plan.features
    trail = features.trails[0]
    wrong = {
        "technique-is-legal": replace(trail, techniques=("two_stacks", *trail.techniques[1:])),
        "one-technique-each": replace(trail, techniques=trail.techniques[1:]),
        "results-have-their-partials": replace(
            trail, partials=trail.partials[:1], techniques=trail.techniques[:1]
        ),
    }
    for invariant, changed in wrong.items():
        trails = (changed, *features.trails[1:])
        with pytest.raises(InternalError, match=invariant):
            validate_features(replace(plan, features=replace(features, trails=trails)))
    twice = replace(features, outputs=(*features.outputs, features.outputs[0]))
    with pytest.raises(InternalError, match="columns-have-names-of-their-own"):
        validate_features(replace(plan, features=twice))


def test_text_that_is_no_plan_of_features_is_refused() -> None:
    text = _plan().explain("json")
    assert FeaturePlan.from_json(text).explain() == _plan().explain()
    for broken in ("{}", "[", text.replace('"trailing"', '"sideways"'), text.replace("30", "31")):
        with pytest.raises(weft.QueryError, match="not a plan of features"):
            FeaturePlan.from_json(broken)
    with pytest.raises(weft.QueryError, match="cannot be explained as 'html'"):
        _plan().explain("html")  # type: ignore[arg-type]


def test_the_kinds_that_slide_by_counts_are_those_that_the_local_engine_holds_as_bags() -> None:
    from weft.engines.local.partials.bags import Bags
    from weft.engines.local.partials.lift import lift, row_partials
    from weft.plan.anchors.nodes import MULTISETS

    times = np.arange(2)
    for kind in sorted(MULTISETS):
        from weft.aggregates import Partial

        lifted = lift(Partial(kind, ("x",)), (pa.array([1, 2]),), times)
        assert isinstance(row_partials(lifted, times), Bags)


def test_multisets_of_very_many_rows_are_lowered_in_parts() -> None:
    rows = 150_000
    numbers = np.arange(rows)
    table = pa.table({"ts": numbers, "q": numbers % 7})
    aggs = {"exact": weft.agg.count_distinct("q"), "about": weft.agg.approx_count_distinct("q")}
    found = weft.rolling(table, time="ts", windows={"w": 10}, aggs=aggs)
    wanted = np.minimum(numbers + 1, 7)
    assert np.array_equal(found["exact_w"].to_numpy(), wanted)
    assert np.array_equal(found["about_w"].to_numpy(), wanted)
