"""Polars: one lazy query on its streaming engine; hops by `group_by_dynamic` over frames by key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .protocol import TRAILING, copies, instance_columns, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Agg, Job, Query, Window


def _call(pl: Any, agg: Agg) -> Any:
    name = agg["call"]
    if name == "count":
        return pl.len().cast(pl.Int64).alias(agg["as"])
    first, *by = (pl.col(column.strip()) for column in agg["column"].split(","))
    if name == "max_by":
        return first.get(by[0].arg_max()).alias(agg["as"])
    found = {"avg": first.mean, "stddev": first.std}.get(name) or getattr(first, name)
    return found().alias(agg["as"])


def _tumbling(pl: Any, frame: Any, query: Query, window: Window) -> Any:
    begin = pl.col(query["time"]).dt.truncate(f"{window['range_us']}us").alias("window_start")
    return frame.group_by(*query["keys"], begin).agg(*(_call(pl, a) for a in query["aggs"]))


def _hop(pl: Any, frame: Any, query: Query, window: Window) -> Any:
    slide, range_us = window["slide_us"], window["range_us"]
    # Times are in order within a key after this, which the engine sees faster than between keys.
    if query["keys"]:
        frame = frame.sort(query["keys"], maintain_order=True)
    else:
        frame = frame.set_sorted(query["time"])
    windows = frame.group_by_dynamic(
        query["time"],
        every=f"{slide}us",
        period=f"{range_us}us",
        offset=f"{slide - range_us}us",  # those that began before the first event
        group_by=query["keys"] or None,
        closed="left",
    )
    found = windows.agg(*(_call(pl, a) for a in query["aggs"]))
    return found.rename({query["time"]: "window_start"})


def _session(pl: Any, frame: Any, query: Query, window: Window) -> Any:
    time, keys, gap = (
        pl.col(query["time"]),
        query["keys"],
        pl.duration(microseconds=window["gap_us"]),
    )
    fresh = (time.diff() >= gap).fill_null(value=False).cum_sum()
    ordered = frame.sort(*keys, query["time"])
    numbered = ordered.with_columns((fresh.over(keys) if keys else fresh).alias("nth"))
    found = numbered.group_by(*keys, "nth").agg(
        time.min().alias("window_start"),
        (time.max() + gap).alias("window_end"),
        *(_call(pl, a) for a in query["aggs"]),
    )
    return found.drop("nth")


def _windowed(pl: Any, frame: Any, query: Query) -> Any:
    if query["where"]:
        column, value = query["where"]
        frame = frame.filter(pl.col(column) == value)
    parts = []
    for label, window in query["windows"].items():
        if window["kind"] == "session":
            part = _session(pl, frame, query, window)
        elif copies(window) == 1:
            part = _tumbling(pl, frame, query, window)
        else:
            part = _hop(pl, frame, query, window)
        parts.append(part.with_columns(pl.lit(label).alias("window")))
    names = [*query["keys"], *instance_columns(query), *(agg["as"] for agg in query["aggs"])]
    found = pl.concat([part.select(names) for part in parts])
    if top := query.get("hottest"):
        found = found.filter(pl.col(top) == pl.col(top).max().over(instance_columns(query)))
    return found


def _trailing(pl: Any, job: Job) -> Any:
    frame = pl.read_parquet(job["tables"]["events"]).sort("user", "ts")
    value = pl.col("amount")
    calls = {"min": value.min(), "sum": value.sum(), "avg": value.mean(), "count": value.count()}
    parts = [
        frame.rolling("ts", period=f"{range_us}us", closed="both", group_by="user")
        .agg(*(calls[function].alias(f"{name}_{label}") for name, function in TRAILING))
        .drop("user", "ts")
        for label, range_us in job["ranges"].items()
    ]
    return pl.concat([frame.select("id"), *parts], how="horizontal")


def _as_of(pl: Any, job: Job) -> Any:
    """Put labels among the events, as rows that count nowhere."""
    labels = pl.read_parquet(job["tables"]["labels"])
    events = pl.read_parquet(job["tables"]["events"])
    rows = pl.concat(
        [
            labels.select("id", "user", "ts", pl.lit(None, pl.Float64).alias("amount")),
            events.select(pl.lit(None, pl.Int64).alias("id"), "user", "ts", "amount"),
        ]
    )
    frame = rows.sort("user", "ts")
    value = pl.col("amount")
    n = value.count()
    calls = {
        "min": value.min(),
        "sum": pl.when(n > 0).then(value.sum()),
        "avg": value.mean(),
        "count": n,
    }
    parts = [
        frame.rolling("ts", period=f"{range_us}us", closed="left", group_by="user")
        .agg(*(calls[function].alias(f"{name}_{label}") for name, function in TRAILING))
        .drop("user", "ts")
        for label, range_us in job["ranges"].items()
    ]
    found = pl.concat([frame.select("id"), *parts], how="horizontal")
    return found.filter(pl.col("id").is_not_null())


def _auction(pl: Any, job: Job) -> Any:
    bid, auction, person = (pl.scan_parquet(job["tables"][n]) for n in ("bid", "auction", "person"))
    sellers = person.filter(pl.col("state") != "CA").select(pl.col("id").alias("seller"))
    opened = auction.join(sellers, on="seller").select(
        pl.col("id").alias("auction"), "category", pl.col("date_time").alias("opened")
    )
    end = pl.col("date_time").dt.truncate("1m") + pl.duration(minutes=pl.col("i") + 1)
    start = (end - pl.duration(hours=1)).alias("window_start")
    fan = pl.LazyFrame({"i": list(range(60))})
    joined = bid.select("auction", "price", "date_time").join(opened, on="auction")
    return (
        joined.join(fan, how="cross")
        .filter(pl.col("opened") < end)
        .group_by("category", start)
        .agg(
            pl.len().cast(pl.Int64).alias("bids"),
            pl.col("price").sum().alias("total"),
            pl.col("price").max().alias("top"),
        )
    )


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    import polars as pl

    def results() -> dict[str, Any]:
        if job["kind"] == "windows":
            frames = {name: pl.scan_parquet(path) for name, path in job["tables"].items()}
            return {q["name"]: _windowed(pl, frames[q["table"]], q) for q in job["queries"]}
        make = {"trailing": _trailing, "as_of": _as_of, "auction": _auction}[job["kind"]]
        return {"rows": make(pl, job)}

    def run() -> None:
        found = results()
        lazy = {name: rows for name, rows in found.items() if isinstance(rows, pl.LazyFrame)}
        made = dict(zip(lazy, pl.collect_all(list(lazy.values()), engine="streaming"), strict=True))
        for name, rows in {**found, **made}.items():
            rows.write_parquet(f"{job['output']}/{name}.parquet")

    return run


def _versions() -> str:
    import polars

    return f"Polars {polars.__version__}"


if __name__ == "__main__":
    serve(start, _versions)
