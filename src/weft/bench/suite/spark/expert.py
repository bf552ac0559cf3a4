"""What an expert writes by hand instead of weft, for the workloads of the Spark entries."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from weft.bench.peers.runners.spark_expert import from_slices, sessions, sliced
from weft.bench.suite.spark.runs import Inputs, answered
from weft.window import PeriodicWindow, SessionWindow

if TYPE_CHECKING:
    from weft.bench.frame import Runner
    from weft.bench.suite.spark.runs import Answer
    from weft.query import Query
    from weft.window import Window


def run_expert(inputs: Inputs) -> Runner:
    """Aggregate once to slices, keep them, and make every window from those; sessions as stock."""

    def runner() -> Answer:
        asked = {query.name: _told(query) for query in inputs.queries}
        clocked = [q for q in asked.values() if not _has_sessions(q)]
        slices, width = sliced(clocked, inputs.events) if clocked else (inputs.events, 0)
        is_kept = sum(len(query["windows"]) for query in clocked) > 1
        if is_kept:
            slices.persist()
        try:
            results = {
                query.name: _rows(query, asked[query.name], inputs.events, slices, width)
                for query in inputs.queries
            }
            return answered(inputs, results)
        finally:
            if is_kept:
                slices.unpersist()

    return runner


def _rows(query: Query, told: Any, events: Any, slices: Any, width: int) -> Any:
    """Make the rows of a query, under weft's names."""
    label, start, end = query.window_columns
    parts = []
    for name, window in query.windows:
        own = told["windows"][name]
        if isinstance(window, SessionWindow):
            rows, ends = sessions(told, name, own, events), "window_end"
        else:
            rows = from_slices(told, name, own, slices, width)
            ends = f"window_start + {own['range_us']}L"
        parts.append(
            rows.selectExpr(
                *told["keys"],
                f"window AS {label}",
                f"timestamp_micros(window_start) AS {start}",
                f"timestamp_micros({ends}) AS {end}",
                *(name for name, _ in query.aggs),
            )
        )
    return reduce(lambda a, b: a.union(b), parts)


def _told(query: Query) -> Any:
    """Describe a query as those of peers are."""
    aggs = [
        {"call": call.function, "as": name, **({"column": call.args[0]} if call.args else {})}
        for name, call in query.aggs
    ]
    return {
        "name": query.name,
        "time": query.time,
        "keys": [name for name, _ in query.keys],
        "where": None,
        "windows": {name: _window(window) for name, window in query.windows},
        "aggs": aggs,
    }


def _window(window: Window) -> dict[str, Any]:
    if isinstance(window, SessionWindow):
        return {"kind": "session", "gap_us": window.gap_us}
    assert isinstance(window, PeriodicWindow)
    return {"kind": "hop", "range_us": window.range_us, "slide_us": window.slide_us}


def _has_sessions(told: Any) -> bool:
    return any(window["kind"] == "session" for window in told["windows"].values())
