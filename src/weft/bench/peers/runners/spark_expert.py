"""What an expert writes on Spark by hand: aggregate once to slices, keep them, go on from those.

The slices are as wide as all windows of the clock allow, and have all keys and filtered columns
that any query needs. Instances of a hop are made from slices, not from events. Sessions have none.
"""

from __future__ import annotations

from functools import reduce
from math import gcd
from typing import TYPE_CHECKING, Any

from .protocol import MINUTE_US, CannotDo, copies, serve
from .spark_stock import hottest, read, spark_version, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Agg, Job, Query, Window

_PARTS = {"avg": ("sum", "count"), "stddev": ("square", "sum", "count")}


def _parts(agg: Agg) -> list[tuple[str, str]]:
    """Name the partials of an aggregate: what is kept, and of which column."""
    kinds = _PARTS.get(agg["call"], (agg["call"],))
    return [(kind, agg.get("column", "")) for kind in kinds]


def _name(part: tuple[str, str]) -> str:
    return "_".join([part[0], *(word.strip() for word in part[1].split(",") if word)])


def _lift(part: tuple[str, str]) -> str:
    kind, column = part
    if kind == "square":
        return f"sum({column} * {column})"
    if kind == "max_by":
        value, by = (word.strip() for word in column.split(","))
        return f"max(named_struct('by', {by}, 'value', {value}))"
    return f"{kind}({column or '*'})"


def _merge(part: tuple[str, str]) -> str:
    kind = "sum" if part[0] in ("count", "square") else part[0].removesuffix("_by")
    return f"{kind}({_name(part)})"


def _lower(agg: Agg) -> str:
    merged = {kind: _merge((kind, column)) for kind, column in _parts(agg)}
    if agg["call"] == "avg":
        return f"{merged['sum']} / {merged['count']}"
    if agg["call"] == "stddev":
        n, total = merged["count"], merged["sum"]
        return f"sqrt(({merged['square']} - {total} * {total} / {n}) / ({n} - 1))"
    if agg["call"] == "max_by":
        return f"{merged['max_by']}.value"
    return merged[agg["call"]]


def _clocked(query: Query) -> dict[str, Window]:
    return {label: w for label, w in query["windows"].items() if w["kind"] != "session"}


def sliced(queries: list[Query], events: Any) -> tuple[Any, int]:
    """Aggregate once, to slices that all windows of the clock are made of; return their width."""
    from pyspark.sql import functions as F

    width = gcd(
        *(
            w[name]
            for q in queries
            for w in _clocked(q).values()
            for name in ("range_us", "slide_us")
        )
    )
    keys = {key for query in queries for key in query["keys"]}
    keys |= {query["where"][0] for query in queries if query["where"]}
    parts = {part for query in queries for agg in query["aggs"] for part in _parts(agg)}
    slices = F.expr(f"unix_micros({queries[0]['time']}) div {width}L").alias("slice")
    calls = [F.expr(_lift(part)).alias(_name(part)) for part in sorted(parts)]
    return events.groupBy(slices, *sorted(keys)).agg(*calls), width


def from_slices(query: Query, label: str, window: Window, slices: Any, width: int) -> Any:
    """Make a window of the clock from slices."""
    from pyspark.sql import functions as F

    slide, count = window["slide_us"] // width, copies(window)
    if query["where"]:
        slices = slices.where(f"{query['where'][0]} = '{query['where'][1]}'")
    begin = F.expr(f"slice div {slide}L").alias("begin")
    if count > 1:
        latest = f"slice div {slide}L"
        begin = F.explode(F.expr(f"sequence({latest} - {count - 1}, {latest})")).alias("begin")
    parts = [_name(part) for agg in query["aggs"] for part in _parts(agg)]
    rows = slices.select(begin, *query["keys"], *dict.fromkeys(parts))
    calls = [F.expr(_lower(agg)).alias(agg["as"]) for agg in query["aggs"]]
    return (
        rows.groupBy("begin", *query["keys"])
        .agg(*calls)
        .select(
            *query["keys"],
            F.lit(label).alias("window"),
            F.expr(f"begin * {window['slide_us']}L").alias("window_start"),
            *(agg["as"] for agg in query["aggs"]),
        )
    )


def sessions(query: Query, label: str, window: Window, events: Any) -> Any:
    """Make sessions, as Spark does."""
    from pyspark.sql import functions as F

    instance = F.session_window(query["time"], f"{window['gap_us']} microseconds").alias("i")
    plain = {"count": "count(*)", "stddev": "stddev_samp({})"}
    calls = [
        F.expr(plain.get(a["call"], a["call"] + "({})").format(a.get("column", ""))).alias(a["as"])
        for a in query["aggs"]
    ]
    rows = events.groupBy(*query["keys"], instance).agg(*calls)
    return rows.select(
        *query["keys"],
        F.lit(label).alias("window"),
        F.expr("unix_micros(i.start)").alias("window_start"),
        F.expr("unix_micros(i.end)").alias("window_end"),
        *(agg["as"] for agg in query["aggs"]),
    )


def _windows(job: Job, tables: dict[str, Any]) -> None:
    ((_, events),) = tables.items()
    clocked = [query for query in job["queries"] if _clocked(query)]
    slices, width = sliced(clocked, events) if clocked else (events, 0)
    if kept := sum(len(_clocked(query)) for query in clocked) > 1:
        slices.persist()
    for query in job["queries"]:
        parts = [
            sessions(query, label, window, events)
            if window["kind"] == "session"
            else from_slices(query, label, window, slices, width)
            for label, window in query["windows"].items()
        ]
        rows = reduce(lambda a, b: a.union(b), parts)
        write(job, query["name"], hottest(rows, query))
    if kept:
        slices.unpersist()


def _auction(tables: dict[str, Any]) -> Any:
    """Aggregate bids by auction and minute before the join."""
    from pyspark.sql import functions as F

    bids = (
        tables["bid"]
        .groupBy("auction", F.expr(f"unix_micros(date_time) div {MINUTE_US}L").alias("minute"))
        .agg(F.count("*").alias("bids"), F.sum("price").alias("total"), F.max("price").alias("top"))
    )
    opened = tables["auction"].selectExpr(
        "id", "seller", "category", "unix_micros(date_time) AS opened"
    )
    sellers = tables["person"].where("state <> 'CA'").selectExpr("id AS person")
    joined = bids.join(opened, F.expr("auction = id")).join(sellers, F.expr("seller = person"))
    begin = F.explode(F.expr("sequence(minute - 59, minute)")).alias("begin")
    rows = joined.select("category", "bids", "total", "top", "opened", begin)
    return (
        rows.where(f"opened < (begin + 60) * {MINUTE_US}L")
        .groupBy("category", "begin")
        .agg(F.sum("bids").alias("bids"), F.sum("total").alias("total"), F.max("top").alias("top"))
        .selectExpr("category", f"begin * {MINUTE_US}L AS window_start", "bids", "total", "top")
    )


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    if job["kind"] not in ("windows", "auction"):
        raise CannotDo("frames have no slices to keep: the stock way is the expert's")
    tables = read(job)

    def run() -> None:
        if job["kind"] == "auction":
            write(job, "rows", _auction(tables))
        else:
            _windows(job, tables)

    return run


if __name__ == "__main__":
    serve(start, spark_version)
