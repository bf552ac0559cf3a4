"""What a plan costs as a stream on Spark: what it costs in batch, and its states.

A micro-batch pays for every stateful operator, however few its events are, and for every row that
waits in a state. A row of events that fall into one slice is updated by each micro-batch of it. So
the shorter the time between micro-batches, the more a state weighs against the events.

What a stream costs matters when it has fallen behind: then Spark gathers many events in one micro-
batch. Priced by its idle pace, a plan that shares nothing would look best, because it has one state
less, and would be the slowest of all on the day when events pile up.

Two sets of coefficients, `spark-stream` for the native strategy and `spark-stream-columnar`, in
which `operator_ns` is the price of one micro-batch of an operator, and `state_row_ns` that of one
row of its state in one micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.cost.model import RateModel, coefficients_of
from weft.plan.nodes import Roll, Scan, Slice
from weft.window import SessionWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.cost.model import Coefficients
    from weft.plan.nodes import Node
    from weft.statistics import Statistics
    from weft.window import Window

STREAM = "spark-stream"
STREAM_COLUMNAR = f"{STREAM}-columnar"
# The time of which a micro-batch has the events, in a stream that has fallen behind.
CATCHING_UP_US = 3_600_000_000
# Slices, and the windows made of them: every further level is a state of its own.
MOST_LEVELS = 2
_SECOND_US = 1e6


@dataclass(frozen=True, slots=True)
class StreamModel(RateModel):
    """Prices the nodes of a stream, natively; `columnar` are the prices of the other strategy."""

    micro_batch_us: int = CATCHING_UP_US
    columnar: Coefficients | None = None

    @staticmethod
    def of(statistics: Statistics, micro_batch_us: int) -> StreamModel:
        """Take the measured coefficients, and spread what a micro-batch costs over its time."""
        native, columnar = (
            per_second(coefficients_of(name), micro_batch_us) for name in (STREAM, STREAM_COLUMNAR)
        )
        return StreamModel(native, statistics, micro_batch_us=micro_batch_us, columnar=columnar)

    def updates_per_second(self, node: Slice | Roll) -> float:
        """Rows that micro-batches hand to a state which is fed by events."""
        rows = self.rows_per_second(node)
        in_batch = self.keys_in(self.micro_batch_us) * _SECOND_US / self.micro_batch_us
        return max(rows, min(in_batch, self.events_per_second))

    def rows_held(self, node: Slice | Roll) -> float:
        """Rows that wait in a state, until the watermark has passed their end."""
        if isinstance(node, Slice):
            range_us = _SECOND_US / self.slices_per_second(node.edges)
        else:
            range_us = self.range_us(node.window)
        return self.rows_per_second(node) * (range_us + delay_us(node)) / _SECOND_US

    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events: its instances are updated in each micro-batch."""
        c = self.coefficients
        copies = self.range_us(window) / self.period_us(window)
        batch_us = min(float(self.micro_batch_us), self.period_us(window))
        updates = copies * self.keys_in(batch_us) * _SECOND_US / batch_us
        closed = self.keys_in(self.range_us(window)) * _SECOND_US / self.period_us(window)
        more = max(updates - closed, 0.0) * (c.write_partial_ns + c.shuffle_row_ns)
        return RateModel.from_events(self, window, width) + more

    def _output(self, node: Slice | Roll) -> float:
        c = self.coefficients
        kept = self.rows_held(node) * c.state_row_ns
        if not isinstance(node.inputs[0], Scan):
            return RateModel._output(self, node) + kept
        more = self.updates_per_second(node) - self.rows_per_second(node)
        return RateModel._output(self, node) + kept + more * (c.write_partial_ns + c.shuffle_row_ns)


def per_second(coefficients: Coefficients, micro_batch_us: int) -> Coefficients:
    """Spread the prices of a micro-batch over the time until the next one."""
    batches = _SECOND_US / micro_batch_us
    return replace(
        coefficients,
        operator_ns=coefficients.operator_ns * batches,
        state_row_ns=coefficients.state_row_ns * batches,
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
    return sum(rates.rows_per_second(f) * us / _SECOND_US for f, us in reaches.items())
