"""pandas: one `groupby` a window, hops as copies of rows; one thread, as it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .protocol import MINUTE_US, copies, instance_columns, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Job, Query, Window

_NAMES = {"avg": "mean", "stddev": "std"}


def _us(times: Any) -> Any:
    """Return times as whole microseconds."""
    return times.dt.as_unit("us").astype("int64").to_numpy()


def _folded(grouped: Any, query: Query, extra: dict[str, tuple[str, str]]) -> Any:
    """Aggregate groups by name, and let the rows of a greatest value tell its others."""
    calls: dict[str, tuple[str, str]] = dict(extra)
    picked: dict[str, tuple[str, str]] = {}
    for agg in query["aggs"]:
        if agg["call"] == "max_by":
            value, by = (column.strip() for column in agg["column"].split(","))
            picked[agg["as"]] = (value, by)
        else:
            call = "size" if agg["call"] == "count" else _NAMES.get(agg["call"], agg["call"])
            calls[agg["as"]] = (agg.get("column", "us"), call)
    for _, by in picked.values():
        calls["at"] = (by, "idxmax")
    found = grouped.agg(**calls).reset_index()
    for name, (value, _) in picked.items():
        found[name] = grouped.obj[value].loc[found["at"]].to_numpy()
    return found


def _one(np: Any, frame: Any, query: Query, window: Window) -> Any:
    keys = list(query["keys"])
    us = frame["us"].to_numpy()
    if window["kind"] == "session":
        ordered = frame.sort_values([*keys, "us"], kind="stable")
        gaps = ordered.groupby(keys, sort=False)["us"].diff() if keys else ordered["us"].diff()
        ordered["nth"] = (gaps >= window["gap_us"]).cumsum()
        extra = {"window_start": ("us", "min"), "window_end": ("us", "max")}
        found = _folded(ordered.groupby([*keys, "nth"], sort=False), query, extra)
        found["window_end"] += window["gap_us"]
        return found
    slide, count = window["slide_us"], copies(window)
    begin = us // slide
    if count > 1:
        frame = frame.loc[np.repeat(frame.index.to_numpy(), count)]
        begin = np.repeat(begin, count) - np.tile(np.arange(count), len(us))
        frame = frame.reset_index(drop=True)
    frame = frame.assign(window_start=begin * slide)
    return _folded(frame.groupby([*keys, "window_start"], sort=False), query, {})


def _windowed(pd: Any, np: Any, frame: Any, query: Query) -> Any:
    if query["where"]:
        column, value = query["where"]
        frame = frame[frame[column] == value].reset_index(drop=True)
    used = {c.strip() for agg in query["aggs"] for c in agg.get("column", "us").split(",")}
    frame = frame[[*query["keys"], *sorted(used | {"us"})]]
    parts = [
        _one(np, frame, query, window).assign(window=label)
        for label, window in query["windows"].items()
    ]
    names = [*query["keys"], *instance_columns(query), *(agg["as"] for agg in query["aggs"])]
    found = pd.concat(parts)[names]
    if top := query.get("hottest"):
        most = found.groupby(instance_columns(query))[top].transform("max")
        found = found[found[top] == most]
    return found


def _auction(pd: Any, np: Any, job: Job) -> Any:
    bid, auction, person = (
        pd.read_parquet(job["tables"][name], columns=columns)
        for name, columns in (
            ("bid", ["auction", "price", "date_time"]),
            ("auction", ["id", "seller", "category", "date_time"]),
            ("person", ["id", "state"]),
        )
    )
    sellers = person.loc[person["state"] != "CA", "id"]
    opened = auction[auction["seller"].isin(sellers)]
    joined = bid.merge(opened, left_on="auction", right_on="id", suffixes=("", "_opened"))
    minute = _us(joined["date_time"]) // MINUTE_US
    begin = np.repeat(minute, 60) - np.tile(np.arange(60), len(joined))
    since = _us(joined["date_time_opened"])
    rows = joined[["category", "price"]].loc[np.repeat(joined.index.to_numpy(), 60)]
    rows = rows.assign(window_start=begin * MINUTE_US)
    rows = rows[np.repeat(since, 60) < (begin + 60) * MINUTE_US]
    grouped = rows.groupby(["category", "window_start"], sort=False)["price"]
    return grouped.agg(bids="size", total="sum", top="max").reset_index()


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    import numpy as np
    import pandas as pd

    def run() -> None:
        if job["kind"] == "auction":
            _auction(pd, np, job).to_parquet(f"{job['output']}/rows.parquet")
            return
        frames: dict[str, Any] = {}
        for query in job["queries"]:
            if query["table"] not in frames:
                frame = pd.read_parquet(job["tables"][query["table"]])
                frames[query["table"]] = frame.assign(us=_us(frame[query["time"]]))
            found = _windowed(pd, np, frames[query["table"]], query)
            found.to_parquet(f"{job['output']}/{query['name']}.parquet")

    return run


def _versions() -> str:
    import pandas as pd

    return f"pandas {pd.__version__}"


if __name__ == "__main__":
    serve(start, _versions)
