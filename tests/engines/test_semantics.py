"""Every sentence of docs/semantics.md, tested under its own words."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException

import weft
from asked_features import ROW, described
from weft.engines.local.anchors.rolling_rows import TIME
from weft.engines.local.anchors.rolling_state import RollingState

ENGINES = [
    "reference",
    "local",
    pytest.param("spark native", marks=pytest.mark.spark),
    pytest.param("spark columnar", marks=pytest.mark.spark),
]
# What goes wrong in an executor reaches the driver as Spark's own error, with the cause in it.
FAILURES = (weft.DataError, PySparkException)
UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


def table(times: list[Any], **columns: Any) -> pa.Table:
    """A table with times in seconds since 1970."""
    stamps = [None if t is None else int(t * SECOND) for t in times]
    arrays = {"ts": pa.array(stamps, pa.int64()).cast(pa.timestamp("us", "UTC"))}
    return pa.table({**arrays, **columns})


def aggregate(events: pa.Table, engine: str, **options: Any) -> pa.Table:
    """Run on an engine, on Spark by one strategy; rows of Spark, which has no order, are sorted."""
    name, _, strategy = engine.partition(" ")
    forced = {"strategy": strategy} if strategy else {}
    try:
        result = weft.aggregate(events, time="ts", engine=name, **forced, **options)
    except weft.UnsupportedError as refused:
        if strategy != "native":
            raise
        pytest.skip(f"native leaves it to columnar: {refused.message}")
    if not strategy:
        return result
    by = ["window_end", "window", "window_start", *options.get("by", ())]
    return result.sort_by([(name, "ascending") for name in by])


def rows(events: pa.Table, window: Any, engine: str, agg: Any = None, **options: Any) -> list[dict]:
    aggs = agg if isinstance(agg, dict) else {"v": agg or weft.agg.count()}
    return aggregate(events, engine, windows={"w": window}, aggs=aggs, **options).to_pylist()


def spans(found: list[dict]) -> list[tuple[float, float]]:
    """Bounds in seconds since 1970."""
    one = dt.timedelta(seconds=1)
    return [((r["window_start"] - EPOCH) / one, (r["window_end"] - EPOCH) / one) for r in found]


def value(events: pa.Table, agg: Any, engine: str) -> Any:
    (row,) = rows(events, weft.tumbling("1 day"), engine, agg)
    return row["v"]


def test_times_are_whole_microseconds_in_utc(engine: str) -> None:
    nanos = pa.table({"ts": pa.array([1_999], pa.timestamp("ns", "UTC"))})
    (row,) = rows(nanos, weft.tumbling(1), engine)
    assert row["window_start"] == EPOCH + dt.timedelta(microseconds=1)


def test_a_window_instance_holds_its_start_and_not_its_end(engine: str) -> None:
    assert spans(rows(table([0, 10]), weft.tumbling("10 seconds"), engine)) == [(0, 10), (10, 20)]


def test_instances_of_a_periodic_window_start_at_the_offset_plus_any_multiple_of_the_slide_also_before_1970(
    engine: str,
) -> None:
    window = weft.tumbling("10 seconds", offset="3 seconds")
    assert spans(rows(table([-8, -7, 3]), window, engine)) == [(-17, -7), (-7, 3), (3, 13)]


def test_a_result_row_exists_for_a_key_and_an_instance_if_and_only_if_at_least_one_of_the_keys_events_lies_in_it(
    engine: str,
) -> None:
    events = table([1, 25], k=["a", "b"])
    found = rows(events, weft.tumbling("10 seconds"), engine, by=["k"])
    assert [(r["k"], s) for r, s in zip(found, spans(found), strict=True)] == [
        ("a", (0, 10)),
        ("b", (20, 30)),
    ]


def test_the_range_of_a_hopping_window_need_not_be_a_multiple_of_its_slide(engine: str) -> None:
    found = rows(table([4]), weft.hopping("5 seconds", "3 seconds"), engine)
    assert spans(found) == [(0, 5), (3, 8)]


def test_a_range_smaller_than_the_slide_samples_and_events_in_the_gaps_count_nowhere(
    engine: str,
) -> None:
    found = rows(table([1, 4, 6]), weft.hopping("2 seconds", "5 seconds"), engine)
    assert [(s, r["v"]) for r, s in zip(found, spans(found), strict=True)] == [
        ((0, 2), 1),
        ((5, 7), 1),
    ]


def test_a_cumulating_window_has_one_instance_per_step_all_from_the_same_start(engine: str) -> None:
    found = rows(table([0, 3]), weft.cumulating("6 seconds", "2 seconds"), engine)
    assert [(s, r["v"]) for r, s in zip(found, spans(found), strict=True)] == [
        ((0, 2), 1),
        ((0, 4), 2),
        ((0, 6), 2),
    ]


def test_a_calendar_window_follows_its_time_zone_through_23_and_25_hour_days(engine: str) -> None:
    noons = [dt.datetime(2024, 3, 31, 12, tzinfo=UTC), dt.datetime(2024, 10, 27, 12, tzinfo=UTC)]
    events = pa.table({"ts": pa.array(noons, pa.timestamp("us", "UTC"))})
    found = rows(events, weft.calendar("day", "Europe/Berlin"), engine)
    assert [(b - a) / 3600 for a, b in spans(found)] == [23, 25]
    months = rows(events, weft.calendar("month", "America/New_York"), engine)
    assert [(b - a) / 3600 for a, b in spans(months)] == [31 * 24 - 1, 31 * 24]


def test_an_iso_week_starts_on_monday(engine: str) -> None:
    sunday = pa.table(
        {"ts": pa.array([dt.datetime(2024, 6, 9, 23, tzinfo=UTC)], pa.timestamp("us", "UTC"))}
    )
    (row,) = rows(sunday, weft.calendar("week"), engine)
    assert row["window_start"] == dt.datetime(2024, 6, 3, tzinfo=UTC)


def test_an_event_whose_time_is_null_is_dropped(engine: str) -> None:
    assert value(table([1, None, 2]), weft.agg.count(), engine) == 2


def test_a_session_ends_one_gap_after_its_last_event(engine: str) -> None:
    assert spans(rows(table([1, 3, 20]), weft.session("5 seconds"), engine)) == [(1, 8), (20, 25)]


def test_two_events_exactly_one_gap_apart_are_in_the_same_session(engine: str) -> None:
    found = rows(table([1, 6]), weft.session("5 seconds"), engine)
    assert [(spans(found)[0], found[0]["v"])] == [((1, 11), 2)]
    assert len(found) == 1


def test_a_counting_window_counts_the_events_of_one_key_in_the_order_of_their_times(
    engine: str,
) -> None:
    events = table([3, 1, 2, 9], k=["a", "a", "a", "b"], x=[30, 10, 20, 90])
    found = rows(events, weft.counting(2, 1), engine, weft.agg.sum("x"), by=["k"])
    assert [(r["k"], r["v"]) for r in found] == [("a", 30), ("a", 50)]


def test_a_counting_window_that_is_not_full_gives_no_row(engine: str) -> None:
    assert len(rows(table([1, 2, 3, 4, 5]), weft.counting(2), engine)) == 2


def test_a_punctuated_window_begins_at_each_event_for_which_the_predicate_holds_and_ends_before_the_next(
    engine: str,
) -> None:
    events = table([1, 2, 3, 4, 5], x=[1, 0, 0, 1, 0])
    found = rows(events, weft.punctuated("x = 1"), engine)
    assert [r["v"] for r in found] == [3, 2]


def test_events_before_the_first_punctuation_are_in_no_window(engine: str) -> None:
    found = rows(table([1, 2, 3], x=[0, 1, 0]), weft.punctuated("x = 1"), engine)
    assert [r["v"] for r in found] == [2]
    assert rows(table([1, 2], x=[0, None]), weft.punctuated("x = 1"), engine) == []


def test_a_measured_window_is_periodic_over_its_column(engine: str) -> None:
    events = table([1, 2, 3, 4], km=[0.0, 4.0, 5.0, 12.0])
    found = rows(events, weft.measured("km", 10, 5), engine)
    assert [(s[0], r["v"]) for r, s in zip(found, spans(found), strict=True)] == [
        (1, 2),  # [-5, 5)
        (1, 3),  # [0, 10)
        (3, 2),  # [5, 15)
        (4, 1),  # [10, 20)
    ]


def test_a_measured_column_that_decreases_within_a_key_is_an_error(engine: str) -> None:
    with pytest.raises(FAILURES, match="never decreases"):
        rows(table([1, 2], km=[5, 4]), weft.measured("km", 10, 5), engine)


class Trace(weft.UserWindow):
    """Begins at every event, ends after two more."""

    def ends(self, event: Any, state: dict[str, Any]) -> int:
        state["asked"] = [*state.get("asked", []), "ends"]
        return 1 if state.get("open", 0) == 2 else 0

    def begins(self, event: Any, state: dict[str, Any]) -> int:
        assert state["asked"][-1] == "ends"
        state["open"] = min(state.get("open", 0) + 1, 2)
        return 1


def test_a_user_defined_window_is_asked_for_ends_before_begins_and_its_windows_end_in_the_order_in_which_they_began(
    engine: str,
) -> None:
    found = rows(table([1, 2, 3, 4], x=[1, 2, 3, 4]), Trace(), engine, weft.agg.sum("x"))
    assert [r["v"] for r in found[:2]] == [3, 5]


def test_windows_that_are_still_open_when_the_input_ends_are_closed_there(engine: str) -> None:
    found = rows(table([1, 2, 3], x=[1, 2, 4]), Trace(), engine, weft.agg.sum("x"))
    assert sorted(r["v"] for r in found) == [3, 4, 6]


def test_a_window_that_events_delimit_spans_from_its_first_event_to_one_microsecond_after_its_last(
    engine: str,
) -> None:
    assert spans(rows(table([1, 2]), weft.counting(2), engine)) == [(1, 2.000001)]


def test_null_values_are_skipped_by_aggregates(engine: str) -> None:
    events = table([1, 2, 3], x=[4, None, 2])
    asked = {
        "lo": weft.agg.min("x"),
        "total": weft.agg.sum("x"),
        "mean": weft.agg.avg("x"),
        "n": weft.agg.count("x"),
        "first": weft.agg.first("x"),
        "kinds": weft.agg.count_distinct("x"),
    }
    (row,) = rows(events, weft.tumbling("1 day"), engine, asked)
    assert [row[name] for name in asked] == [2, 6, 3.0, 2, 4, 2]


def test_counting_rows_counts_null_values_too(engine: str) -> None:
    assert value(table([1, 2], x=pa.array([None, None], pa.int64())), weft.agg.count(), engine) == 2


def test_an_aggregate_without_any_value_is_null_and_a_count_is_zero(engine: str) -> None:
    events = table([1], x=pa.array([None], pa.float64()))
    for agg in (weft.agg.sum, weft.agg.min, weft.agg.avg, weft.agg.median, weft.agg.last):
        assert value(events, agg("x"), engine) is None
    assert value(events, weft.agg.count("x"), engine) == 0
    assert value(events, weft.agg.count_distinct("x"), engine) == 0
    untyped = table([1, 2], x=pa.nulls(2))
    assert value(untyped, weft.agg.avg("x"), engine) is None
    assert value(untyped, weft.agg.count("x"), engine) == 0


def test_nan_is_greater_than_any_number_and_equal_to_itself(engine: str) -> None:
    events = table([1, 2, 3], x=[math.nan, math.inf, math.nan])
    assert math.isnan(value(events, weft.agg.max("x"), engine))
    assert value(events, weft.agg.min("x"), engine) == math.inf
    assert value(events, weft.agg.count_distinct("x"), engine) == 2


def test_zero_and_negative_zero_are_the_same_value(engine: str) -> None:
    assert value(table([1, 2], x=[0.0, -0.0]), weft.agg.count_distinct("x"), engine) == 1
    found = rows(table([1, 2], x=[0.0, -0.0]), weft.tumbling("1 day"), engine, by=["x"])
    assert len(found) == 1


def test_the_sum_of_integers_is_exact_and_an_error_beyond_64_bits(engine: str) -> None:
    assert value(table([1, 2], x=[2**62, 2**62 - 1]), weft.agg.sum("x"), engine) == 2**63 - 1
    with pytest.raises(FAILURES, match=r"64 bits|OVERFLOW"):
        value(table([1, 2], x=[2**62, 2**62]), weft.agg.sum("x"), engine)


def test_a_sum_of_doubles_is_within_1e_9_of_the_exact_sum(engine: str) -> None:
    if engine.startswith("spark"):
        pytest.skip("never: Catalyst adds doubles up as stock Spark does")
    numbers = [1e16, *([0.1] * 1000), -1e16]
    got = value(table(list(range(len(numbers))), x=numbers), weft.agg.sum("x"), engine)
    assert got == pytest.approx(math.fsum(numbers), rel=1e-9)


def test_a_sum_of_decimals_keeps_their_scale(engine: str) -> None:
    cents = pa.array([Decimal("0.10"), Decimal("0.20")], pa.decimal128(10, 2))
    assert str(value(table([1, 2], x=cents), weft.agg.sum("x"), engine)) == "0.30"


def test_the_average_of_integers_is_a_double(engine: str) -> None:
    assert value(table([1, 2], x=[1, 2]), weft.agg.avg("x"), engine) == 1.5


def test_the_average_of_decimals_has_four_digits_more_the_last_of_them_rounded_half_up(
    engine: str,
) -> None:
    cents = pa.array([Decimal("0.01"), *[Decimal(0)] * 31], pa.decimal128(12, 2))
    for sign, wanted in ((1, "0.000313"), (-1, "-0.000313")):  # of 0.0003125
        events = table(range(32), x=pc.multiply(cents, sign).cast(pa.decimal128(12, 2)))
        found = rows(events, weft.tumbling("1 day"), engine, weft.agg.avg("x"))
        assert [row["v"] for row in found] == [Decimal(wanted)]


def test_a_sample_variance_needs_two_values(engine: str) -> None:
    assert value(table([1], x=[3.0]), weft.agg.var("x"), engine) is None
    assert value(table([1], x=[3.0]), weft.agg.var_pop("x"), engine) == 0.0
    assert value(table([1, 2], x=[1.0, 3.0]), weft.agg.var("x"), engine) == 2.0


def test_a_variance_of_values_of_which_one_is_infinite_is_nan(engine: str) -> None:
    x = [math.inf, 1.0, math.inf, math.inf, -math.inf, 2.0]
    events = table([1, 2, 3, 4, 5, 6], k=[1, 1, 2, 3, 3, 3], x=x, y=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    calls = (weft.agg.var_pop("x"), weft.agg.skewness("x"), weft.agg.covar_pop("x", "y"))
    aggs = {str(call): call for call in calls}
    for window in (weft.tumbling("1 day"), weft.session("2 seconds"), weft.hopping("1 day", "8 h")):
        found = rows(events, window, engine, aggs, by=["k"])
        assert {row["k"] for row in found} == {1, 2, 3}
        assert all(math.isnan(row[name]) for row in found for name in aggs)


def test_the_first_value_is_the_earliest_one_and_of_equal_times_the_least(engine: str) -> None:
    assert value(table([2, 1, 1], x=[0, 7, 5]), weft.agg.first("x"), engine) == 5


def test_the_last_value_is_the_latest_one_and_of_equal_times_the_greatest(engine: str) -> None:
    assert value(table([2, 2, 1], x=[4, 6, 9]), weft.agg.last("x"), engine) == 6


def test_the_value_by_a_minimum_or_maximum_is_that_of_the_least_or_greatest_event_by_by_time_value(
    engine: str,
) -> None:
    events = table([1, 2, 2, 3], x=["a", "b", "c", None], y=[5, 5, 5, 4])
    assert value(events, weft.agg.max_by("x", "y"), engine) == "c"
    assert value(events, weft.agg.min_by("x", "y"), engine) is None


def test_an_exact_percentile_interpolates_between_its_neighbours(engine: str) -> None:
    events = table([1, 2, 3], x=[1, 2, 4])
    assert value(events, weft.agg.percentile("x", 0.75), engine) == 3.0
    assert value(events, weft.agg.median("x"), engine) == 2.0


def test_an_approximate_percentile_is_within_one_percent_of_a_value_at_its_rank(
    engine: str,
) -> None:
    numbers = [float(i) for i in range(1, 1001)]
    got = value(table(list(range(1000)), x=numbers), weft.agg.approx_percentile("x", 0.9), engine)
    assert got == pytest.approx(900, rel=0.011)


def test_null_is_a_key_like_any_other(engine: str) -> None:
    found = rows(table([1, 2, 3], k=["a", None, None]), weft.tumbling("1 day"), engine, by=["k"])
    assert {(r["k"], r["v"]) for r in found} == {("a", 1), (None, 2)}


def test_a_filter_keeps_an_event_only_where_it_is_true_not_where_it_is_null(engine: str) -> None:
    events = table([1, 2, 3], x=[1, -1, None])
    assert [r["v"] for r in rows(events, weft.tumbling("1 day"), engine, where="x > 0")] == [1]
    assert [r["v"] for r in rows(events, weft.tumbling("1 day"), engine, where="NOT x > 0")] == [1]


def test_a_query_without_keys_has_one_group(engine: str) -> None:
    assert len(rows(table([1, 2], k=["a", "b"]), weft.tumbling("1 day"), engine)) == 1


def test_keys_may_be_expressions(engine: str) -> None:
    events = table([1, 2, 3], k=["a", "A", "b"])
    found = rows(events, weft.tumbling("1 day"), engine, by={"letter": "upper(k)"})
    assert [(r["letter"], r["v"]) for r in found] == [("A", 2), ("B", 1)]


def test_a_result_carries_the_keys_the_label_the_bounds_and_the_aggregates_in_this_order(
    engine: str,
) -> None:
    result = aggregate(
        table([1], k=["a"]),
        engine,
        by=["k"],
        windows={"daily": weft.tumbling("1 day")},
        aggs={"n": weft.agg.count()},
    )
    assert result.column_names == ["k", "window", "window_start", "window_end", "n"]
    assert result["window"].to_pylist() == ["daily"]


def test_bounds_have_the_zone_of_the_event_time_and_utc_where_it_has_none_of_its_own(
    engine: str,
) -> None:
    for kind, wanted in [
        (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "Europe/Berlin")),
        (pa.timestamp("ms"), pa.timestamp("us")),
        (pa.int64(), pa.timestamp("us", "UTC")),
    ]:
        events = pa.table({"ts": pa.array([0], pa.int64()).cast(kind)})
        if engine.startswith("spark") and wanted.tz not in (None, "UTC"):
            continue  # a Spark timestamp has no zone of its own, only its session has
        result = aggregate(
            events, engine, windows={"w": weft.tumbling("1 day")}, aggs={"n": weft.agg.count()}
        )
        assert result.schema.field("window_start").type == wanted


def test_results_are_ordered_by_end_window_start_and_key(engine: str) -> None:
    if engine.startswith("spark"):
        pytest.skip("never: a DataFrame has no order")
    events = table([11, 1, 2], k=["b", "b", "a"])
    result = aggregate(
        events,
        engine,
        by=["k"],
        windows={"20s": weft.tumbling("20 seconds"), "10s": weft.tumbling("10 seconds")},
        aggs={"n": weft.agg.count()},
    )
    found = [(r["window"], r["k"]) for r in result.to_pylist()]
    assert found == [("10s", "a"), ("10s", "b"), ("20s", "a"), ("20s", "b"), ("10s", "b")]


def test_a_plan_never_changes_a_result(engine: str) -> None:
    from weft.planners.portfolio import PLANNERS

    events = table([1, 2, 11, 35], k=["a", "b", "a", "a"], x=[1, 2, 3, 4])
    windows = {str(n): weft.tumbling(f"{n} seconds") for n in (10, 20, 30)}
    asked = {"total": weft.agg.sum("x"), "mid": weft.agg.median("x")}
    results = [
        aggregate(events, engine, by=["k"], windows=windows, aggs=asked, planner=planner)
        for planner in ("auto", *PLANNERS)
    ]
    assert all(result.equals(results[0]) for result in results)


def as_of(points: pa.Table, events: Any, engine: str, **options: Any) -> list[dict]:
    """Rows of points with features, in the order of their `id`."""
    name, _, strategy = engine.partition(" ")
    if strategy == "native":
        pytest.skip("never: windows at anchors have one way on Spark")
    found = weft.as_of(points, events, at="at", engine=name, **options)
    return found.sort_by("id").to_pylist()


def points_at(times: list[Any], **columns: Any) -> pa.Table:
    made = table(times, id=list(range(len(times))), **columns)
    return made.rename_columns(["at", *made.column_names[1:]])


def counts(points: pa.Table, events: Any, engine: str, **options: Any) -> list[int]:
    windows = {"windows": {"w": "10 seconds"}} | options
    found = as_of(points, events, engine, time="ts", aggs={"n": weft.agg.count()}, **windows)
    return [row["n_w"] for row in found]


def rolled(events: pa.Table, engine: str, **options: Any) -> list[dict]:
    """Rows of `rolling`, in the order of their `id`."""
    name, _, strategy = engine.partition(" ")
    if strategy == "native":
        pytest.skip("never: windows at anchors have one way on Spark")
    asked = {"aggs": {"n": weft.agg.count()}, "windows": {"w": "10 seconds"}} | options
    return weft.rolling(events, time="ts", engine=name, **asked).sort_by("id").to_pylist()


def test_a_window_at_an_anchor_of_time_t_and_range_r_holds_the_times_from_t_r_to_t(
    engine: str,
) -> None:
    events = table([9.999999, 10, 15, 20, 20.000001])
    assert counts(points_at([20]), events, engine, closed="both") == [3]


def test_closed_says_which_of_its_two_ends_a_window_at_an_anchor_holds_and_as_of_windows_hold_the_left_one_alone_unless_told_otherwise(
    engine: str,
) -> None:
    events, points = table([10, 15, 20]), points_at([20])
    wanted = {"both": 3, "left": 2, "right": 2, "neither": 1}
    for closed, count in wanted.items():
        assert counts(points, events, engine, closed=closed) == [count]
    assert counts(points, events, engine) == [wanted["left"]]
    (row,) = as_of(
        points,
        table([10, 15, 20], x=[1, 2, 4]),
        engine,
        windows={"w": "10 seconds"},
        aggs={"x": weft.agg.sum("x")},
        closed="right",
    )
    assert row["x_w"] == 6


def test_every_anchor_keeps_its_row_and_its_columns_also_where_no_event_is_in_its_window(
    engine: str,
) -> None:
    points = points_at([100, 5], k=["a", "nobody"], note=["kept", None])
    aggs = {"n": weft.agg.count(), "lo": weft.agg.min("x"), "d": weft.agg.count_distinct("x")}
    found = as_of(points, table([5], k=["a"], x=[1]), engine, by=["k"], windows={"w": 1}, aggs=aggs)
    assert [(r["k"], r["note"]) for r in found] == [("a", "kept"), ("nobody", None)]
    assert [(r["n_w"], r["lo_w"], r["d_w"]) for r in found] == [(0, None, 0)] * 2


def test_an_anchor_without_a_time_has_empty_windows(engine: str) -> None:
    windows = {"windows": {"w": "1 day", "last": weft.rows(2)}}
    aggs = {"n": weft.agg.count()}
    (row,) = as_of(points_at([None]), table([1, 2]), engine, aggs=aggs, **windows)
    assert (row["n_w"], row["n_last"]) == (0, 0)
    rows = rolled(table([None, 2], id=[0, 1]), engine, **windows)
    assert [(r["n_w"], r["n_last"]) for r in rows] == [(0, 0), (1, 1)]


def test_an_anchors_key_may_be_null_and_meets_the_events_whose_key_is_null(engine: str) -> None:
    events = table([1, 2, 3], k=["a", None, None])
    assert counts(points_at([9, 9], k=[None, "a"]), events, engine, by=["k"]) == [2, 1]


def test_all_events_of_one_instant_are_in_a_window_or_none_of_them_is(engine: str) -> None:
    events = table([5, 5, 5], id=[0, 1, 2])
    assert [row["n_w"] for row in rolled(events, engine)] == [3, 3, 3]
    assert [row["n_w"] for row in rolled(events, engine, closed="left")] == [0, 0, 0]


def test_a_row_of_rolling_counts_itself_where_the_window_holds_its_right_end(engine: str) -> None:
    events = table([0, 4, 20], id=[0, 1, 2])
    assert [row["n_w"] for row in rolled(events, engine, closed="right")] == [1, 2, 1]
    assert [row["n_w"] for row in rolled(events, engine, closed="neither")] == [0, 1, 0]


def test_the_last_rows_of_a_key_are_counted_back_from_the_anchor_however_long_ago_they_were(
    engine: str,
) -> None:
    events = table([-1e9, 0, 5, 9], x=[1, 2, 4, 8])
    options = {"windows": {"w": weft.rows(3)}, "aggs": {"x": weft.agg.sum("x")}}
    found = as_of(points_at([-1e8, 9, 1e9]), events, engine, **options)
    assert [row["x_w"] for row in found] == [1, 7, 14]


def test_the_last_rows_up_to_a_row_of_rolling_end_at_the_row_itself_and_rows_of_one_instant_are_in_the_order_of_the_table(
    engine: str,
) -> None:
    # Where a table has no order, as on Spark, the values of the rows decide.
    events = table([5, 5, 5, 1], id=[0, 1, 2, 3], x=[1, 2, 4, 8])
    options = {"windows": {"w": weft.rows(2)}, "aggs": {"x": weft.agg.sum("x")}}
    assert [row["x_w"] for row in rolled(events, engine, **options)] == [9, 3, 6, 8]
    before = rolled(events, engine, closed="left", **options)
    assert [row["x_w"] for row in before] == [8, 9, 3, None]


def test_a_rounded_window_begins_at_the_multiple_of_the_rounding_at_or_before_its_first_instant(
    engine: str,
) -> None:
    events, points = table([7.999999, 8, 9, 17]), points_at([19.5])
    assert counts(points, events, engine) == [1]
    assert counts(points, events, engine, round="8 seconds") == [3]
    assert counts(points_at([18]), events, engine, round="8 seconds", closed="right") == [2 + 1]


def test_a_filter_of_events_leaves_every_anchor_its_row(engine: str) -> None:
    events = table([1, 2, 3], id=[0, 1, 2], x=[1, -1, 1])
    assert [row["n_w"] for row in rolled(events, engine, where="x > 0")] == [1, 1, 2]
    assert counts(points_at([9]), events, engine, where="x > 0") == [2]


def test_columns_of_anchors_come_first_then_one_column_for_each_window_and_aggregate(
    engine: str,
) -> None:
    options = {"windows": {"1s": "1 second", "last": weft.rows(1)}}
    aggs = {"n": weft.agg.count(), "x": weft.agg.max("x")}
    (row,) = as_of(points_at([1], extra=["e"]), table([0], x=[7]), engine, aggs=aggs, **options)
    assert list(row) == ["at", "id", "extra", "n_1s", "x_1s", "n_last", "x_last"]


def test_a_feature_that_has_the_name_of_another_column_is_refused(engine: str) -> None:
    with pytest.raises(weft.QueryError, match="'n_w' has the name of another column"):
        counts(points_at([1], n_w=[0]), table([1]), engine)


def test_several_sources_of_events_give_what_each_gives_alone(engine: str) -> None:
    points = points_at([10, 20], user=["a", "b"], shop=[1, 1])
    clicks = table([5, 15, 15], user=["a", "b", "b"])
    orders = table([1, 11], shop=[1, 1], x=[3, 5])
    found = as_of(
        points,
        {
            "clicks": weft.Events(clicks, by=["user"], aggs={"n": weft.agg.count()}),
            "orders": weft.Events(orders, by=["shop"], aggs={"x": weft.agg.sum("x")}),
        },
        engine,
        windows={"w": "10 seconds"},
    )
    assert [(r["clicks_n_w"], r["orders_x_w"]) for r in found] == [(1, 3), (2, 5)]


def stream(**options: Any) -> RollingState:
    """The state of a stream of rows at seconds, which counts those of the last ten."""
    empty = pa.schema([(ROW, pa.int64()), (TIME, pa.int64())]).empty_table()
    asked = {"windows": {"w": "10 seconds"}, "aggs": {"n": weft.agg.count()}, **options}
    return RollingState(described(empty, asked))


def came(state: RollingState, times: dict[int, float | None], watermark: float) -> dict[int, int]:
    """Feed rows by number at seconds; return the complete rows, and what each counts."""
    stamps = [None if t is None else int(t * SECOND) for t in times.values()]
    fed = pa.table({ROW: list(times), TIME: pa.array(stamps, pa.int64())})
    found = state.process(fed, int(watermark * SECOND))
    return dict(zip(found[ROW].to_pylist(), found["n_w"].to_pylist(), strict=True))


def test_a_row_of_a_stream_comes_when_the_watermark_has_passed_its_time_and_is_that_of_a_batch() -> (
    None
):
    state = stream()
    assert came(state, {0: 20, 1: 12, 2: 15}, 15) == {1: 1}
    # At the watermark itself another row may come, and be a peer.
    assert came(state, {3: 15, 4: 21}, 20.5) == {0: 4, 2: 3, 3: 3}
    batch = weft.rolling(
        table([20, 12, 15, 15, 21]), windows={"w": "10 seconds"}, aggs={"n": weft.agg.count()}
    )
    assert batch["n_w"].to_pylist()[:4] == [4, 1, 3, 3]


def test_rows_of_a_stream_behind_the_watermark_up_to_which_others_were_handed_out_are_dropped_and_counted() -> (
    None
):
    state = stream()
    assert came(state, {0: 10, 1: 30}, 20) == {0: 1}
    assert came(state, {2: 19.999999, 3: 20}, 40) == {1: 2, 3: 2}
    assert state.late == 1


def test_a_row_of_a_stream_without_a_time_waits_for_nothing() -> None:
    assert came(stream(), {0: None, 1: 30}, 20) == {0: 0}


def test_every_sentence_of_the_document_has_a_test_of_the_same_words() -> None:
    text = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text()
    sentences = re.findall(r"^\d+\. (.*)\.$", text, re.MULTILINE)
    assert len(sentences) > 40
    for sentence in sentences:
        words = re.sub(r"[^a-z0-9]+", "_", sentence.lower().replace("'", ""))
        assert f"test_{words.strip('_')}" in globals(), sentence
