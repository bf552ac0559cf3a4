"""The calibrated cost model of what runs on and on: streams, node by node, in milliseconds.

Rates, not totals: an instance rate of 1/slide, an edge rate of the slices, and the occupancy
D(K, x) of keys among x events. That needs no common period, and it knows that every partial
exists once per key: a factor window that helps one key can hurt ten thousand. Coefficients that are
scaled to the time of a micro-batch make milliseconds per micro-batch of it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from weft.cost.prices import BY_ROW, Coefficients
from weft.cost.volumes import SECOND_US, Rates
from weft.plan.nodes import FOLD, PICK, RANGES, STAIR, Emit, Join, Node, Roll, Scan, Slice
from weft.techniques import LAZY, TECHNIQUES
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from weft.window import Window

CALIBRATED = "calibrated"


class CostModel(Protocol):
    """Prices plans node by node; a plan costs the sum of its nodes."""

    @property
    def name(self) -> str:
        """Which model this is."""
        ...

    @property
    def unit(self) -> str:
        """What a cost is per."""
        ...

    def node_costs(self, nodes: tuple[Node, ...]) -> tuple[float, ...]:
        """Price each node, in order."""
        ...

    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events, for `width` partials."""
        ...

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Price of a window that combines instances of another, for `width` partials."""
        ...

    def events_per_partial(self, width: int, slice_us: float) -> float:
        """Price of the events of one microsecond in units of combining one slice."""
        ...


@dataclass(frozen=True, slots=True)
class RateModel(Rates):
    """Prices nodes with an engine's coefficients and a source's statistics."""

    coefficients: Coefficients
    name: str = CALIBRATED
    unit: str = "ms"
    dropped_per_second: float = 0.0  # events that the filter of the scan does not keep

    def node_costs(self, nodes: tuple[Node, ...]) -> tuple[float, ...]:
        """Price each node, in order."""
        # Techniques that answer several ranges keep one store for all Rolls on the same slices.
        readers: Counter[tuple[Node, str | None]] = Counter(
            (n.feeder, n.technique) for n in nodes if isinstance(n, Roll)
        )
        return tuple(self._node_cost(node, readers) for node in nodes)

    def _node_cost(self, node: Node, readers: Counter[tuple[Node, str | None]]) -> float:
        c = self.coefficients
        match node:
            case Scan():
                # What it keeps is charged to those who read it.
                return self.dropped_per_second * c.scan_event_ns
            case Slice():
                return self._reading(node) + self._output(node)
            case Roll():
                return self._roll(node, readers[node.feeder, node.technique])
            case Join():
                events = self.events_per_second * len(node.sides)
                return events * (c.scan_event_ns + c.fold_event_ns) + c.turn_ns
            case Emit():
                return self.rows_per_second(node) * per_result(node, c)
            case _:
                assert_never(node)

    def _reading(self, node: Slice) -> float:
        c, rows, width = self.coefficients, self.rows_per_second(node.input), len(node.partials)
        if isinstance(node.input, Scan):
            return rows * (c.scan_event_ns + c.fold_event_ns + c.lift_ns * width)
        return rows * (c.read_partial_ns + c.combine_ns * width)

    def _output(self, node: Slice | Roll) -> float:
        c, rows = self.coefficients, self.rows_per_second(node)
        moved = c.shuffle_row_ns if isinstance(node.inputs[0], Scan) else 0.0
        return rows * (c.write_partial_ns + moved) + c.turn_ns

    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events, for `width` partials, per second."""
        c = self.coefficients
        range_us, period = self.range_us(window), self.period_us(window)
        copies = range_us / period
        events = self.events_per_second
        reading = events * (c.scan_event_ns + copies * (c.fold_event_ns + c.lift_ns * width))
        keys = self.keys_in(range_us)
        writing = keys * SECOND_US / period * (c.write_partial_ns + c.shuffle_row_ns)
        return reading + writing + copies * keys * c.state_row_ns + c.turn_ns

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Price of a window that combines instances of another, for `width` partials."""
        c = self.coefficients
        instances, _ = window.reads(feeder)
        rows = instances * self.keys_in(feeder.range_us)
        per_second = SECOND_US / window.slide_us
        reading = rows * per_second * (c.read_partial_ns + c.combine_ns * width)
        writing = self.keys_in(window.range_us) * per_second * c.write_partial_ns
        return reading + writing + rows * c.state_row_ns + c.turn_ns

    def events_per_partial(self, width: int, slice_us: float) -> float:
        """Price of the events of one microsecond in units of combining one slice of all keys.

        This is the rate a paper would call lambda, where every operation costs the same.
        """
        c = self.coefficients
        event = c.scan_event_ns + c.fold_event_ns + c.lift_ns * width
        partial = (c.read_partial_ns + c.combine_ns * width) * self.keys_in(slice_us)
        return self.statistics.events_per_us * event / partial

    def _roll(self, node: Roll, readers: int) -> float:
        width, feeder, window = len(node.partials), node.feeder, node.window
        if isinstance(feeder, Scan):
            return self.from_events(window, width)
        combined = node.read in (FOLD, RANGES)
        inner = feeder.window if isinstance(feeder, Roll) and combined else None
        if isinstance(window, PeriodicWindow) and isinstance(inner, PeriodicWindow):
            return self.from_feeder(window, inner, width)
        return self._combining(node, readers) + self._output(node)

    def _combining(self, node: Roll, readers: int) -> float:
        """Price of combining slices, and of keeping those that are still needed."""
        c, width = self.coefficients, len(node.partials)
        per_row = c.read_partial_ns + c.combine_ns * width
        range_us, period = self.range_us(node.window), self.period_us(node.window)
        if node.read == PICK or (isinstance(node.feeder, Roll) and node.read != STAIR):
            return self.rows_per_second(node) * c.read_partial_ns
        if node.read == STAIR:
            return self._stair(node, per_row)
        arriving = self.rows_per_second(node.feeder)
        held = max(range_us / SECOND_US * arriving, 1.0)
        if node.technique in LAZY:
            return held * SECOND_US / period * per_row + held * c.state_row_ns
        technique = TECHNIQUES[node.technique]
        keys = max(self.keys_in(range_us), 1e-9)
        slices = max(held / keys, 1.0)
        combines = max(technique.combines_per_slide(slices) - 1, 0.0)
        moving = arriving * (c.read_partial_ns + combines * c.combine_ns * width)
        keeping = technique.partials_stored(slices) * keys * c.state_row_ns
        sharers = readers if technique.several_ranges else 1
        return (moving + keeping) / sharers + self.rows_per_second(node) * c.combine_ns * width

    def _stair(self, node: Roll, per_row: float) -> float:
        inner, slices = node.inputs
        assert isinstance(inner, Roll)
        range_us = self.range_us(node.window)
        delta_s = (range_us - self.range_us(inner.window)) / SECOND_US
        held = delta_s * self.rows_per_second(slices)
        reads = (held + self.keys_in(range_us)) * SECOND_US / self.period_us(node.window)
        return reads * per_row + held * self.coefficients.state_row_ns


def per_result(node: Emit, c: Coefficients) -> float:
    """Price of one result row and its columns."""
    return c.emit_row_ns + c.emit_value_ns * len(node.outputs)


def over(coefficients: Coefficients, seconds: float) -> Coefficients:
    """Scale prices so that work per second is told in milliseconds of so many seconds.

    >>> over(Coefficients("reference", "by hand", lift_ns=3.0), 1e6).lift_ns
    3.0
    """
    prices: dict[str, Any] = {
        f"{name}_ns": coefficients.ns(name) * seconds / 1e6 for name in BY_ROW
    }
    return replace(coefficients, **prices)
