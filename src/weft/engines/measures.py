"""What a run did, in the same words on every engine: rows of each node, work, time and memory.

An engine that can tell has `run_measured` beside `run`; the two give the same results. It is a
method of its own because telling may cost something: Spark has to execute what `run` leaves lazy.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from weft.cost.model import RateModel, coefficients_of
from weft.engines.base import Engine
from weft.plan import Emit, Roll, Slice
from weft.plan.nodes import scan_below
from weft.plan.render.words import factor_windows, node_ids, title
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.plan import Node, Plan

_SECOND_US = 1e6
_CLOCKED = (PeriodicWindow, CumulatingWindow, CalendarWindow)


@dataclass(frozen=True, slots=True)
class NodeRows:
    """The rows that one node of a plan puts out: as the cost model expected, and as it did."""

    name: str  # as EXPLAIN names it; an emit by its query and window
    what: str
    estimated: float | None  # None where the span of the events is not known
    actual: int | None  # None where the engine does not see this node's rows


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
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def node_rows(
    plan: Plan, actual: Mapping[Node, int], durations_us: Mapping[str, int]
) -> tuple[NodeRows, ...]:
    """Put the rows that were counted beside those that the cost model expects of such a span.

    `durations_us` says how long the events of each source last, from the first to the last.
    """
    ids, factors = node_ids(plan.nodes), factor_windows(plan.nodes)
    model = RateModel(coefficients_of(plan.engine), plan.statistics)
    found: list[NodeRows] = []
    for node in plan.nodes:
        duration_us = durations_us.get(scan_below(node).source)
        expected = None if duration_us is None else _expected_rows(model, node, duration_us)
        what = title(node) + (" (factor window)" if node in factors else "")
        found.append(NodeRows(ids.get(node, "->"), what, expected, actual.get(node)))
    return tuple(found)


def _expected_rows(model: RateModel, node: Node, duration_us: int) -> float:
    """Return how many rows a node puts out for events that last so long.

    Slices and instances that began before the first event, or end after the last, have rows too.
    """
    while isinstance(node, Emit):
        node = node.inputs[0]
    match node:
        case Roll(window=window) if isinstance(window, _CLOCKED):
            range_us, period_us = model.range_us(window), model.period_us(window)
        case Slice():
            range_us = period_us = _SECOND_US / model.slices_per_second(node.edges)
        case _:
            return model.rows_per_second(node) * duration_us / _SECOND_US
    return model.keys_in(min(range_us, duration_us)) * (duration_us + range_us) / period_us
