"""What the native strategy promises beside equal rows: types, plans, borders, refusals."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType, TimestampType

import weft
from weft import agg
from weft.engines.reference.engine import ReferenceEngine
from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.session import to_spark
from weft.engines.spark.sql.slice_bounds import edge_before, slice_start
from weft.plan import STRATEGIES
from weft.testing import assert_same_rows
from weft.window import Edges, UserWindow, Window

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Explained = Callable[[DataFrame], str]

pytestmark = pytest.mark.spark
S = 1_000_000


def readings(rows: int = 400, keys: int = 3) -> pa.Table:
    random = np.random.default_rng(1)
    times = 1_700_000_000 * S + random.integers(0, 600 * S, rows)
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(random.integers(0, keys, rows)),
            "v": pa.array(random.normal(20, 5, rows)),
        }
    )


def test_twenty_windows_take_one_scan_and_two_exchanges(
    spark: SparkSession, tmp_path: Path, explained: Explained
) -> None:
    to_spark(readings(), spark).write.parquet(str(tmp_path / "readings"))
    frame = spark.read.parquet(str(tmp_path / "readings"))
    result = weft.aggregate(
        frame,
        time="ts",
        by=["k"],
        windows={f"{s}s": weft.tumbling(s * S) for s in range(10, 106, 5)},
        aggs={"lo": agg.min("v")},
        planner="slice",
        strategy="native",
    )
    text = explained(result)
    assert len(re.findall(r"FileScan", text)) == 1
    assert len(re.findall(r"Exchange", text)) == 2
    assert len(re.findall(r"HashAggregate", text)) == 3
    assert "Python" not in text


@pytest.mark.parametrize(
    "hops",
    [
        [(range_s, range_s) for range_s in (5, 10, 20, 40, 80)],
        # Each reads every so many instances of the one before: 2 of 6, 5 of 12, and 5 of 3 that
        # begin twice as often.
        [(60, 10), (120, 10), (600, 10), (300, 20)],
        # Deeper than one text may be.
        [(2**n, 2**n) for n in range(20)],
    ],
)
def test_a_factor_tree_of_any_depth_takes_two_exchanges(
    spark: SparkSession, explained: Explained, hops: list[tuple[int, int]]
) -> None:
    frame = to_spark(readings(), spark)
    windows = {f"{r}s": weft.hopping(r * S, slide * S) for r, slide in hops}
    query = weft.Query(
        "q", source="r", time="ts", keys=["k"], windows=windows, aggs={"n": agg.count()}
    )
    workload = weft.Workload([query])
    plan = weft.optimize(workload, "factor", strategy="native")
    result = SparkEngine().run(plan, {"r": frame})["q"]
    assert len(re.findall(r"Exchange", explained(result))) == 2
    wanted = ReferenceEngine().answer(workload, {"r": readings()})["q"]
    assert_same_rows(query, result.toArrow(), wanted)


def test_levels_of_a_plan_are_one_text(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step on a DataFrame has Spark look through all below it: no level adds one."""
    frame = to_spark(readings(), spark)
    asked: list[str] = []
    for step in ("select", "selectExpr", "where", "filter", "groupBy", "repartition"):
        own = getattr(type(frame), step)

        def counted(*given: Any, _own: Any = own, _step: str = step, **more: Any) -> Any:
            asked.append(_step)
            return _own(*given, **more)

        monkeypatch.setattr(type(frame), step, counted)
    steps: dict[int, list[str]] = {}
    for depth in (1, 4):
        windows = {f"{s}s": weft.tumbling(s * S) for s in (5, 10, 20, 40)[:depth]}
        query = weft.Query(
            "q", source="r", time="ts", keys=["k"], windows=windows, aggs={"n": agg.count()}
        )
        plan = weft.optimize(query, "factor", strategy="native")
        asked.clear()
        SparkEngine().run(plan, {"r": frame})
        steps[depth] = [*asked]
    assert steps[4] == steps[1]
    assert steps[1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_aggregate_without_a_name_in_sql_goes_through_levels(
    spark: SparkSession, strategy: str
) -> None:
    windows = {f"{s}s": weft.tumbling(s * S) for s in (5, 10, 20)}
    query = weft.Query(
        "q",
        source="r",
        time="ts",
        keys=["k"],
        windows=windows,
        aggs={"p": agg.product("1 + v / 1000"), "n": agg.count()},
    )
    plan = weft.optimize(query, "factor", strategy=strategy)
    result = SparkEngine().run(plan, {"r": to_spark(readings(), spark)})["q"]
    wanted = ReferenceEngine().answer(weft.Workload([query]), {"r": readings()})["q"]
    assert_same_rows(query, result.toArrow(), wanted)


@pytest.mark.parametrize(
    ("planner", "strategy", "number"),
    [
        ("slice", "native", 2_000),
        pytest.param("slice", "native", 10_000, marks=pytest.mark.soak),
        pytest.param("independent", "native", 10_000, marks=pytest.mark.soak),
        pytest.param("slice", "columnar", 10_000, marks=pytest.mark.soak),
    ],
)
def test_thousands_of_windows_compile_and_run(
    spark: SparkSession, explained: Explained, planner: str, strategy: str, number: int
) -> None:
    table = readings(30, keys=1)
    windows = {f"w{i}": weft.hopping((i + 2) * S, (i + 1) * S) for i in range(number)}
    query = weft.Query(
        "q", source="r", time="ts", keys=["k"], windows=windows, aggs={"n": agg.count()}
    )
    frame = to_spark(table, spark)
    result = weft.run(weft.Workload([query]), {"r": frame}, planner=planner, strategy=strategy)
    assert len(explained(result).splitlines()) < 40
    rows = result.groupBy("window").agg(F.sum("n").alias("n")).toArrow()
    assert rows.num_rows == number
    assert min(rows["n"].to_pylist()) >= 30


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo"], indirect=True)
def test_timestamps_with_and_without_zone_dates_and_integers(
    spark: SparkSession, zone: str, strategy: str
) -> None:
    # Local times that do not exist in the session's zone among them.
    base = dt.datetime(2017, 10, 15, 2, 59, tzinfo=dt.UTC)
    times = [base + dt.timedelta(minutes=20 * i) for i in range(-9, 9)] + [None]
    zoned = pa.array(times, pa.timestamp("us", "UTC"))
    plain = zoned.cast(pa.timestamp("us"))
    table = pa.table(
        {
            "zoned": zoned,
            "plain": plain,
            "day": plain.cast(pa.date32(), safe=False),
            "micros": zoned.cast(pa.int64()),
            "x": range(19),
        }
    )
    types = {
        "zoned": TimestampType,
        "plain": TimestampNTZType,
        "day": TimestampNTZType,
        "micros": TimestampType,
    }
    frame = to_spark(table, spark)
    for column, kind in types.items():
        query = weft.Query(
            "q",
            source="t",
            time=column,
            windows={"1h": weft.tumbling("1 hour"), "2h": weft.hopping("2 hours", "1 hour")},
            aggs={"n": agg.count(), "last": agg.last("x")},
        )
        workload = weft.Workload([query])
        result = weft.run(workload, {"t": frame}, strategy=strategy)
        assert isinstance(result.schema["window_start"].dataType, kind)
        assert_same_rows(
            query, result.toArrow(), ReferenceEngine().answer(workload, {"t": table})["q"]
        )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_decimals_keep_their_precision(spark: SparkSession, strategy: str) -> None:
    large = Decimal("12345678901234567890.12")
    table = pa.table(
        {
            "ts": pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
            "d": pa.array([large, large, Decimal("0.01")], pa.decimal128(22, 2)),
        }
    )
    result = weft.aggregate(
        to_spark(table, spark),
        windows={"2": weft.tumbling(2), "4": weft.tumbling(4)},
        aggs={"s": agg.sum("d")},
        strategy=strategy,
    ).toArrow()
    by_label = dict(zip(result["window"].to_pylist(), result["s"].to_pylist(), strict=True))
    assert by_label["4"] == 2 * large + Decimal("0.01")


def test_variance_of_large_numbers_keeps_its_digits(spark: SparkSession) -> None:
    table = readings()
    table = table.set_column(2, "v", pc.add(table["v"], 1e9))
    query = weft.Query(
        "q",
        source="r",
        time="ts",
        keys=["k"],
        windows={"20s": weft.tumbling("20 seconds"), "60s": weft.tumbling("60 seconds")},
        aggs={"var": agg.var("v"), "sd": agg.stddev_pop("v")},
    )
    workload = weft.Workload([query])
    plan = weft.optimize(workload, "factor", strategy="native")
    got = SparkEngine().run(plan, {"r": to_spark(table, spark)})["q"].toArrow()
    values = table["v"].to_numpy()
    times = table["ts"].cast(pa.int64()).to_numpy()
    for row in got.to_pylist():
        start, end = (int(row[c].timestamp() * S) for c in ("window_start", "window_end"))
        inside = (times >= start) & (times < end) & (table["k"].to_numpy() == row["k"])
        own = values[inside].astype(np.longdouble)
        assert row["sd"] == pytest.approx(float(own.std()), rel=1e-6)
        assert row["var"] == (
            pytest.approx(float(own.var(ddof=1)), rel=1e-6) if len(own) > 1 else None
        )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rows", [0, 1])
def test_no_event_and_one_event(spark: SparkSession, rows: int, strategy: str) -> None:
    table = readings().slice(0, rows)
    query = weft.Query(
        "q",
        source="r",
        time="ts",
        keys=["k"],
        windows={
            "t": weft.tumbling(S),
            "h": weft.hopping(3 * S, S),
            "s": weft.session(S),
            "d": weft.calendar("day"),
        },
        aggs={"n": agg.count(), "d": agg.count_distinct("v"), "m": agg.median("v")},
    )
    workload = weft.Workload([query])
    result = weft.run(workload, {"r": to_spark(table, spark)}, strategy=strategy).toArrow()
    assert_same_rows(query, result, ReferenceEngine().answer(workload, {"r": table})["q"])
    assert result.num_rows == 6 * rows


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_events_of_which_none_has_a_time_give_no_rows(spark: SparkSession, strategy: str) -> None:
    table = readings(5).set_column(0, "ts", pa.nulls(5, pa.timestamp("us", "UTC")))
    windows = {"t": weft.tumbling(S), "s": weft.session(S)}
    frame = to_spark(table, spark)
    found = weft.aggregate(
        frame, time="ts", windows=windows, aggs={"n": agg.count()}, strategy=strategy
    )
    assert found.toArrow().num_rows == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_null_keys_are_a_key_and_null_times_no_events(spark: SparkSession, strategy: str) -> None:
    table = pa.table(
        {
            "ts": pa.array([0, 1, None, 5], pa.timestamp("us", "UTC")),
            "k": pa.array([None, "a", "a", None]),
        }
    )
    query = weft.Query(
        "q",
        source="t",
        keys=["k"],
        windows={"4": weft.tumbling(4), "8": weft.tumbling(8)},
        aggs={"n": agg.count(), "d": agg.count_distinct("k")},
    )
    frame = to_spark(table, spark)
    result = weft.run(weft.Workload([query]), {"t": frame}, strategy=strategy).toArrow()
    counts = {
        (r["k"], r["window"], r["window_start"].microsecond): r["n"] for r in result.to_pylist()
    }
    assert counts == {
        (None, "4", 0): 1,
        ("a", "4", 0): 1,
        (None, "4", 4): 1,
        (None, "8", 0): 2,
        ("a", "8", 0): 1,
    }


@pytest.mark.parametrize("others", [{}, {"1m": weft.tumbling(60 * S)}], ids=["one", "two"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_names_of_any_kind(spark: SparkSession, strategy: str, others: dict[str, Window]) -> None:
    table = readings().rename_columns(["event time", "k", "the value"])
    label = 'it\'s "odd" \\ {label}'
    result = weft.aggregate(
        to_spark(table, spark),
        time="event time",
        by={"key+1": "k + 1"},
        windows={label: weft.tumbling(600 * S), **others},
        aggs={"Σ v": agg.sum("`the value`")},
        strategy=strategy,
    )
    assert result.columns == ["key+1", "window", "window_start", "window_end", "Σ v"]
    assert {row.window for row in result.select("window").collect()} == {label, *others}


def test_slices_of_uneven_edges(spark: SparkSession) -> None:
    families = {
        "one": ((3, 7),),
        "panes": ((0, 4), (0, 6)),
        "table": ((0, 1000), (1, 1000), (17, 250)),
        "search": ((0, 10_007), (5, 10_009), (1, 3)),
    }
    times = spark.range(-3000, 3000).selectExpr("id * 7 AS time")
    starts = {name: slice_start("time", Edges(classes)) for name, classes in families.items()}
    rows = times.selectExpr("time", *(f"{sql} AS {name}" for name, sql in starts.items()))
    found = rows.toArrow().to_pydict()
    for name, classes in families.items():
        for time, start in zip(found["time"], found[name], strict=True):
            assert edge_before(time, classes) <= start <= time
            assert edge_before(start, classes) == start or name == "panes"


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (weft.counting(3), "COUNT 3 depends on the order of events"),
        (weft.punctuated("v > 1"), "PUNCTUATED v > 1 depends on the order of events"),
        (weft.measured("k", 3, 3), "MEASURED k 3 depends on the order of events"),
        (UserWindow(), "USER UserWindow depends on the order of events"),
    ],
    ids=str,
)
def test_windows_that_native_leaves_to_others(window: Any, reason: str) -> None:
    query = weft.Query("q", source="r", time="ts", windows={"w": window}, aggs={"n": agg.count()})
    plan = weft.optimize(weft.Workload([query]), "independent")
    (problem,) = SparkEngine("native").unsupported(plan)
    assert problem.reason == reason


def test_custom_aggregates_are_left_to_others() -> None:
    longest = agg.custom(
        "longest_text",
        lift=len,
        combine=max,
        lower=lambda n: n,
        identity=0,
        commutative=True,
        idempotent=True,
    )
    query = weft.Query(
        "q", source="r", time="ts", windows={"w": weft.tumbling(5)}, aggs={"n": longest("k")}
    )
    plan = weft.optimize(weft.Workload([query]))
    problem = SparkEngine("native").unsupported(plan)[0]
    assert problem.reason == "aggregate 'longest_text' is written in Python"


def test_auto_takes_the_cheapest_plan_that_spark_runs(spark: SparkSession) -> None:
    # One slicing for all would cut at the sessions' edges, which only events tell.
    result = weft.aggregate(
        to_spark(readings(50), spark),
        time="ts",
        windows={"t": weft.tumbling(60 * S), "h": weft.tumbling(20 * S), "s": weft.session(S)},
        aggs={"n": agg.count()},
    )
    assert {row.window for row in result.select("window").collect()} == {"t", "h", "s"}


@pytest.mark.parametrize("function", ["sum", "var", "stddev_pop"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_wrong_input_is_refused_before_it_is_converted(
    spark: SparkSession, strategy: str, function: str
) -> None:
    frame = to_spark(readings(5), spark).selectExpr("ts", "cast(v AS string) AS v")
    windows, aggs = {"t": weft.tumbling(S)}, {"s": getattr(agg, function)("v")}
    with pytest.raises(weft.QueryError) as refused:
        weft.aggregate(frame, windows=windows, aggs=aggs, strategy=strategy)
    assert str(refused.value) == (
        f"{function}(v) cannot be computed: v is of type string\n"
        f"hint: {function} needs numbers; cast the column, or use another aggregate"
    )


def test_a_text_is_no_time(spark: SparkSession) -> None:
    frame = to_spark(readings(5), spark).selectExpr("cast(ts AS string) AS ts")
    with pytest.raises(weft.DataError, match="the time column 'ts' is of type string"):
        weft.aggregate(frame, time="ts", windows={"t": weft.tumbling(S)}, aggs={"n": agg.count()})


def test_unknown_strategies_are_refused() -> None:
    with pytest.raises(weft.QueryError, match="unknown strategy 'fast'"):
        SparkEngine("fast")


def test_tables_of_other_libraries_run_on_spark_when_told(spark: SparkSession) -> None:
    table = readings(20)
    windows, aggs = {"t": weft.tumbling(60 * S)}, {"n": agg.count()}
    result = weft.aggregate(table, time="ts", windows=windows, aggs=aggs, engine="spark")
    assert isinstance(result, pa.Table)
    assert sum(result["n"].to_pylist()) == 20


def test_sql_over_dataframes(spark: SparkSession) -> None:
    frame = to_spark(readings(20), spark)
    results = weft.sql(
        "-- name: a\nSELECT k, COUNT(*) AS n FROM r GROUP BY k, window(ts, '1 minute');"
        "-- name: b\nSELECT MAX(v) AS top FROM r GROUP BY window(ts, '2 minutes')",
        r=frame,
    )
    assert sorted(results) == ["a", "b"]
    assert results["a"].agg(F.sum("n")).collect()[0][0] == 20


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_short_forms_ask_the_same(spark: SparkSession, strategy: str) -> None:
    table = readings(50)
    asked = {"windows": {"t": "10 seconds"}, "strategy": strategy}
    frame = to_spark(table, spark)
    short = weft.aggregate(frame, by="k", aggs={"m": "avg(v)", "n": "count(*)"}, **asked)
    calls = {"m": agg.avg("v"), "n": agg.count()}
    # A pandas frame comes back as one, whatever the engine.
    indexed = table.to_pandas().set_index("ts")
    whole = weft.aggregate(indexed, by=["k"], aggs=calls, engine="spark", **asked)
    assert type(whole).__module__.startswith("pandas")
    order = ["window_end", "k"]
    got = short.toPandas().sort_values(order)
    assert got["m"].tolist() == pytest.approx(whole.sort_values(order)["m"].tolist())


def test_aggregates_may_be_columns_of_spark(spark: SparkSession) -> None:
    frame = to_spark(readings(40), spark)
    options: dict[str, Any] = {"time": "ts", "windows": {"t": weft.tumbling(60 * S)}, "by": ["k"]}
    by_text = weft.aggregate(
        frame,
        aggs={
            "mean": "avg(v * 2)",
            "n": "count(*)",
            "odd": "count_if(v % 2 = 1)",
            "kinds": "count(DISTINCT v)",
            "total": "sum(DISTINCT v)",
            "high": "percentile(v, 0.9)",
            "together": "corr(v, v * v)",
            "low": "min(v)",
        },
        **options,
    )
    v = F.col("v")
    asked = [
        F.avg(v * 2).alias("mean"),
        F.count("*").alias("n"),
        F.count_if(v % 2 == 1).alias("odd"),
        F.count_distinct(v).alias("kinds"),
        F.sum_distinct(v).alias("total"),
        F.percentile(v, 0.9).alias("high"),
        F.corr(v, v * v).alias("together"),
        F.expr("min(v)").alias("low"),
    ]
    by_column = weft.aggregate(frame, aggs=asked, **options)
    assert by_column.columns == by_text.columns
    assert sorted(by_column.collect()) == sorted(by_text.collect())
    named = weft.aggregate(
        frame, aggs={"a": F.max("v"), "b": "max(v)", "c": agg.max("v")}, **options
    )
    assert all(row.a == row.b == row.c for row in named.collect())
    sketched = weft.aggregate(frame, aggs=[F.hll_sketch_agg("k").alias("s")], **options)
    found = sketched.select(F.hll_sketch_estimate("s")).distinct().collect()
    assert {estimate for (estimate,) in found} <= {0, 1}
    with pytest.raises(weft.UnsupportedError, match="is a sketch that Spark alone makes"):
        weft.aggregate(frame, aggs={"s": "hll_sketch_agg(k)"}, strategy="columnar", **options)
    with pytest.raises(weft.QueryError, match="is not an aggregate that weft knows"):
        weft.aggregate(frame, aggs=[F.max("v") - F.min("v")], **options)


def test_keys_and_filters_may_be_columns_of_spark(spark: SparkSession) -> None:
    frame = to_spark(readings(40), spark)
    options: dict[str, Any] = {"windows": {"t": weft.tumbling(60 * S)}, "aggs": {"n": agg.count()}}
    by_text = weft.aggregate(
        frame, time="ts", by={"up": "upper(k)", "k": "k"}, where="v > 2", **options
    )
    keys = [F.upper("k").alias("up"), "k"]
    by_column = weft.aggregate(frame, time="ts", by=keys, where=F.col("v") > 2, **options)
    assert by_column.columns == by_text.columns
    assert sorted(by_column.collect()) == sorted(by_text.collect())
