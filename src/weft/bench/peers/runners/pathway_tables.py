"""Pathway: one graph that reads once, one `windowby` for each window, rows written as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .protocol import MINUTE_US, copies, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Agg, Job, Query, Window


def _call(pw: Any, agg: Agg) -> dict[str, Any]:
    """Return the columns that an aggregate is made from, which is mostly itself."""
    name, reducers = agg["as"], pw.reducers
    if agg["call"] == "count":
        return {name: reducers.count()}
    column, *by = (pw.this[word.strip()] for word in agg["column"].split(","))
    if agg["call"] == "stddev":
        return {
            f"{name}_n": reducers.count(),
            f"{name}_sum": reducers.sum(column),
            f"{name}_squares": reducers.sum(column * column),
        }
    if agg["call"] == "max_by":
        return {f"{name}_at": reducers.argmax(by[0])}
    return {name: getattr(reducers, agg["call"])(column)}


def _lowered(pw: Any, events: Any, rows: Any, query: Query) -> Any:
    """Make the aggregates that have no reducer of their own."""
    for agg in query["aggs"]:
        name = agg["as"]
        if agg["call"] == "stddev":
            n, total, squares = (rows[f"{name}_{part}"] for part in ("n", "sum", "squares"))
            variance = (squares - total * total / n) / (n - 1)
            rows = rows.with_columns(**{name: variance**0.5})
        elif agg["call"] == "max_by":
            column = agg["column"].split(",")[0].strip()
            rows = rows.with_columns(**{name: events.ix(rows[f"{name}_at"])[column]})
    return rows


def _window(pw: Any, window: Window) -> Any:
    if window["kind"] == "session":
        return pw.temporal.session(max_gap=window["gap_us"])
    # Instances begin at the origin and not before: it must be a whole range before all events.
    range_us = window["range_us"]
    if copies(window) == 1:
        return pw.temporal.tumbling(duration=range_us, origin=-range_us)
    return pw.temporal.sliding(duration=range_us, hop=window["slide_us"], origin=-range_us)


def _windowed(pw: Any, events: Any, query: Query, label: str) -> Any:
    window, keys = query["windows"][label], query["keys"]
    if query["where"]:
        column, value = query["where"]
        events = events.filter(pw.this[column] == value)
    instance = {} if not keys else {"instance": pw.make_tuple(*(pw.this[key] for key in keys))}
    if len(keys) == 1:
        instance = {"instance": pw.this[keys[0]]}
    named: dict[str, Any] = {"window_start": pw.this._pw_window_start}
    if window["kind"] == "session":
        named["window_end"] = pw.this._pw_window_end + window["gap_us"]
    if keys:
        named["instance"] = pw.this._pw_instance
    for agg in query["aggs"]:
        named |= _call(pw, agg)
    rows = events.windowby(pw.this.us, window=_window(pw, window), **instance).reduce(**named)
    rows = _lowered(pw, events, rows, query)
    own = {
        key: rows.instance if len(keys) == 1 else rows.instance.get(place)
        for place, key in enumerate(keys)
    }
    others = [name for name in ("window_start", "window_end") if name in named]
    others += [agg["as"] for agg in query["aggs"]]
    return rows.select(window=label, **own, **{name: rows[name] for name in others})


def _hottest(pw: Any, rows: Any, query: Query) -> Any:
    if not (top := query.get("hottest")):
        return rows
    most = rows.groupby(rows.window_start).reduce(
        rows.window_start, most=pw.reducers.max(rows[top])
    )
    joined = rows.join(most, rows.window_start == most.window_start, rows[top] == most.most)
    return joined.select(*(rows[name] for name in rows.column_names()))


def _auction(pw: Any, tables: dict[str, Any]) -> Any:
    bid, auction, person = (tables[name] for name in ("bid", "auction", "person"))
    sellers = person.filter(pw.this.state != "CA")
    opened = auction.join(sellers, auction.seller == sellers.id_).select(
        auction.id_, auction.category, opened=auction.us
    )
    joined = bid.join(opened, bid.auction == opened.id_).select(
        bid.price, bid.us, opened.category, opened.opened
    )
    hop = pw.temporal.sliding(duration=60 * MINUTE_US, hop=MINUTE_US, origin=0)
    counts = pw.if_else(pw.this.opened < pw.this._pw_window_end, 1, 0)
    rows = joined.windowby(pw.this.us, window=hop, instance=pw.this.category).reduce(
        category=pw.this._pw_instance,
        window_start=pw.this._pw_window_start,
        bids=pw.reducers.sum(counts),
        total=pw.reducers.sum(counts * pw.this.price),
        top=pw.reducers.max(counts * pw.this.price),
    )
    return rows.filter(pw.this.bids > 0)


def _read(pw: Any, job: Job) -> dict[str, Any]:
    """Read tables whole; a column named `id` is renamed, for Pathway has one of its own."""
    import pandas as pd

    found = {}
    for name, path in job["tables"].items():
        frame = pd.read_parquet(path, columns=job["columns"][name]).rename(columns={"id": "id_"})
        time = job["times"][name]
        us = frame.pop(time).dt.as_unit("us").astype("int64")
        found[name] = pw.debug.table_from_pandas(frame.assign(us=us))
    return found


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    import pathway as pw

    def run() -> None:
        pw.internals.parse_graph.G.clear()
        tables = _read(pw, job)
        if job["kind"] == "auction":
            pw.io.csv.write(_auction(pw, tables), f"{job['output']}/rows.csv")
        else:
            for query in job["queries"]:
                for at, label in enumerate(query["windows"]):
                    rows = _windowed(pw, tables[query["table"]], query, label)
                    path = f"{job['output']}/{query['name']}.{at}.csv"
                    pw.io.csv.write(_hottest(pw, rows, query), path)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)

    return run


def _versions() -> str:
    from importlib.metadata import version

    return f"Pathway {version('pathway')}"


if __name__ == "__main__":
    serve(start, _versions)
