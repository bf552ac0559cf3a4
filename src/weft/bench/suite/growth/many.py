"""The price of many: what n windows cost when one costs 1, in weft and elsewhere.

Rows of results must be written by whoever computes them, and n windows have more of them than one.
So beside the plain ratio stands the one from which the time to write the rows alone is taken.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.bench.frame import Column, Entry, Limit, Panel, Row, Sheet, Table, missing
from weft.bench.suite.local.inputs import (
    WindowedEvents,
    draw_events,
    least_by_numpy,
    same_answer,
)
from weft.bench.suite.local.peers import DUCKDB_UNION, POLARS_UNION
from weft.bench.suite.local.speed import WEFT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft.bench.frame import Contender, Runner
    from weft.bench.suite.local.inputs import Shape

_COUNTS = (1, 2, 5, 10, 20, 40, 80, 160)
_QUICK_COUNTS = (1, 2, 5)
_EVENTS, _QUICK_EVENTS = 5_000_000, 200_000
_KEYS = 10
_FIRST_S, _STEP_S = 10, 5
_ROUNDS, _QUICK_ROUNDS = 7, 1
_LONG_S = 8.0
# Contenders that compute each window by itself take long where there are many.
_MOST_ALONE = {"stock": 20}
_BEYOND = "beyond the rows"
_OVER_ONE = "over one"


def shapes_of(windows: int) -> tuple[Shape, ...]:
    """Tumbling windows of 10 s, 15 s and so on.

    >>> shapes_of(3)
    ((10, 10), (15, 15), (20, 20))
    """
    return tuple((_FIRST_S + at * _STEP_S,) * 2 for at in range(windows))


def seconds_of(runners: Mapping[str, Runner], rounds: int) -> dict[str, float]:
    """Time runners in turn, round after round; return the median of each.

    They have run before. Whoever takes long takes part in fewer rounds, at least in one.
    """
    taken: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            if sum(taken[name]) < _LONG_S:
                start = perf_counter()
                runner()
                taken[name].append(perf_counter() - start)
    return {name: median(seconds) for name, seconds in taken.items()}


def written_in_memory(answer: Any) -> Callable[[], Any]:
    """Return what writes as many rows of the same columns: nothing but filling new memory."""
    from weft.frames import to_arrow

    table = to_arrow(answer)
    columns: list[Any] = [np.arange(table.num_rows) for _ in table.column_names]
    return lambda: pa.table({str(at): column.copy() for at, column in enumerate(columns)})


def rows_of(
    counts: tuple[int, ...],
    timed: Mapping[int, Mapping[str, float]],
    rows: Mapping[int, int],
    written: Mapping[int, float],
) -> tuple[Row, ...]:
    """Set times over those of one window, with and without the time to write the rows."""
    found: list[Row] = []
    for name in timed[counts[0]]:
        one = timed[counts[0]][name]
        for count in counts:
            if name not in timed[count]:
                continue
            seconds = timed[count][name]
            computing = max(seconds - written[count], 0.0) / max(one - written[counts[0]], 1e-9)
            found.append(
                {
                    "contender": name,
                    "windows": count,
                    "rows": rows[count],
                    "seconds": seconds,
                    _OVER_ONE: seconds / one,
                    _BEYOND: computing,
                }
            )
    return tuple(found)


def panel_of(rows: tuple[Row, ...]) -> tuple[Panel, ...]:
    """Draw the price of many over the number of windows, and the line of paying for each."""
    lines: dict[str, Any] = {}
    for name in dict.fromkeys(str(row["contender"]) for row in rows):
        own = [row for row in rows if row["contender"] == name]
        lines[name] = tuple(tuple(row[column] for row in own) for column in ("windows", _OVER_ONE))
    title = "time over that of one window"
    return (Panel(title, "windows", title, lines, log_x=True, log_y=True),)


def _local(quick: bool) -> Sheet:
    counts, events = (_QUICK_COUNTS, _QUICK_EVENTS) if quick else (_COUNTS, _EVENTS)
    contenders: dict[str, Contender] = {
        "weft": WEFT,
        "duckdb": DUCKDB_UNION,
        "polars": POLARS_UNION,
    }
    present = {n: c for n, c in contenders.items() if not missing(c.needs)}
    table = draw_events(events, _KEYS)
    wrong: list[str] = []
    timed: dict[int, dict[str, float]] = {}
    rows: dict[int, int] = {}
    written: dict[int, float] = {}
    for count in counts:
        inputs = WindowedEvents(table, _KEYS, shapes_of(count))
        runners = {name: contender.start(inputs) for name, contender in present.items()}
        expected = least_by_numpy(inputs)
        for name, runner in runners.items():
            if difference := same_answer(expected, runner()):
                wrong.append(f"{name}, {count} windows: {difference}")
        runners["rows alone"] = written_in_memory(present["weft"].start(inputs)())
        found = seconds_of(runners, _QUICK_ROUNDS if quick else _ROUNDS)
        written[count] = found.pop("rows alone")
        timed[count], rows[count] = found, len(expected[0])
    table_rows = rows_of(counts, timed, rows, written)
    return Sheet(table_rows, tuple(wrong), panel_of(table_rows))


def _spark(quick: bool) -> Sheet:
    from weft.bench.suite.spark.runs import (
        Inputs,
        readings,
        run_shared,
        run_stock,
        same_answers,
    )

    counts, events = (_QUICK_COUNTS, _QUICK_EVENTS) if quick else (_COUNTS, _EVENTS)
    frame = readings(events)
    wrong: list[str] = []
    timed: dict[int, dict[str, float]] = {}
    rows: dict[int, int] = {}
    written: dict[int, float] = {}
    for count in counts:
        inputs = Inputs(frame, _lows(count))
        runners: dict[str, Runner] = {"weft": run_shared(inputs)}
        if count <= _MOST_ALONE["stock"]:
            runners["stock"] = run_stock(inputs)
        # Stock Spark takes minutes for many windows, so answers are compared over some events.
        some = Inputs(readings(_QUICK_EVENTS), inputs.workload)
        if text := same_answers(run_stock(some)(), run_shared(some)()):
            wrong.append(f"{count} windows: {text}")
        (seen,) = runners["weft"]().values()
        rows[count] = (seen if isinstance(seen, dict) else seen.get)["rows"]
        runners["rows alone"] = _rows_alone(frame.sparkSession, rows[count])
        found = seconds_of(runners, _QUICK_ROUNDS if quick else _ROUNDS)
        written[count] = found.pop("rows alone")
        timed[count] = found
    table_rows = rows_of(counts, timed, rows, written)
    return Sheet(table_rows, tuple(wrong), panel_of(table_rows))


def _lows(windows: int) -> Any:
    from weft import agg
    from weft.query import Query, Workload
    from weft.window import tumbling

    ranges = {f"{s} s": tumbling(f"{s} seconds") for s, _ in shapes_of(windows)}
    return Workload(
        [
            Query(
                "lows",
                source="readings",
                time="ts",
                keys=["device"],
                windows=ranges,
                aggs={"lo": agg.min("temp")},
            )
        ]
    )


def _rows_alone(session: Any, rows: int) -> Runner:
    """Write as many rows with columns of the same types, which nothing computes."""
    from weft.bench.suite.spark.runs import write_nowhere

    alone = session.range(rows).selectExpr(
        "concat('device-', id % 10) AS device",
        "'10 s' AS window",
        "timestamp_micros(id) AS window_start",
        "timestamp_micros(id + 1) AS window_end",
        "double(id) AS lo",
    )
    return lambda: write_nowhere(alone)


_COLUMNS = (
    Column("contender"),
    Column("windows", "d"),
    Column("rows", ",d"),
    Column("seconds", ".3g"),
    Column(_OVER_ONE, ".2f"),
    Column(_BEYOND, ".2f"),
)
_LIMITS = tuple(
    Limit(_BEYOND, at_most=most, rows={"contender": "weft", "windows": count}, at_quick=False)
    for count, most in (("20", 1.15), ("80", 1.5))
)

ENTRIES: tuple[Entry, ...] = (
    Table(
        name="many/local",
        question="What do n windows cost on the local engine when one costs 1, and elsewhere?",
        columns=_COLUMNS,
        compute=_local,
        limits=_LIMITS,
    ),
    Table(
        name="many/spark",
        question="And on Spark?",
        columns=_COLUMNS,
        compute=_spark,
        limits=_LIMITS,
        needs=("pyspark",),
    ),
)
