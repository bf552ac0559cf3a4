"""A plan: nodes in topological order, what they cost, and what was considered instead."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, assert_never

from weft.plan.joins import join_query
from weft.plan.node_json import nodes_to_json
from weft.plan.nodes import Emit, Join, Node, Roll, Scan, Slice, scan_below
from weft.query import Query
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.query import JoinQuery
    from weft.window import Window

ENGINES = ("spark", "local", "reference")
# How Spark runs a scope: Catalyst expressions only, or rows through Arrow to the kernels.
NATIVE, COLUMNAR = "native", "columnar"
STRATEGIES = (NATIVE, COLUMNAR)
# What users write today: on Spark, an aggregation for each window. It is priced, never chosen.
STOCK = "stock"
Ships = Literal["slices", "events"]
Format = Literal["text", "verbose", "json", "mermaid", "html", "svg"]
FORMATS: tuple[Format, ...] = ("text", "verbose", "json", "mermaid", "html", "svg")


class Candidate(NamedTuple):
    """A planner's proposal: its cost, and why it was or was not taken."""

    planner: str
    cost: float
    reason: str


class Share(NamedTuple):
    """What one window of one query costs inside the plan, and would cost alone."""

    query: str
    label: str
    window: str
    feeder: str  # what its Roll reads, such as "TUMBLE 10m" or "events"
    marginal: float  # what the plan would save without it
    alone: float  # what it would cost from events, with nobody to share with
    reason: str  # why it is not shared; empty when it is


class StrategyChoice(NamedTuple):
    """How Spark runs the queries of one scope, what either way costs, and why it is this one."""

    queries: tuple[str, ...]
    strategy: str
    ships: Ships  # what columnar sends to the kernels
    native: float | None  # cost; None where it cannot run, or nothing is priced
    columnar: float | None
    reason: str
    # Events of one key go to as many tasks as they have stretches of this length, which make slices
    # of them; these then come together by key. None: all events of a key go to one task.
    salt_us: int | None = None


@dataclass(frozen=True)
class PlanBody:
    """What a plan says: its nodes, their costs, what was considered; `Plan` adds how to show it."""

    nodes: tuple[Node, ...]
    planner: str
    engine: str
    model: str
    unit: str  # what a cost is per, such as "per second" or "per 2h"
    node_costs: tuple[float, ...]
    candidates: tuple[Candidate, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)
    shares: tuple[Share, ...] = ()
    notes: tuple[str, ...] = ()
    strategies: tuple[StrategyChoice, ...] = ()  # of a plan for Spark, one per scope

    @cached_property
    def cost(self) -> float:
        """The cost of all nodes together."""
        return float(sum(self.node_costs))

    @property
    def expected_ms(self) -> float | None:
        """The time a run is expected to take, of a stream each micro-batch; None in papers' counts.

        What is shared by several results is in it once.
        """
        return self.cost if self.unit.startswith("ms") else None

    @property
    def emits(self) -> tuple[Emit, ...]:
        """The results, in the order of the queries."""
        return tuple(node for node in self.nodes if isinstance(node, Emit))

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The reads of sources."""
        return tuple(node for node in self.nodes if isinstance(node, Scan))

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """The queries the plan answers, as far as engines need to know them."""
        windows: dict[str, dict[str, Window]] = {}
        first: dict[str, Emit] = {}
        for emit in self.emits:
            roll = emit.inputs[0]
            if isinstance(roll, Roll):
                windows.setdefault(emit.query, {})[emit.label] = roll.window
                first.setdefault(emit.query, emit)
        return tuple(_query(emit, windows[name]) for name, emit in first.items())

    @cached_property
    def joins(self) -> tuple[JoinQuery, ...]:
        """The joins that the plan answers."""
        return tuple(join_query(e) for e in self.emits if isinstance(e.inputs[0], Join))

    @cached_property
    def fingerprint(self) -> str:
        """A short name of what the plan computes and how; the same in every process."""
        text = json.dumps(nodes_to_json(self.nodes), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def with_times(self, times: Mapping[str, str]) -> Self:
        """Return the plan with the time columns of its sources filled in where they are unknown.

        Nodes that differed in that alone become one.
        """
        made: dict[Node, Any] = {}
        costs: dict[Node, float] = {}
        for node, cost in zip(self.nodes, self.node_costs, strict=True):
            timed = made[node] = _with_time(node, times, made)
            costs[timed] = costs.get(timed, 0.0) + cost
        return replace(self, nodes=tuple(costs), node_costs=tuple(costs.values()))


def _query(emit: Emit, windows: dict[str, Window]) -> Query:
    below = scan_below(emit)
    return Query(
        emit.query,
        source=below.source,
        time=below.time,
        keys=dict(emit.keys),
        where=below.where if emit.where is None else emit.where,
        windows=windows,
        aggs={alias: replace(call, where=None) for alias, call in emit.outputs},
        window_columns=emit.window_columns,
        watermark=below.watermark_us,
    )


def _with_time(node: Node, times: Mapping[str, str], made: Mapping[Node, Any]) -> Node:
    match node:
        case Scan():
            return replace(node, time=node.time or times.get(node.source))
        case Slice():
            return replace(node, input=made[node.input])
        case Join():
            sides = tuple(replace(side, input=made[side.input]) for side in node.sides)
            return replace(node, sides=sides)
        case Roll():
            return replace(node, inputs=tuple(made[i] for i in node.inputs))
        case Emit():
            return replace(node, inputs=tuple(made[i] for i in node.inputs))
        case _:
            assert_never(node)
