"""Bytewax: one flow that reads once, and one `fold_window` in Python for each window of a query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import sqrt
from typing import TYPE_CHECKING, Any

from .protocol import MINUTE_US, CannotDo, copies, instance_columns, serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Agg, Job, Query, Window

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH = 1000
_MICROSECOND = timedelta(microseconds=1)
Event = dict[str, Any]


def _step(aggs: list[Agg]) -> Callable[[list[Any], Event], list[Any]]:
    """Return a function that folds an event into what is kept: times, then a list for each call."""
    asked = [(agg["call"], [c.strip() for c in agg.get("column", "").split(",")]) for agg in aggs]

    def fold(kept: list[Any], event: Event) -> list[Any]:
        us = event["us"]
        if len(kept) == 0:
            kept[:] = [us, us, *([0, 0.0, 0.0, None, None] for _ in asked)]
        kept[0], kept[1] = min(kept[0], us), max(kept[1], us)
        for place, (call, columns) in zip(kept[2:], asked, strict=True):
            place[0] += 1
            if call == "count":
                continue
            value = event[columns[0]]
            if call in ("sum", "avg"):
                place[1] += value
            elif call == "stddev":  # Welford's
                delta = value - place[1]
                place[1] += delta / place[0]
                place[2] += delta * (value - place[1])
            elif call == "max_by":
                if place[3] is None or event[columns[1]] > place[3]:
                    place[3], place[4] = event[columns[1]], value
            elif place[3] is None or (value < place[3] if call == "min" else value > place[3]):
                place[3] = value
        return kept

    return fold


def _lowered(agg: Agg, kept: list[Any]) -> Any:
    n, total, squares, least_or_greatest, other = kept
    match agg["call"]:
        case "count":
            return n
        case "sum":
            return total
        case "avg":
            return total / n
        case "stddev":
            return sqrt(squares / (n - 1)) if n > 1 else None
        case "max_by":
            return other
    return least_or_greatest


def _merged(a: list[Any], b: list[Any]) -> list[Any]:
    raise CannotDo("sessions merged, though events came in order")


def _clock(windows: Any) -> Any:
    """Go by the times of events alone: the system's clock, which is added, makes a replay late."""
    return windows.EventClock(
        ts_getter=lambda event: event["at"],
        wait_for_system_duration=timedelta(0),
        now_getter=lambda: _EPOCH,
        to_system_utc=lambda _: None,
    )


def _windower(windows: Any, window: Window) -> Any:
    if window["kind"] == "session":
        # A gap of theirs takes in an event that comes exactly so much later.
        return windows.SessionWindower(gap=(window["gap_us"] - 1) * _MICROSECOND)
    range_, slide = window["range_us"] * _MICROSECOND, window["slide_us"] * _MICROSECOND
    if copies(window) == 1:
        return windows.TumblingWindower(align_to=_EPOCH, length=range_)
    return windows.SlidingWindower(align_to=_EPOCH, length=range_, offset=slide)


def _add_window(flow: Any, events: Any, query: Query, label: str, out: list[Any]) -> None:
    """Hang one window of a query behind the events; its rows go to a list."""
    import bytewax.operators as op
    import bytewax.operators.windowing as windows
    from bytewax.testing import TestingSink

    window, step = query["windows"][label], f"{query['name']}-{label}".replace(".", "_")
    keyed = op.key_on(f"{step}-key", events, _key_of(query))
    folded = windows.fold_window(
        f"{step}-fold",
        keyed,
        _clock(windows),
        _windower(windows, window),
        list,
        _step(query["aggs"]),
        _merged,
    )
    op.output(f"{step}-out", folded.down, TestingSink(out))


def _key_of(query: Query) -> Callable[[Event], str]:
    keys = query["keys"]
    return lambda event: "\x1f".join(str(event[key]) for key in keys)


def _rows(query: Query, label: str, found: list[Any], types: dict[str, Any]) -> list[Event]:
    """Write what came out as rows: keys are text in Bytewax, and windows numbers."""
    window, rows = query["windows"][label], []
    for key, (number, kept) in found:
        row: Event = {"window": label}
        for name, text in zip(query["keys"], key.split("\x1f"), strict=False):
            row[name] = types[name](text)
        if window["kind"] == "session":
            row |= {"window_start": kept[0], "window_end": kept[1] + window["gap_us"]}
        else:
            row["window_start"] = number * window["slide_us"]
        for agg, own in zip(query["aggs"], kept[2:], strict=True):
            row[agg["as"]] = _lowered(agg, own)
        rows.append(row)
    return rows


def _hottest(query: Query, rows: list[Event]) -> list[Event]:
    if not (top := query.get("hottest")):
        return rows
    most: dict[tuple[Any, ...], Any] = {}
    places = [tuple(row[name] for name in instance_columns(query)) for row in rows]
    for place, row in zip(places, rows, strict=True):
        most[place] = max(row[top], most.get(place, row[top]))
    return [row for place, row in zip(places, rows, strict=True) if row[top] == most[place]]


def _events(job: Job, name: str, time: str) -> list[Event]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(job["tables"][name], columns=job["columns"][name])
    us = table[time].cast(pa.int64())
    at = table[time].cast(pa.timestamp("us", "UTC"))
    return table.drop_columns([time]).append_column("us", us).append_column("at", at).to_pylist()


def _windows(job: Job) -> dict[str, list[Event]]:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSource, run_main

    flow = Dataflow("peers")
    queries = job["queries"]
    (table,) = {query["table"] for query in queries}
    read = _events(job, table, queries[0]["time"])
    types = {name: type(value) for name, value in read[0].items()}
    events = op.input("events", flow, TestingSource(read, batch_size=_BATCH))
    filtered: dict[Any, Any] = {None: events}
    found: dict[tuple[str, str], list[Any]] = {}
    for query in queries:
        where = tuple(query["where"]) if query["where"] else None
        if where not in filtered:
            column, value = query["where"]
            filtered[where] = op.filter(f"where-{value}", events, _equals(column, value))
        for label in query["windows"]:
            out = found[query["name"], label] = []
            _add_window(flow, filtered[where], query, label, out)
    run_main(flow)
    results: dict[str, list[Event]] = {query["name"]: [] for query in queries}
    for query in queries:
        for label in query["windows"]:
            results[query["name"]] += _rows(query, label, found[query["name"], label], types)
        results[query["name"]] = _hottest(query, results[query["name"]])
    return results


def _equals(column: str, value: str) -> Callable[[Event], bool]:
    return lambda event: bool(event[column] == value)


def _auction_fold(kept: list[Any], event: Event) -> list[Any]:
    """Add a bid; of one that came before its auction opened, keep all, until the end is known."""
    kept[:] = kept or [0, 0, 0, []]
    if event["opened"] > event["us"]:
        kept[3].append((event["opened"], event["price"]))
    else:
        kept[0] += 1
        kept[1] += event["price"]
        kept[2] = max(kept[2], event["price"])
    return kept


def _auction(job: Job) -> dict[str, list[Event]]:
    """Look auctions and sellers up in a dictionary, as one does with tables that do not change."""
    import bytewax.operators as op
    import bytewax.operators.windowing as windows
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    sellers = {p["id"] for p in _events(job, "person", "date_time") if p["state"] != "CA"}
    auctions = {
        a["id"]: (a["category"], a["us"])
        for a in _events(job, "auction", "date_time")
        if a["seller"] in sellers
    }

    def opened(bid: Event) -> tuple[str, Event] | None:
        if (known := auctions.get(bid["auction"])) is None:
            return None
        return str(known[0]), {**bid, "opened": known[1]}

    flow = Dataflow("auction")
    out: list[Any] = []
    read = op.input(
        "bids", flow, TestingSource(_events(job, "bid", "date_time"), batch_size=_BATCH)
    )
    windower = windows.SlidingWindower(
        align_to=_EPOCH, length=timedelta(hours=1), offset=timedelta(minutes=1)
    )
    joined = op.filter_map("join", read, opened)
    folded = windows.fold_window(
        "fold", joined, _clock(windows), windower, list, _auction_fold, _merged
    )
    op.output("out", folded.down, TestingSink(out))
    run_main(flow)
    rows = []
    for category, (number, (bids, total, top, others)) in out:
        counted = [price for since, price in others if since < (number + 60) * MINUTE_US]
        if bids := bids + len(counted):
            row = {"bids": bids, "total": total + sum(counted), "top": max([top, *counted])}
            rows.append({"category": int(category), "window_start": number * MINUTE_US, **row})
    return {"rows": rows}


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def run() -> None:
        results = _auction(job) if job["kind"] == "auction" else _windows(job)
        for name, rows in results.items():
            pq.write_table(pa.Table.from_pylist(rows), f"{job['output']}/{name}.parquet")

    return run


def _versions() -> str:
    from importlib.metadata import version

    return f"Bytewax {version('bytewax')}"


if __name__ == "__main__":
    serve(start, _versions)
