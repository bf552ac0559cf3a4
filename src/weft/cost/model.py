"""The calibrated cost model: nanoseconds of work per second of stream, node by node.

Rates, not totals: an instance rate of 1/slide, an edge rate of the slices, and the occupancy
D(K, x) of keys among x events. That needs no common period, and it knows that every partial
exists once per key: a factor window that helps one key can hurt ten thousand.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Protocol, assert_never

from weft.cost.edges import edge_rate
from weft.cost.occupancy import occupancy
from weft.plan.nodes import FOLD, PICK, STAIR, Emit, Join, Node, Roll, Scan, Slice
from weft.techniques import TECHNIQUES
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    Edges,
    PeriodicWindow,
    Window,
)

if TYPE_CHECKING:
    from weft.statistics import Statistics

_SECOND_US = 1e6
_UNIT_US = {"day": 86_400e6, "week": 604_800e6, "month": 2_629_746e6}
_UNIT_US |= {"quarter": 3 * _UNIT_US["month"], "year": 12 * _UNIT_US["month"]}
# Events per instance that is assumed of windows which only the events themselves delimit.
_EVENTS_PER_UNKNOWN = 10.0


class CostModel(Protocol):
    """Prices plans node by node; a plan costs the sum of its nodes."""

    name: str
    unit: str

    def node_costs(self, nodes: tuple[Node, ...]) -> tuple[float, ...]:
        """Price each node, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Coefficients:
    """What single operations cost on one engine; measured, never guessed."""

    engine: str
    scan_event_ns: float  # hand one event of a source to one operator that reads events
    fold_event_ns: float  # find the group of one event
    lift_ns: float  # lift one event into one partial
    read_partial_ns: float  # hand one partial row to an operator
    combine_ns: float  # combine two partials of one kind
    write_partial_ns: float  # put out one partial row
    shuffle_row_ns: float  # move one row to the owner of its key
    state_row_ns: float  # keep one row of state for a second
    emit_row_ns: float  # lower and put out one result row
    operator_ns: float  # keep one operator running for a second
    measured_by: str

    @staticmethod
    def load(text: str) -> Coefficients:
        """Read a coefficient file."""
        return Coefficients(**json.loads(text))


@cache
def coefficients_of(engine: str) -> Coefficients:
    """Return the coefficients shipped for an engine.

    >>> coefficients_of("spark").engine
    'spark'
    """
    place = files("weft.cost") / "coefficients" / f"{engine}.json"
    return Coefficients.load(place.read_text())


@dataclass(frozen=True, slots=True)
class RateModel:
    """Prices nodes with an engine's coefficients and a source's statistics."""

    coefficients: Coefficients
    statistics: Statistics
    name: str = "calibrated"
    unit: str = "ns of work per second of stream"

    @property
    def events_per_second(self) -> float:
        """The rate of the source."""
        return self.statistics.events_per_us * _SECOND_US

    def keys_in(self, interval_us: float) -> float:
        """Expected number of distinct keys among the events of an interval."""
        return occupancy(self.statistics.key_count, self.statistics.events_per_us * interval_us)

    def slices_per_second(self, edges: Edges) -> float:
        """Rate of slices, over all keys together where only events tell the edges."""
        rate = edge_rate(edges.classes) * _SECOND_US if edges.classes else 0.0
        return rate + sum(1 / self.period_us(w) * _SECOND_US for w in edges.windows)

    def period_us(self, window: Window) -> float:
        """Mean distance between the begins of neighbouring instances."""
        match window:
            case PeriodicWindow():
                return float(window.slide_us)
            case CumulatingWindow():
                return float(window.step_us)
            case CalendarWindow():
                return _UNIT_US[window.unit]
            case CountingWindow():
                return window.every * self._key_event_distance_us
            case _:
                return _EVENTS_PER_UNKNOWN * self._key_event_distance_us

    def reach_us(self, window: Window) -> float:
        """Mean span of an instance."""
        match window:
            case PeriodicWindow():
                return float(window.range_us)
            case CumulatingWindow():
                return (window.range_us + window.step_us) / 2
            case CountingWindow():
                return window.rows * self._key_event_distance_us
            case _:
                return self.period_us(window)

    @property
    def _key_event_distance_us(self) -> float:
        return self.statistics.key_count / self.statistics.events_per_us

    def rows_per_second(self, node: Node) -> float:
        """Rows the node puts out."""
        match node:
            case Scan():
                return self.events_per_second
            case Slice():
                rate = self.slices_per_second(node.edges)
                return rate * self.keys_in(_SECOND_US / rate)
            case Roll():
                reach, period = self.reach_us(node.window), self.period_us(node.window)
                return self.keys_in(reach) * _SECOND_US / period
            case Join():
                return self.statistics.key_count
            case Emit():
                return self.rows_per_second(node.inputs[0])
            case _:
                assert_never(node)

    def node_costs(self, nodes: tuple[Node, ...]) -> tuple[float, ...]:
        """Price each node, in order."""
        # Techniques that answer several ranges keep one store for all Rolls on the same slices.
        readers: Counter[tuple[Node, str]] = Counter(
            (n.feeder, n.technique) for n in nodes if isinstance(n, Roll)
        )
        return tuple(self._node_cost(node, readers) for node in nodes)

    def _node_cost(self, node: Node, readers: Counter[tuple[Node, str]]) -> float:
        c = self.coefficients
        match node:
            case Scan():
                return 0.0  # charged to those who read it
            case Slice():
                return self._input(node.input, len(node.partials), 1.0) + self._output(node)
            case Roll():
                return self._roll(node, readers[node.feeder, node.technique])
            case Join():
                events = self.events_per_second * len(node.sides)
                return events * (c.scan_event_ns + c.fold_event_ns) + c.operator_ns
            case Emit():
                return self.rows_per_second(node) * c.emit_row_ns
            case _:
                assert_never(node)

    def _input(self, node: Node, width: int, copies: float) -> float:
        """Price of reading a node's rows, each folded into `copies` groups."""
        c, rows = self.coefficients, self.rows_per_second(node)
        if isinstance(node, Scan):
            return rows * (c.scan_event_ns + copies * (c.fold_event_ns + c.lift_ns * width))
        return rows * copies * (c.read_partial_ns + c.combine_ns * width)

    def _output(self, node: Slice | Roll) -> float:
        c, rows = self.coefficients, self.rows_per_second(node)
        moved = c.shuffle_row_ns if isinstance(node.inputs[0], Scan) else 0.0
        return rows * (c.write_partial_ns + moved) + c.operator_ns

    def _roll(self, node: Roll, readers: int) -> float:
        reach, period = self.reach_us(node.window), self.period_us(node.window)
        width = len(node.partials)
        if isinstance(node.feeder, Scan):
            copies = reach / period
            state = copies * self.keys_in(reach) * self.coefficients.state_row_ns
            return self._input(node.feeder, width, copies) + self._output(node) + state
        return self._combining(node, readers) + self._output(node)

    def _combining(self, node: Roll, readers: int) -> float:
        """Price of combining partials, and of keeping those that are still needed."""
        c, width = self.coefficients, len(node.partials)
        per_row = c.read_partial_ns + c.combine_ns * width
        reach, period = self.reach_us(node.window), self.period_us(node.window)
        feeder = node.feeder
        if node.technique == PICK:
            return self.rows_per_second(node) * c.read_partial_ns
        if isinstance(feeder, Roll) and node.technique == FOLD:
            many, rows = self._feeder_reads(node, feeder)
            kept = many * rows * c.state_row_ns
            return many * rows * _SECOND_US / period * per_row + kept
        if node.technique == STAIR:
            slices = node.inputs[1]
            before = reach - self.reach_us(node.inputs[0].window)  # type: ignore[union-attr]
            share = before / _SECOND_US * self.rows_per_second(slices)
            reads = (share + self.keys_in(reach)) * _SECOND_US / period
            return reads * per_row + share * c.state_row_ns
        many = max(reach / _SECOND_US * self.rows_per_second(feeder), 1.0)
        inserted = self.rows_per_second(feeder) * c.read_partial_ns
        if node.technique == FOLD:
            return many * _SECOND_US / period * per_row + many * c.state_row_ns
        technique = TECHNIQUES[node.technique]
        shared = readers if technique.several_ranges else 1
        slices_in_window = max(many / max(self.keys_in(reach), 1e-9), 1.0)
        combines = technique.combines_per_slide(slices_in_window)
        moving = self.rows_per_second(feeder) * max(combines - 1, 0.0) * c.combine_ns * width
        answers = self.rows_per_second(node) * c.combine_ns * width
        kept = technique.partials_stored(slices_in_window) * self.keys_in(reach) * c.state_row_ns
        return (inserted + moving + kept) / shared + answers

    def _feeder_reads(self, node: Roll, feeder: Roll) -> tuple[float, float]:
        """Feeder instances per instance of the window, and rows per feeder instance."""
        rows = self.keys_in(self.reach_us(feeder.window))
        if isinstance(node.window, PeriodicWindow) and isinstance(feeder.window, PeriodicWindow):
            return float(node.window.reads(feeder.window)[0]), rows
        return 1.0, rows
