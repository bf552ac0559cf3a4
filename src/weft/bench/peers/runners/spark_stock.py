"""Stock Spark: one `window()` aggregation for each window, all of them united; frames for ranges.

The session is the one that weft starts: as many partitions as cores, the parallel collector.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .protocol import TRAILING, instance_columns, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Job, Query

CORES = 2


def read(job: Job) -> dict[str, Any]:
    """Start Spark, and return the tables of a job."""
    from weft.engines.spark.session import local_session

    session = local_session(CORES)
    return {name: session.read.parquet(path) for name, path in job["tables"].items()}


def write(job: Job, name: str, rows: Any) -> None:
    """Write the rows of a result."""
    rows.write.parquet(f"{job['output']}/{name}")


def hottest(rows: Any, query: Query) -> Any:
    """Keep the rows whose value is the greatest of their instance."""
    if not (top := query.get("hottest")):
        return rows
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    most = F.max(top).over(Window.partitionBy(*instance_columns(query)))
    return rows.withColumn("most", most).where(f"{top} = most").drop("most")


def frames(job: Job, count: Any, shorter_us: int = 0) -> list[Any]:
    """Return the columns of trailing ranges, as frames over a user's rows."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    found = []
    for label, range_us in job["ranges"].items():
        frame = Window.partitionBy("user").orderBy("us").rangeBetween(shorter_us - range_us, 0)
        for name, function in TRAILING:
            call = count if function == "count" else getattr(F, function)("amount")
            found.append(call.over(frame).alias(f"{name}_{label}"))
    return found


def labels_among_events(tables: dict[str, Any]) -> Any:
    """Return labels as rows that count nowhere; an event counts from a microsecond later on."""
    labels = tables["labels"].selectExpr(
        "id", "user", "unix_micros(ts) AS us", "CAST(NULL AS double) AS amount"
    )
    return labels.union(
        tables["events"].selectExpr(
            "CAST(NULL AS bigint) AS id", "user", "unix_micros(ts) + 1 AS us", "amount"
        )
    )


def rolling(job: Job, tables: dict[str, Any]) -> Any:
    """Return every event with its trailing ranges."""
    from pyspark.sql import functions as F

    stamped = tables["events"].withColumn("us", F.unix_micros("ts"))
    return stamped.select("id", *frames(job, F.count("amount")))


def _as_of(job: Job, tables: dict[str, Any]) -> Any:
    """Join labels to the events of the longest range, which is faster than frames over both."""
    from pyspark.sql import functions as F

    longest = max(job["ranges"].values())
    labels = tables["labels"].selectExpr("id", "user AS who", "unix_micros(ts) AS at")
    events = tables["events"].selectExpr("user", "unix_micros(ts) AS us", "amount")
    on = F.expr(f"who = user AND us >= at - {longest} AND us < at")
    calls = []
    for label, range_us in job["ranges"].items():
        value = F.when(F.expr(f"us >= at - {range_us}"), F.col("amount"))
        calls += [
            getattr(F, function)(value).alias(f"{name}_{label}") for name, function in TRAILING
        ]
    return labels.join(events, on, "left").groupBy("id").agg(*calls)


def auction(job: Job, tables: dict[str, Any]) -> Any:
    """Join, then window, then aggregate."""
    from pyspark.sql import functions as F

    bids, opened, people = (tables[name].alias(name[0]) for name in ("bid", "auction", "person"))
    joined = bids.join(opened, F.expr("b.auction = a.id")).join(
        people, F.expr("a.seller = p.id AND p.state <> 'CA'")
    )
    window = F.window("b.date_time", "1 hour", "1 minute")
    rows = joined.select("a.category", "b.price", F.col("a.date_time").alias("opened"), window)
    return (
        rows.where("opened < window.end")
        .groupBy("category", "window")
        .agg(F.count("*").alias("bids"), F.sum("price").alias("total"), F.max("price").alias("top"))
        .selectExpr("category", "window.start AS window_start", "bids", "total", "top")
    )


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    from weft.engines.spark.stock import stock

    from .weft_asked import query_of

    tables = read(job)
    others = {"trailing": rolling, "as_of": _as_of, "auction": auction}

    def run() -> None:
        if job["kind"] != "windows":
            write(job, "rows", others[job["kind"]](job, tables))
            return
        for query in job["queries"]:
            rows = stock(query_of(query), tables[query["table"]])
            write(job, query["name"], hottest(rows, query))

    return run


def spark_version() -> str:
    """Name the version."""
    import pyspark

    return f"Spark {pyspark.__version__}"


if __name__ == "__main__":
    from .stream_state import of_spark

    serve(start, spark_version, partial(of_spark, shared=False))
