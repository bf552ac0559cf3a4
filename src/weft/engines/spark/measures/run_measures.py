"""What a run on Spark did: scans and shuffles from Spark's own plan, rows counted node by node.

The run itself is timed; what is counted besides, events and slices, is counted afterwards.
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from weft.cost.batch.work import total
from weft.engines.measures import Measures, counted_work, node_rows
from weft.engines.spark.measures.stage_times import step_times, timed_stages
from weft.engines.spark.native.events import TIME, Events
from weft.engines.spark.native.strategy import NativeStrategy
from weft.engines.spark.versions import collected
from weft.plan.planned_scope import planned_scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from weft.engines.spark.scopes import Strategy
    from weft.engines.spark.shared_rows import SharedResults
    from weft.plan import Emit, Node, Plan
    from weft.plan.planned_scope import PlannedScope

_BRANCHES = " :+-"  # what the lines of a plan are indented with
# What Spark's plans call moving rows between tasks, and reading rows that were moved before.
_MOVED, _REUSED = "Exchange", "ReusedExchange"


def measured(
    plan: Plan,
    sources: Mapping[str, DataFrame],
    run: Callable[[], SharedResults],
    strategies: Mapping[PlannedScope, Strategy],
) -> tuple[dict[str, pa.Table], Measures]:
    """Run, compute the lazy results, and say what that took."""
    with timed_stages(next(iter(sources.values())).sparkSession) as stages:
        start = perf_counter()
        results = run()
        tables = {name: collected(frame) for name, frame in results.items()}
        seconds = perf_counter() - start
    actual: dict[Node, int] = {}
    spans_us: dict[str, int] = {}
    steps = Steps(0, 0)
    for scope, strategy in strategies.items():
        steps += steps_of(explained(results[scope.queries[0]]))
        events, span_us = _bounds(scope, sources[scope.scan.source])
        actual[scope.scan] = events
        spans_us[scope.scan.source] = max(spans_us.get(scope.scan.source, 0), span_us)
        if isinstance(strategy, NativeStrategy):
            actual |= strategy.count_rows(scope, sources[scope.scan.source])
        for emit in scope.emits:
            rows = _rows_of(emit, tables[emit.query])
            for node in (emit, *emit.inputs):
                actual[node] = rows
    results.unpersist()
    nodes = node_rows(plan, actual, spans_us)
    measures = Measures(
        engine="spark",
        scans=steps.scans,
        shuffles=steps.shuffles,
        events=sum(actual[scope.scan] for scope in planned_scopes(plan)),
        combines=None,
        seconds=seconds,
        peak_bytes=None,  # most of it is the memory of Java, which other work shares
        nodes=nodes,
        work=total(*counted_work(plan, actual, spans_us).values()),
        steps=step_times(plan, nodes, stages),
    )
    return tables, measures


def _rows_of(emit: Emit, table: pa.Table) -> int:
    own = pc.equal(table[emit.window_columns[0]], pa.scalar(emit.label))
    return table.filter(own).num_rows


def _bounds(scope: PlannedScope, source: DataFrame) -> tuple[int, int]:
    """Count the events of a scope, and measure how long they last."""
    frame = Events.of(scope, source).frame
    ((events, first, last),) = frame.agg(F.count(F.lit(1)), F.min(TIME), F.max(TIME)).collect()
    return events, (last - first if events else 0)


class Steps(NamedTuple):
    """How often a plan of Spark's reads a source, and moves rows between tasks."""

    scans: int
    shuffles: int

    def __add__(self, other: object) -> Steps:
        assert isinstance(other, Steps)
        return Steps(self.scans + other.scans, self.shuffles + other.shuffles)


def explained(frame: DataFrame) -> str:
    """Return Spark's physical plan: as it ran, where it has run."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        frame.explain()
    text = printed.getvalue()
    final = re.search(r"== Final Plan ==\n(.*?)(?=== Initial Plan ==|\Z)", text, re.DOTALL)
    return final[1] if final else text


def steps_of(text: str) -> Steps:
    """Count the leaves and the exchanges of a physical plan.

    >>> steps_of('''
    ... HashAggregate(keys=[k])
    ... +- Exchange hashpartitioning(k, 2)
    ...    +- FileScan parquet [k]
    ... ''')
    Steps(scans=1, shuffles=1)
    """
    lines = [line for line in text.splitlines() if line.strip(_BRANCHES) and "==" not in line[:9]]
    depths = [len(line) - len(line.lstrip(_BRANCHES)) for line in lines]
    scans = shuffles = 0
    for at, line in enumerate(lines):
        name = line[depths[at] :].removeprefix("*").strip("() 0123456789")
        is_leaf = at + 1 == len(lines) or depths[at + 1] <= depths[at]
        if name.startswith(_MOVED):
            shuffles += 1
        elif is_leaf and not name.startswith(_REUSED):
            scans += 1
    return Steps(scans, shuffles)
