"""What is asked, in plain words: queries, windows and aggregates that JSON can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.bench.peers.runners.protocol import copies
from weft.bench.suite.joins.spark import AUCTION
from weft.bench.suite.mixed.inputs import FILTERS, KEYS
from weft.time import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.bench.peers.runners.protocol import Agg, Job, Query, Window


def tumbling(range_us: int) -> Window:
    """Describe a tumbling window."""
    return {"kind": "hop", "range_us": range_us, "slide_us": range_us}


def hop(range_us: int, slide_us: int) -> Window:
    """Describe a hopping window."""
    return {"kind": "hop", "range_us": range_us, "slide_us": slide_us}


def session(gap_us: int) -> Window:
    """Describe a session window."""
    return {"kind": "session", "gap_us": gap_us}


def _agg(name: str, call: str, column: str = "") -> Agg:
    return {"as": name, "call": call, **({"column": column} if column else {})}


def _query(name: str, table: str, time: str, windows: Mapping[str, Window], **asked: Any) -> Query:
    settled = {"keys": [], "where": None, "aggs": [], **asked}
    return {"name": name, "table": table, "time": time, "windows": dict(windows), **settled}


def _windows_job(*queries: Query) -> Job:
    columns: dict[str, dict[str, None]] = {}
    for query in queries:
        used = columns.setdefault(query["table"], {query["time"]: None})
        names = [*query["keys"], *(query["where"] or [])[:1]]
        names += [c.strip() for a in query["aggs"] for c in a.get("column", "").split(",") if c]
        used.update(dict.fromkeys(names))
    return {
        "kind": "windows",
        "queries": list(queries),
        "columns": {table: list(used) for table, used in columns.items()},
        "times": {query["table"]: query["time"] for query in queries},
    }


def copies_of(job: Mapping[str, Any]) -> int:
    """Count the instances that an event is put into, by who copies it into each of its own.

    >>> windows = {"w": hop(60, 10), "s": session(5)}
    >>> copies_of({"kind": "windows", "queries": [{"windows": windows}]})
    7
    """
    if job["kind"] != "windows":
        return 60 if job["kind"] == "auction" else 1
    return sum(copies(window) for query in job["queries"] for window in query["windows"].values())


def lows(windows: Mapping[str, Window]) -> Job:
    """Ask for the least temperature of every device."""
    query = _query(
        "lows", "readings", "ts", windows, keys=["device"], aggs=[_agg("lo", "min", "temp")]
    )
    return _windows_job(query)


def evenly(first_s: int, last_s: int) -> dict[str, Window]:
    """Describe tumbling windows, one for every five seconds of range."""
    return {f"{s}s": tumbling(s * SECOND) for s in range(first_s, last_s + 1, 5)}


def features() -> Job:
    """Nine windows of a minute to a day, five aggregates, keys that are text."""
    windows = {
        **{f"{m}m": tumbling(m * MINUTE) for m in (1, 5, 15, 60, 360, 1440)},
        "1h/5m": hop(HOUR, 5 * MINUTE),
        "6h/1h": hop(6 * HOUR, HOUR),
        "1d/1h": hop(DAY, HOUR),
    }
    calls = [
        _agg("n", "count"),
        *(_agg(f"{call}_amount", call, "amount") for call in ("sum", "avg", "min", "max")),
    ]
    return _windows_job(_query("features", "events", "ts", windows, keys=["user"], aggs=calls))


def mixed_24() -> Job:
    """Four key sets, three filters, two windows."""
    calls = [_agg("n", "count"), _agg("total", "sum", "amount"), _agg("most", "max", "amount")]
    windows = {"1h": tumbling(HOUR), "6h": hop(6 * HOUR, 2 * HOUR)}
    wheres = [None if text is None else ["action", text.split("'")[1]] for text in FILTERS]
    queries = [
        _query(
            f"{'_'.join(keys) or 'all'}_{at}_{label}",
            "clicks",
            "ts",
            {label: window},
            keys=list(keys),
            where=where,
            aggs=calls,
        )
        for keys in KEYS
        for at, where in enumerate(wheres)
        for label, window in windows.items()
    ]
    return _windows_job(*queries)


def mixed_20() -> Job:
    """Twenty queries with two of six aggregates each, four of them sessions."""
    calls = [
        *(_agg(name, name, "temp") for name in ("min", "max", "sum", "avg")),
        _agg("n", "count"),
        _agg("stddev", "stddev", "temp"),
    ]
    hops = ((20, 10), (30, 10), (60, 10), (60, 15), (120, 30), (300, 60), (600, 60), (600, 120))
    windows = [
        *(tumbling(s * SECOND) for s in (5, 10, 15, 30, 60, 120, 300, 600)),
        *(hop(range_s * SECOND, slide_s * SECOND) for range_s, slide_s in hops),
        *(session(ms * 1000) for ms in (500, 1000, 2000, 5000)),
    ]
    queries = []
    for number, window in enumerate(windows):
        chosen = [calls[number % 6], calls[(number + 1 + number // 6) % 6]]
        asked = {"keys": ["device"], "aggs": chosen}
        queries.append(_query(f"q{number:02}", "readings", "ts", {"w": window}, **asked))
    return _windows_job(*queries)


def hot_items(*ranges_s: int) -> Job:
    """Ask for the auctions that have the most bids, over ranges of so many seconds."""
    windows = {f"{s}s": hop(s * SECOND, 2 * SECOND) for s in ranges_s}
    asked: dict[str, Any] = {"keys": ["auction"], "aggs": [_agg("n", "count")], "hottest": "n"}
    return _windows_job(_query("q5", "bid", "date_time", windows, **asked))


def highest_bid() -> Job:
    """Ask for the highest bid of every ten seconds, and whose it is."""
    calls = [
        _agg("price", "max_by", "price, price"),
        _agg("auction", "max_by", "auction, price"),
        _agg("bidder", "max_by", "bidder, price"),
    ]
    return _windows_job(
        _query("q7", "bid", "date_time", {"10s": tumbling(10 * SECOND)}, aggs=calls)
    )


def visits() -> Job:
    """Ask how often people bid before they pause for ten seconds."""
    asked: dict[str, Any] = {"keys": ["bidder"], "aggs": [_agg("bids", "count")]}
    return _windows_job(_query("q11", "bid", "date_time", {"10s": session(10 * SECOND)}, **asked))


def ranges(kind: str) -> Job:
    """Ask for four trailing ranges, at every event or as of labels."""
    ranges = {f"w{at}": hours * HOUR for at, hours in enumerate((1, 6, 24, 168))}
    columns = {"events": ["id", "user", "ts", "amount"], "labels": ["id", "user", "ts"]}
    if kind == "trailing":
        del columns["labels"]
    return {
        "kind": kind,
        "ranges": ranges,
        "columns": columns,
        "times": dict.fromkeys(columns, "ts"),
    }


def single() -> Job:
    """Ask for one window alone."""
    calls = [_agg("lo", "min", "temp"), _agg("mean", "avg", "temp"), _agg("n", "count")]
    asked: dict[str, Any] = {"keys": ["device"], "aggs": calls}
    return _windows_job(_query("one", "readings", "ts", {"60s": tumbling(MINUTE)}, **asked))


AUCTION_JOB: Job = {
    "kind": "auction",
    "sql": AUCTION,
    "columns": {
        "bid": ["auction", "price", "date_time"],
        "auction": ["id", "seller", "category", "date_time"],
        "person": ["id", "state", "date_time"],
    },
    "times": dict.fromkeys(("bid", "auction", "person"), "date_time"),
}
