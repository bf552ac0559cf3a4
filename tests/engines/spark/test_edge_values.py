"""Values at the edge, on Spark: NaN and infinity as keys, too many digits, a name twice."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import weft
from weft import agg
from weft.engines.spark.session import to_spark
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def asked(**aggs: Any) -> weft.Query:
    return weft.Query(
        "q",
        source="r",
        time="ts",
        keys=["k"],
        windows={"10s": weft.tumbling("10 seconds"), "20s": weft.hopping("20 s", "10 s")},
        aggs=aggs or {"n": agg.count()},
    )


def events(keys: pa.Array, values: pa.Array) -> pa.Table:
    times = pa.array([at * 1_000_000 for at in range(len(keys))])
    return pa.table({"ts": times.cast(pa.timestamp("us", "UTC")), "k": keys, "v": values})


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_keys_that_are_no_numbers_or_without_end(spark: SparkSession, strategy: str) -> None:
    other_nan = float.fromhex("nan") * -1
    numbers = [math.nan, math.inf, -math.inf, 0.0, -0.0, None, other_nan, 1.5, math.inf, math.nan]
    table = events(pa.array(numbers * 3, pa.float64()), pa.array(range(30)))
    query = asked(n=agg.count(), s=agg.sum("v"))
    frame = to_spark(table, spark)
    got = weft.run(query, {"r": frame}, strategy=strategy).toArrow()
    assert_same_rows(query, got, weft.run(query, {"r": table}, engine="reference"))
    stock = frame.groupBy("k", F.window("ts", "10 seconds")).agg(F.count("*").alias("n"))
    own = got.filter(pa.compute.equal(got["window"], "10s"))
    assert sorted(own["n"].to_pylist()) == sorted(row["n"] for row in stock.collect())


@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_a_decimal_that_does_not_fit_is_an_error(spark: SparkSession, strategy: str) -> None:
    values = pa.array([Decimal("9" * 38), Decimal(1)], pa.decimal128(38, 0))
    frame = to_spark(events(pa.array(["a", "a"]), values), spark)
    for call in (agg.sum("v"), agg.avg("v")):
        rows = weft.run(asked(s=call), {"r": frame}, strategy=strategy)
        with pytest.raises(
            Exception, match=r"(?i)overflow|does not fit|out of range|cannot be rep"
        ):
            rows.toArrow()


def test_a_column_that_is_there_twice_is_refused_where_it_is_read(spark: SparkSession) -> None:
    frame = to_spark(events(pa.array(["a", "a"]), pa.array([1, 2])), spark)
    twice = frame.select("*", F.col("v"))
    with pytest.raises(weft.QueryError, match="r has 2 columns 'v', and query 'q' reads one"):
        weft.run(asked(s=agg.sum("v")), {"r": twice})
