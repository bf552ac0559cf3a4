"""What is asked of weft and its peers, in plain words: tables, queries, windows, aggregates.

Times are whole milliseconds, for some have no finer ones. Sizes are such that the slowest contender
of a workload takes some ten seconds on two cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.bench.suite.anchors.inputs import payments
from weft.bench.suite.joins.spark import AUCTION
from weft.bench.suite.mixed.inputs import FILTERS, KEYS, clicks
from weft.generate import nexmark, sensors
from weft.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft.bench.peers.runners.protocol import Agg, Job, Query, Window

Tables = dict[str, pa.Table]
_ALL = (
    "weft", "weft-spark", "stock-spark", "expert-spark", "flink", "duckdb", "polars", "pandas",
    "bytewax", "pathway",
)  # fmt: skip
_AT_ANCHORS = ("weft", "weft-spark", "stock-spark", "segment-tree", "duckdb", "polars")
_RATE = 1000
_SEED = 7
_UTC = pa.timestamp("us", "UTC")
_QUICK_SHARE = 50


@dataclass(frozen=True)
class Workload:
    """One row of the comparison: the tables it reads, and the job that everyone is given."""

    name: str
    title: str
    events: int
    tables: Callable[[int], Tables]
    job: Mapping[str, Any]
    contenders: tuple[str, ...] = _ALL
    state: bool = False  # whether it also runs as a stream, whose state is measured

    @property
    def quick_events(self) -> int:
        """How many events a check of seconds takes."""
        return max(self.events // _QUICK_SHARE, 2_000)


def _whole_milliseconds(table: pa.Table, time: str) -> pa.Table:
    at = table.column_names.index(time)
    us = table[time].cast(pa.int64()).to_numpy() // MILLISECOND * MILLISECOND
    return table.set_column(at, time, pa.array(us, _UTC))


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
    from weft.bench.peers.runners.protocol import copies

    if job["kind"] != "windows":
        return 60 if job["kind"] == "auction" else 1
    return sum(copies(window) for query in job["queries"] for window in query["windows"].values())


def _readings(rate: float = _RATE) -> Callable[[int], Tables]:
    def make(events: int) -> Tables:
        return {"readings": _whole_milliseconds(sensors(events, _SEED, rate=rate), "ts")}

    return make


def _lows(windows: Mapping[str, Window]) -> Job:
    query = _query(
        "lows", "readings", "ts", windows, keys=["device"], aggs=[_agg("lo", "min", "temp")]
    )
    return _windows_job(query)


def _evenly(first_s: int, last_s: int) -> dict[str, Window]:
    return {f"{s}s": tumbling(s * SECOND) for s in range(first_s, last_s + 1, 5)}


def _features() -> Job:
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


def _users(users: int) -> Callable[[int], Tables]:
    def make(events: int) -> Tables:
        draw = np.random.default_rng(_SEED)
        numbers = draw.integers(0, users, events)
        columns: dict[str, Any] = {
            "ts": pa.array(np.sort(draw.integers(0, DAY // 1000, events)) * 1000, _UTC),
            "user": pa.array([f"user-{number}" for number in range(users)]).take(numbers),
            "amount": np.round(draw.random(events) * 400) / 4,
        }
        return {"events": pa.table(columns)}

    return make


def _mixed_24() -> Job:
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


def _mixed_20() -> Job:
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


def _auctions(events_a_second: float | None = 10_000.0) -> Callable[[int], Tables]:
    def make(events: int) -> Tables:
        rate = events / 3600 if events_a_second is None else events_a_second
        found = nexmark(events, _SEED, rate=rate, padding=False)
        return {name: _whole_milliseconds(table, "date_time") for name, table in found.items()}

    return make


def _bids(events: int) -> Tables:
    bids = _auctions()(events)["bid"]
    return {"bid": bids.select(["auction", "bidder", "price", "date_time"])}


def _hot_items(*ranges_s: int) -> Job:
    windows = {f"{s}s": hop(s * SECOND, 2 * SECOND) for s in ranges_s}
    asked: dict[str, Any] = {"keys": ["auction"], "aggs": [_agg("n", "count")], "hottest": "n"}
    return _windows_job(_query("q5", "bid", "date_time", windows, **asked))


def _highest_bid() -> Job:
    calls = [
        _agg("price", "max_by", "price, price"),
        _agg("auction", "max_by", "auction, price"),
        _agg("bidder", "max_by", "bidder, price"),
    ]
    return _windows_job(
        _query("q7", "bid", "date_time", {"10s": tumbling(10 * SECOND)}, aggs=calls)
    )


def _visits() -> Job:
    asked: dict[str, Any] = {"keys": ["bidder"], "aggs": [_agg("bids", "count")]}
    return _windows_job(_query("q11", "bid", "date_time", {"10s": session(10 * SECOND)}, **asked))


_AUCTION_JOB: Job = {
    "kind": "auction",
    "sql": AUCTION,
    "columns": {
        "bid": ["auction", "price", "date_time"],
        "auction": ["id", "seller", "category", "date_time"],
        "person": ["id", "state", "date_time"],
    },
    "times": dict.fromkeys(("bid", "auction", "person"), "date_time"),
}


def _payments(labels: int) -> Callable[[int], Tables]:
    def make(events: int) -> Tables:
        made = payments(events, min(1000, events // 30), labels=min(labels, events))
        tables = {"events": made.events, **({"labels": made.labels} if labels else {})}
        return {name: _whole_milliseconds(table, "ts") for name, table in tables.items()}

    return make


def _ranges(kind: str) -> Job:
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


def _single() -> Job:
    calls = [_agg("lo", "min", "temp"), _agg("mean", "avg", "temp"), _agg("n", "count")]
    asked: dict[str, Any] = {"keys": ["device"], "aggs": calls}
    return _windows_job(_query("one", "readings", "ts", {"60s": tumbling(MINUTE)}, **asked))


def _clicks(events: int) -> Tables:
    return {"clicks": _whole_milliseconds(clicks(events), "ts")}


_MILLION = 1_000_000
WORKLOADS = (
    Workload(
        "tumbling_20",
        "20 tumbling windows, 10 s to 105 s, MIN",
        _MILLION,
        _readings(),
        _lows(_evenly(10, 105)),
        state=True,
    ),
    Workload(
        "tumbling_80",
        "80 tumbling windows, 5 s to 400 s, MIN",
        _MILLION,
        _readings(),
        _lows(_evenly(5, 400)),
    ),
    Workload(
        "hop_60",
        "a hop of 600 s every 10 s (overlap 60), MIN",
        _MILLION,
        _readings(),
        _lows({"hop": hop(600 * SECOND, 10 * SECOND)}),
        state=True,
    ),
    Workload(
        "hop_360",
        "a hop of 1 h every 10 s (overlap 360), MIN",
        200_000,
        _readings(50),
        _lows({"hop": hop(HOUR, 10 * SECOND)}),
    ),
    Workload(
        "features_300",
        "nine feature windows, 300 users",
        500_000,
        _users(300),
        _features(),
        state=True,
    ),
    Workload(
        "features_5000", "nine feature windows, 5,000 users", 300_000, _users(5_000), _features()
    ),
    Workload(
        "features_50000",
        "nine feature windows, 50,000 users",
        200_000,
        _users(50_000),
        _features(),
    ),
    Workload(
        "mixed_24",
        "24 queries: four key sets, three filters, two windows",
        500_000,
        _clicks,
        _mixed_24(),
    ),
    Workload(
        "sessions_20",
        "20 queries of all kinds, four of them sessions",
        500_000,
        _readings(),
        _mixed_20(),
    ),
    Workload(
        "nexmark_q5",
        "NEXMark Q5: the hottest auctions of 10 s, every 2 s",
        _MILLION,
        _bids,
        _hot_items(10),
    ),
    Workload(
        "nexmark_q5_five",
        "NEXMark Q5 with five ranges at once, 10 s to 80 s",
        _MILLION,
        _bids,
        _hot_items(10, 20, 30, 60, 80),
    ),
    Workload(
        "nexmark_q7",
        "NEXMark Q7: the highest bid of every 10 s",
        _MILLION,
        _bids,
        _highest_bid(),
    ),
    Workload(
        "nexmark_q11",
        "NEXMark Q11: how often a person bids in a session of 10 s",
        _MILLION,
        _bids,
        _visits(),
    ),
    Workload(
        "auction",
        "bids joined to auctions and sellers, 1 h every minute",
        300_000,
        _auctions(None),
        _AUCTION_JOB,
    ),
    Workload(
        "trailing",
        "four trailing ranges at every event, 1 h to a week",
        300_000,
        _payments(0),
        _ranges("trailing"),
        _AT_ANCHORS,
    ),
    Workload(
        "as_of",
        "four trailing ranges as of 10,000 labels",
        300_000,
        _payments(10_000),
        _ranges("as_of"),
        _AT_ANCHORS,
    ),
    Workload("single", "one window of 60 s: MIN, AVG, COUNT", _MILLION, _readings(), _single()),
)
