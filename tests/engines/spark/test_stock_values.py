"""At real magnitudes, values of every type and aggregate are those that stock Spark computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weft
from engines.spark.statement_check import interpreted
from weft import agg
from weft.engines.spark.session import to_spark
from weft.engines.spark.stock import stock
from weft.plan import STRATEGIES
from weft.testing import assert_same_rows
from weft.testing.magnitudes import SOURCE, YEAR_1_US, YEAR_10000_US, random_case
from weft.window import PeriodicWindow, SessionWindow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weft.aggregates import AggregateCall

pytestmark = pytest.mark.spark
COLUMNS = ("s", "i", "n", "h", "x", "c", "w", "b", "day", "flag")
WHOLE, SUMMED = ("i", "n", "h"), ("n", "h", "c")
MOMENTS = (agg.var, agg.var_pop, agg.stddev, agg.stddev_pop, agg.skewness, agg.kurtosis)
PAIRS = (
    agg.corr, agg.covar_pop, agg.covar_samp, agg.regr_slope, agg.regr_intercept, agg.regr_r2,
)  # fmt: skip
# All that has one answer: of several first rows Spark takes any, and sketches are engines' own.
CALLS: tuple[AggregateCall, ...] = (
    agg.count(),
    *(agg.count(c) for c in COLUMNS),
    *(call(c) for c in COLUMNS if c != "b" for call in (agg.min, agg.max)),
    *(call(c) for c in (*SUMMED, "y") for call in (agg.sum, agg.avg)),
    *(call(c) for c in ("h", "y") for call in (*MOMENTS, agg.median)),
    *(call("h % 1000", "n % 1000") for call in PAIRS),
    *(call(c) for c in WHOLE for call in (agg.bit_and, agg.bit_or, agg.bit_xor)),
    agg.bool_and("flag"),
    agg.bool_or("n > h"),
    agg.percentile("y", 0.9),
)
DISTINCT = (
    *(agg.count_distinct(c) for c in COLUMNS),
    *(call(c) for c in SUMMED for call in (agg.sum_distinct, agg.avg_distinct)),
)
KEYS = (*(c for c in COLUMNS if c not in "nw"), "struct(s, h)", "struct(x, struct(b, day))")
CASES = [
    pytest.param(seed, marks=() if seed == 8 else pytest.mark.soak) for seed in range(6 * len(KEYS))
]


def events_of(seed: int) -> tuple[pa.Table, int]:
    """Return the events of a number, and a fifth of the time between the first and the last."""
    events = random_case(seed).events
    times = events["ts"].cast(pa.int64())
    ends = pc.min_max(times)
    if not ends["min"].is_valid:
        return events, 1000
    fifth_us = max((ends["max"].as_py() - ends["min"].as_py()) // 5, 3)
    # Bounds of windows are timestamps too.
    far = pc.and_(
        pc.greater(times, YEAR_1_US + 2 * fifth_us), pc.less(times, YEAR_10000_US - 2 * fifth_us)
    )
    return events.filter(far), fifth_us


def in_columns(rows: pa.Table) -> pa.Table:
    """Put what is in a key of several fields side by side, as rows are sorted by plain columns."""
    while any(pa.types.is_struct(type) for type in rows.schema.types):
        rows = rows.flatten()
    return rows


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("calls", [CALLS, DISTINCT], ids=["all rows", "distinct values"])
@pytest.mark.parametrize("seed", CASES)
def test_values_of_every_type_are_those_of_stock_spark(
    spark: SparkSession, seed: int, calls: tuple[AggregateCall, ...], strategy: str
) -> None:
    events, fifth_us = events_of(seed)
    query = weft.Query(
        "q",
        source=SOURCE,
        time="ts",
        keys={"key": KEYS[seed % len(KEYS)]},
        windows={
            "hop": PeriodicWindow(fifth_us, fifth_us // 3, fifth_us // 7),
            "tumble": PeriodicWindow(2 * fifth_us, 2 * fifth_us, 0),
            **({"session": SessionWindow(max(fifth_us // 50, 1))} if calls is CALLS else {}),
        },
        aggs={f"a{at}": call for at, call in enumerate(calls)},
    )
    frame = to_spark(events, spark)
    with interpreted(spark):
        wanted = in_columns(stock(query, frame).toArrow())
    got = in_columns(weft.run(query, {SOURCE: frame}, strategy=strategy).toArrow())
    names = [name for name in wanted.column_names if name.startswith("key")]
    flat: dict[str, Any] = {"source": SOURCE, "time": "ts", "windows": dict(query.windows)}
    compared = weft.Query("q", keys=dict.fromkeys(names, "s"), aggs=dict(query.aggs), **flat)
    assert_same_rows(compared, got, wanted, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_distinct_values_of_merged_sessions_are_counted_once_and_by_stock_spark_more_often(
    spark: SparkSession, strategy: str
) -> None:
    times = pa.array([at * 1_000_000 for at in range(5)]).cast(pa.timestamp("us", "UTC"))
    frame = to_spark(pa.table({"ts": times, "a": [1, 2, 1, 2, 1], "b": [5, 5, 6, 6, 5]}), spark)
    query = weft.Query(
        "q",
        source=SOURCE,
        time="ts",
        windows={"session": SessionWindow(1_500_000)},
        aggs={name: agg.count_distinct(name) for name in "ab"},
    )
    (row,) = weft.run(query, {SOURCE: frame}, strategy=strategy).collect()
    assert (row.a, row.b) == (2, 2)
    (other,) = stock(query, frame).collect()
    assert (other.a, other.b) == (5, 3)
