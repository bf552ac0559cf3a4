"""A job in weft's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import weft
from weft import agg

from .protocol import TRAILING

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall

    from .protocol import Agg, Job, Query, Window


def _window(window: Window) -> weft.Window:
    if window["kind"] == "session":
        return weft.session(window["gap_us"])
    return weft.hopping(window["range_us"], window["slide_us"])


def _call(asked: Agg) -> AggregateCall:
    columns = [column.strip() for column in asked.get("column", "").split(",") if column]
    call: AggregateCall = getattr(agg, asked["call"])(*columns)
    return call


def query_of(asked: Query) -> weft.Query:
    """Return a query as weft has it.

    >>> hop = {"kind": "hop", "range_us": 60_000_000, "slide_us": 60_000_000}
    >>> asked = {"name": "q", "table": "events", "time": "ts", "keys": ["k"], "where": None}
    >>> found = query_of({**asked, "windows": {"w": hop}, "aggs": [{"as": "n", "call": "count"}]})
    >>> [(name, str(call)) for name, call in found.aggs]
    [('n', 'count(*)')]
    """
    return weft.Query(
        asked["name"],
        source=asked["table"],
        time=asked["time"],
        keys=list(asked["keys"]),
        where=f"{asked['where'][0]} = '{asked['where'][1]}'" if asked["where"] else None,
        windows={label: _window(window) for label, window in asked["windows"].items()},
        aggs={call["as"]: _call(call) for call in asked["aggs"]},
    )


def workload_of(job: Job) -> weft.Workload:
    """Return all queries of a job as one workload."""
    return weft.Workload([query_of(query) for query in job["queries"]])


def trailing_of(job: Job) -> dict[str, Any]:
    """Return what `rolling` and `as_of` are told of trailing ranges."""
    calls = {name: getattr(agg, function)("amount") for name, function in TRAILING}
    return {"time": "ts", "by": ["user"], "windows": job["ranges"], "aggs": calls}
