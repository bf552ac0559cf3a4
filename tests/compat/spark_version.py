"""What works on the installed Spark: each way of running, compared with the reference engine.

Run with the PySpark of another version first on the path; prints a line of JSON: the version, and
for each way "yes", or what weft or Spark said. `make compat` runs it for every version.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

import weft
from weft import agg
from weft.engines.spark.session import local_session, to_spark
from weft.generate import sensors
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

EVENTS = sensors(2_000, seed=3, devices=7, rate=5.0)
QUERY = weft.Query(
    "lows",
    source="readings",
    time="ts",
    keys=["device"],
    windows={"20s": "20 seconds", "1m": weft.hopping("1 minute", "20 seconds")},
    aggs={"lo": agg.min("temp"), "mean": agg.avg("temp"), "n": agg.count()},
    watermark="5 seconds",
)
SQL = """SELECT device, MAX(temp) - MIN(temp) AS swing FROM readings
GROUP BY device, window(ts, '1 minute') HAVING COUNT(*) > 2"""
JOIN = """SELECT COUNT(*) AS n FROM readings AS a [RANGE 1 MINUTE SLIDE 1 MINUTE],
readings AS b [RANGE 1 MINUTE SLIDE 1 MINUTE] WHERE a.device = b.device"""


def arrow(frame: Any) -> pa.Table:
    """Collect rows; before 4.0 Spark gave them to pandas alone."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    return pa.Table.from_pandas(frame.toPandas(), preserve_index=False)


def batch(session: SparkSession, strategy: str) -> None:
    frame = to_spark(EVENTS, session)
    got = arrow(weft.run(QUERY, {"readings": frame}, engine="spark", strategy=strategy))
    assert_same_rows(QUERY, got, weft.run(QUERY, {"readings": EVENTS}, engine="reference"))


def stream(session: SparkSession, strategy: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "in").mkdir()
        for at in range(4):
            path = place / "in" / f"{at}.parquet"
            pq.write_table(EVENTS.slice(at * 500, 500), path)
            os.utime(path, (1_700_000_000 + at,) * 2)  # Spark takes files in this order
        read = session.readStream.schema(session.read.parquet(f"{place}/in").schema)
        source = read.option("maxFilesPerTrigger", 1).parquet(f"{place}/in")
        weft.start(
            QUERY, {"readings": source}, place / "out", place / "c", "once", strategy
        ).awaitTermination()
        got = session.read.parquet(f"{place}/out").drop("batch").toPandas()
    wanted = weft.run(QUERY, {"readings": EVENTS}, engine="reference")
    latest_us = max(EVENTS["ts"].cast(pa.int64()).to_pylist()) // 1000 * 1000 - 5_000_000
    ends = wanted["window_end"].cast(pa.int64()).to_numpy()
    assert len(got) == int((ends <= latest_us).sum()) > 50, len(got)


def statement(session: SparkSession, _: str) -> None:
    frame = to_spark(EVENTS, session)
    frame.createOrReplaceTempView("readings")
    got = weft.sql(SQL, readings=frame).toPandas()
    wanted = session.sql(SQL).toPandas()
    order = ["device", "swing"]
    assert (
        got.sort_values(order)
        .reset_index(drop=True)
        .equals(wanted.sort_values(order).reset_index(drop=True))
    )


def join(session: SparkSession, _: str) -> None:
    (query,) = weft.parse(JOIN).queries
    got = arrow(weft.run(query, {"readings": to_spark(EVENTS, session)}, engine="spark"))
    assert_same_rows(query, got, weft.run(query, {"readings": EVENTS}, engine="reference"))


WAYS: dict[str, tuple[Callable[[Any, str], None], str]] = {
    "batch, native": (batch, "native"),
    "batch, columnar": (batch, "columnar"),
    "statements": (statement, ""),
    "joins": (join, ""),
    "streams, native": (stream, "native"),
    "streams, columnar": (stream, "columnar"),
}
OVER_CONNECT = ("batch, native", "batch, columnar", "statements")


def tried(way: str, session: SparkSession) -> str:
    run, strategy = WAYS[way]
    try:
        run(session, strategy)
    except weft.UnsupportedError as error:
        return f"no: {error.message}"
    except Exception as error:  # noqa: BLE001  the line of JSON is what is asked for
        if os.environ.get("WEFT_DEBUG") == "1":
            traceback.print_exc()
        return f"fails: {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
    return "yes"


def main() -> None:
    session = local_session(2, {"spark.sql.shuffle.partitions": "2"})
    remote = "SPARK_REMOTE" in os.environ
    ways = OVER_CONNECT if remote else tuple(WAYS)
    told = {"spark": pyspark.__version__, "connect": remote}
    sys.stdout.write(json.dumps({**told, **{way: tried(way, session) for way in ways}}) + "\n")


if __name__ == "__main__":
    main()
