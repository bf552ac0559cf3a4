"""What a run did, in the same words on every engine: rows of each node, work, time and memory.

An engine that can tell has `run_measured` beside `run`; the two give the same results. It is a
method of its own because telling may cost something: Spark has to execute what `run` leaves lazy.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from weft.cost.batch.plans import works_of
from weft.cost.batch.work import Work, ms_of
from weft.cost.prices import coefficients_of
from weft.cost.volumes import Volumes
from weft.engines.base import Engine
from weft.plan.nodes import scan_below
from weft.plan.render.words import factor_windows, node_ids, title

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.plan import Node, Plan


@dataclass(frozen=True, slots=True)
class NodeRows:
    """The rows that one node of a plan puts out: as the cost model expected, and as it did."""

    name: str  # as EXPLAIN names it; an emit by its query and window
    what: str
    estimated: float | None  # None where the span of the events is not known
    actual: int | None  # None where the engine does not see this node's rows
    expected_ms: float | None = None  # for the events that there were; None where not counted
    ms: float | None = None  # of its own; None where the engine computes nodes together


@dataclass(frozen=True, slots=True)
class StepTime:
    """What nodes took that an engine computes together: on Spark, the stages of one side."""

    what: str
    nodes: tuple[str, ...]  # as EXPLAIN names them
    stages: tuple[int, ...]
    tasks: int
    expected_ms: float | None  # of these nodes; None where not counted
    ms: float  # of the clock
    task_ms: float  # of all tasks together


@dataclass(frozen=True, slots=True)
class Measures:
    """What one run of a plan did and took."""

    engine: str
    scans: int  # times that a source was read
    shuffles: int  # times that rows were moved to the owners of their keys
    events: int
    combines: int | None  # rows combined with another; None where the engine cannot tell
    seconds: float
    peak_bytes: int | None  # the most memory this process had so far; None where not told
    nodes: tuple[NodeRows, ...] = ()
    work: Work = field(default_factory=dict)  # that the cost model counts for such events
    steps: tuple[StepTime, ...] = ()  # where nodes are computed together

    @property
    def expected_ms(self) -> float | None:
        """The time that the cost model expects for such events, where it counts every node."""
        told = [node.expected_ms for node in self.nodes]
        return None if not told or None in told else sum(ms for ms in told if ms is not None)

    @property
    def events_per_second(self) -> float:
        """The throughput of the whole run.

        >>> Measures("local", 1, 0, 500, 20, 0.5, None).events_per_second
        1000.0
        """
        return self.events / self.seconds if self.seconds > 0 else 0.0


@runtime_checkable
class MeasuringEngine(Engine, Protocol):
    """An engine that can tell what a run did."""

    def run_measured(
        self, plan: Plan, sources: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Measures]:
        """Run a plan to its end; return the results and what it took."""
        ...


def peak_resident_bytes() -> int | None:
    """Return the most memory this process had so far, None where the system does not tell.

    >>> peak_resident_bytes() > 1_000_000
    True
    """
    if find_spec("resource") is None:
        return None
    # Linux counts the memory of the process that started this one as its own, up to then, in what
    # `getrusage` tells; what it says of the status begins with this program.
    status = Path("/proc/self/status")
    if status.exists():
        told = next((one for one in status.read_text().splitlines() if one[:6] == "VmHWM:"), None)
        if told is not None:
            return int(told.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def node_rows(
    plan: Plan,
    actual: Mapping[Node, int],
    durations_us: Mapping[str, int],
    seconds: Mapping[Node, float] | None = None,
) -> tuple[NodeRows, ...]:
    """Put the rows that were counted beside those that the cost model expects of such a span.

    `durations_us` says how long the events of each source last, from the first to the last, and
    `seconds` how long nodes took, where the engine can tell.
    """
    ids, factors = node_ids(plan.nodes), factor_windows(plan.nodes)
    works = counted_work(plan, actual, durations_us)
    found: list[NodeRows] = []
    for node in plan.nodes:
        duration_us = durations_us.get(scan_below(node).source)
        rows = None if duration_us is None else Volumes(plan.statistics, duration_us).rows(node)
        ms = None
        if node in works:
            ms = ms_of(works[node], coefficients_of, plan.statistics.cores)
        what = title(node) + (" (factor window)" if node in factors else "")
        took = None if seconds is None or node not in seconds else seconds[node] * 1e3
        found.append(NodeRows(ids.get(node, "->"), what, rows, actual.get(node), ms, took))
    return tuple(found)


def counted_work(
    plan: Plan, actual: Mapping[Node, int], durations_us: Mapping[str, int]
) -> dict[Node, Work]:
    """Count the work of every node for the events that there were; nothing for joins and streams.

    Plans of several sources are not counted: their statistics are those of the first.
    """
    if plan.engine not in ("spark", "local") or plan.joins or len(plan.scans) != 1:
        return {}
    (scan,) = plan.scans
    events, duration_us = actual.get(scan, 0), durations_us.get(scan.source, 0)
    if not events or not duration_us:
        return {}
    seen = replace(plan.statistics, events=events, duration=duration_us, rate=None)
    return works_of(plan, seen, duration_us)
