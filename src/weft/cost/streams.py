"""What a plan costs as a stream on Spark: what it costs in batch, and its states.

A micro-batch pays for every stateful operator, however few its events are, and for every row that
waits in a state. A row of events that fall into one slice is updated by each micro-batch of it. So
the shorter the time between micro-batches, the more a state weighs against the events.

What a stream costs matters when it has fallen behind: then Spark gathers many events in one micro-
batch. Priced by its idle pace, a plan that shares nothing would look best, because it has one state
less, and would be the slowest of all on the day when events pile up.

Two sets of coefficients, `spark-stream` for the native strategy and `spark-stream-columnar`, in
which `turn_ns` is the price of one micro-batch of an operator, and `state_row_ns` that of one
row of its state in one micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, assert_never

from weft.cost.model import RateModel, over, per_result
from weft.cost.prices import coefficients_of
from weft.cost.volumes import SECOND_US
from weft.plan.nodes import Emit, Join, Roll, Scan, Slice
from weft.time import format_us
from weft.window import SessionWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.cost.prices import Coefficients
    from weft.plan.nodes import Node
    from weft.statistics import Statistics
    from weft.window import PeriodicWindow, Window

STREAM = "spark-stream"
STREAM_COLUMNAR = f"{STREAM}-columnar"
# The time of which a micro-batch has the events, in a stream that has fallen behind.
CATCHING_UP_US = 3_600_000_000
# Slices, and the windows made of them: every further level is a state of its own.
MOST_LEVELS = 2


@dataclass(frozen=True, slots=True)
class StreamModel(RateModel):
    """Prices the nodes of a stream, natively; `columnar` are the prices of the other strategy."""

    micro_batch_us: int = CATCHING_UP_US
    columnar: Coefficients | None = None

    @staticmethod
    def of(statistics: Statistics, micro_batch_us: int) -> StreamModel:
        """Take the measured coefficients, and price what a micro-batch has."""
        native, columnar = (
            per_micro_batch(coefficients_of(name), micro_batch_us)
            for name in (STREAM, STREAM_COLUMNAR)
        )
        unit = f"ms per micro-batch of {format_us(micro_batch_us)}"
        return StreamModel(
            statistics, native, unit=unit, micro_batch_us=micro_batch_us, columnar=columnar
        )

    def updates_per_second(self, node: Slice | Roll) -> float:
        """Rows that micro-batches hand to a state which is fed by events."""
        rows = self.rows_per_second(node)
        in_batch = self.keys_in(self.micro_batch_us) * SECOND_US / self.micro_batch_us
        return max(rows, min(in_batch, self.events_per_second))

    def rows_held(self, node: Slice | Roll) -> float:
        """Rows that wait in a state, until the watermark has passed their end."""
        if isinstance(node, Slice):
            range_us = SECOND_US / self.slices_per_second(node.edges)
        else:
            range_us = self.range_us(node.window)
        return self.rows_per_second(node) * (range_us + delay_us(node)) / SECOND_US

    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events: its instances are updated in each micro-batch."""
        c = self.coefficients
        copies = self.range_us(window) / self.period_us(window)
        batch_us = min(float(self.micro_batch_us), self.period_us(window))
        updates = copies * self.keys_in(batch_us) * SECOND_US / batch_us
        closed = self.keys_in(self.range_us(window)) * SECOND_US / self.period_us(window)
        more = max(updates - closed, 0.0) * (c.write_partial_ns + c.shuffle_row_ns)
        return RateModel.from_events(self, window, width) + more

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Price of a window that combines instances of another: all that are open wait."""
        instances, _ = window.reads(feeder)
        read = instances * self.keys_in(feeder.range_us)
        waiting = window.range_us / window.slide_us * self.keys_in(window.range_us)
        more = max(waiting - read, 0.0) * self.coefficients.state_row_ns
        return RateModel.from_feeder(self, window, feeder, width) + more

    def _output(self, node: Slice | Roll) -> float:
        c = self.coefficients
        kept = self.rows_held(node) * c.state_row_ns
        if not isinstance(node.inputs[0], Scan):
            return RateModel._output(self, node) + kept
        more = self.updates_per_second(node) - self.rows_per_second(node)
        return RateModel._output(self, node) + kept + more * (c.write_partial_ns + c.shuffle_row_ns)


def per_micro_batch(coefficients: Coefficients, micro_batch_us: int) -> Coefficients:
    """Scale prices to milliseconds per micro-batch; operators and states are paid by each."""
    seconds = micro_batch_us / SECOND_US
    return replace(
        over(coefficients, seconds),
        turn_ns=coefficients.turn_ns / 1e6,
        state_row_ns=coefficients.state_row_ns / 1e6,
    )


def delay_us(node: Node) -> float:
    """How late the events of a node may be."""
    while node.inputs:
        node = node.inputs[0]
    return float(node.watermark_us or 0) if isinstance(node, Scan) else 0.0


def stream_obstacles(nodes: tuple[Node, ...], single: frozenset[str]) -> Iterator[tuple[Node, str]]:
    """Say why a chain of native states cannot compute nodes that a batch of Catalyst's can.

    `single` are the kinds of partials that are one column each.
    """
    heights: dict[Node, int] = {}
    for node in nodes:
        heights[node] = max((heights[below] + 1 for below in node.inputs), default=0)
        if isinstance(node, Roll | Slice):
            kinds = [p.kind for p in node.partials if p.kind not in single]
            if kinds:
                yield node, f"partials of kind {kinds[0]!r} are no single column of a state"
        if isinstance(node, Roll) and isinstance(node.window, SessionWindow):
            yield node, f"{node.window} grows and merges as events come"
        if isinstance(node, Roll) and heights[node] > MOST_LEVELS:
            yield (
                node,
                f"{node.window} is {heights[node]} steps above the events, and each is a state "
                f"of its own: {MOST_LEVELS} are the most that pay",
            )


def rows_kept(nodes: tuple[Node, ...], rates: StreamModel) -> float:
    """Rows that the columnar operator holds: slices while a window may still read them.

    A window that reads events holds the events themselves.
    """
    reaches: dict[Node, float] = {}
    for node in nodes:
        if isinstance(node, Roll):
            for feeder in node.inputs:
                range_us = rates.range_us(node.window) + delay_us(node)
                reaches[feeder] = max(reaches.get(feeder, 0.0), range_us)
    return sum(rates.rows_per_second(f) * us / SECOND_US for f, us in reaches.items())


def native_stream_costs(nodes: tuple[Node, ...], model: StreamModel) -> tuple[float, ...]:
    """Price nodes in native states, where a Roll copies each slice to all instances that hold it.

    All nodes of one height are one state there, so only the first of them is billed for it.
    """
    costs = list(model.node_costs(tuple(folded(node) for node in nodes)))
    heights: dict[Node, int] = {}
    aggregations: set[int] = set()
    for at, node in enumerate(nodes):
        heights[node] = height = max((heights[below] + 1 for below in node.inputs), default=0)
        if not isinstance(node, Slice | Roll):
            continue
        if height in aggregations:
            costs[at] -= model.coefficients.turn_ns
        aggregations.add(height)
    return tuple(costs)


def folded(node: Node) -> Node:
    """Return a node as Catalyst runs it, whatever technique it names."""
    if isinstance(node, Roll) and node.technique is not None:
        return replace(node, technique=None)
    return node


def columnar_stream_costs(nodes: tuple[Node, ...], model: StreamModel) -> tuple[float, ...]:
    """Price nodes in the stateful operator, which reads its state anew in each micro-batch.

    Every event goes to Python. `shuffle_row_ns` brings it to the worker that owns its key, in
    order; `emit_row_ns` lowers a result row and brings it back, `emit_value_ns` each column of it;
    `turn_ns` is for all nodes of a scope together, which run in the same workers.
    """
    c = model.columnar
    assert c is not None
    costs = [_kernel_cost(node, c, model) for node in nodes]
    first = next(at for at, node in enumerate(nodes) if isinstance(node, Slice | Roll))
    shipped = model.events_per_second * c.shuffle_row_ns
    costs[first] += shipped + c.turn_ns + rows_kept(nodes, model) * c.state_row_ns
    return tuple(costs)


def _kernel_cost(node: Node, c: Coefficients, rates: StreamModel) -> float:
    """Price reading rows once and putting out those of the node, whatever they overlap."""
    match node:
        case Scan():
            return rates.dropped_per_second * c.scan_event_ns
        case Emit():
            return rates.rows_per_second(node) * per_result(node, c)
        case Slice() | Roll():
            width = len(node.partials)
            if isinstance(node.inputs[0], Scan):
                reading = c.scan_event_ns + c.fold_event_ns + c.lift_ns * width
            else:
                reading = c.read_partial_ns + c.combine_ns * width
            writing = c.write_partial_ns + c.combine_ns * width
            arriving = sum(rates.rows_per_second(below) for below in node.inputs)
            return arriving * reading + rates.rows_per_second(node) * writing
        case Join():
            return inf
        case _:
            assert_never(node)
