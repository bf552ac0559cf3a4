"""The calibrated cost model: nanoseconds of work per second of stream, node by node.

Rates, not totals: an instance rate of 1/slide, an edge rate of the slices, and the occupancy
D(K, x) of keys among x events. That needs no common period, and it knows that every partial
exists once per key: a factor window that helps one key can hurt ten thousand.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, assert_never

from weft.cost.edges.rates import edge_rate
from weft.cost.occupancy import occupancy
from weft.cost.selectivity import kept_fraction
from weft.errors import DataError
from weft.plan.nodes import (
    FOLD,
    PICK,
    RANGES,
    STAIR,
    Emit,
    Join,
    Node,
    Roll,
    Scan,
    Slice,
    scan_below,
)
from weft.techniques import FAN_OUT, TECHNIQUES
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
# What combines all partials of an instance anew.
_LAZY = (None, "naive", "one_by_one", FAN_OUT)
_UNIT_US = {"day": 86_400e6, "week": 604_800e6, "month": 2_629_746e6}
_UNIT_US |= {"quarter": 3 * _UNIT_US["month"], "year": 12 * _UNIT_US["month"]}
# Events per instance that is assumed of windows which only the events themselves delimit.
_EVENTS_PER_UNKNOWN = 10.0


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


def user_coefficients(engine: str) -> Path:
    """Return where `weft calibrate` keeps an engine's coefficients for this user.

    The environment variable WEFT_COEFFICIENTS names another folder.
    """
    folder = os.environ.get("WEFT_COEFFICIENTS")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return (Path(folder) if folder else home / "weft" / "coefficients") / f"{engine}.json"


def coefficients_of(engine: str) -> Coefficients:
    """Return an engine's coefficients: the user's own if calibrated, else the shipped ones.

    >>> coefficients_of("spark").engine
    'spark'
    """
    own = user_coefficients(engine)
    if own.is_file():
        try:
            return Coefficients.load(own.read_text())
        except (TypeError, ValueError):
            raise DataError(
                f"{own} is not a coefficient file of this version of weft",
                hint=f"remove it, or run `weft calibrate --engine {engine}` again",
            ) from None
    return shipped_coefficients(engine)


@cache
def shipped_coefficients(engine: str) -> Coefficients:
    """Return the coefficients of an engine that come with weft."""
    place = files("weft.cost") / "coefficients" / f"{engine}.json"
    return Coefficients.load(place.read_text())


def at_part(statistics: Statistics, part: float) -> Statistics:
    """Return what is known of a part of a source's events.

    >>> from weft.statistics import Statistics
    >>> at_part(Statistics(rate=50.0, keys=3), 0.1).rate
    5.0
    """
    return replace(statistics, rate=statistics.events_per_us * _SECOND_US * part)


# A plan asks for the rate of the same slices once per window that reads them.
_edge_rate = lru_cache(maxsize=4096)(edge_rate)


@dataclass(frozen=True, slots=True)
class RateModel:
    """Prices nodes with an engine's coefficients and a source's statistics."""

    coefficients: Coefficients
    statistics: Statistics
    name: str = "calibrated"
    unit: str = "ns of work per second of stream"
    dropped_per_second: float = 0.0  # events that the filter of the scan does not keep

    @property
    def events_per_second(self) -> float:
        """The rate of the source."""
        return self.statistics.events_per_us * _SECOND_US

    def keys_in(self, interval_us: float) -> float:
        """Expected number of distinct keys among the events of an interval."""
        return occupancy(self.statistics.key_count, self.statistics.events_per_us * interval_us)

    def slices_per_second(self, edges: Edges) -> float:
        """Rate of slices, over all keys together where only events tell the edges."""
        rate = _edge_rate(edges.classes) * _SECOND_US if edges.classes else 0.0
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

    def range_us(self, window: Window) -> float:
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
                range_us, period = self.range_us(node.window), self.period_us(node.window)
                return self.keys_in(range_us) * _SECOND_US / period
            case Join():
                return self.statistics.key_count
            case Emit():
                return self._of_query(node).rows_per_second(node.inputs[0])
            case _:
                assert_never(node)

    def _of_query(self, node: Emit) -> RateModel:
        """The model of a query's own events, where its scan keeps more than those."""
        if node.where is None:
            return self
        all_kept = kept_fraction(scan_below(node).where, self.statistics)
        part = min(kept_fraction(node.where, self.statistics) / all_kept, 1.0)
        return replace(self, statistics=at_part(self.statistics, part))

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
                return events * (c.scan_event_ns + c.fold_event_ns) + c.operator_ns
            case Emit():
                return self.rows_per_second(node) * c.emit_row_ns
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
        return rows * (c.write_partial_ns + moved) + c.operator_ns

    def from_events(self, window: Window, width: int) -> float:
        """Price of a window that folds events, for `width` partials, per second."""
        c = self.coefficients
        range_us, period = self.range_us(window), self.period_us(window)
        copies = range_us / period
        events = self.events_per_second
        reading = events * (c.scan_event_ns + copies * (c.fold_event_ns + c.lift_ns * width))
        keys = self.keys_in(range_us)
        writing = keys * _SECOND_US / period * (c.write_partial_ns + c.shuffle_row_ns)
        return reading + writing + copies * keys * c.state_row_ns + c.operator_ns

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow, width: int) -> float:
        """Price of a window that combines instances of another, for `width` partials."""
        c = self.coefficients
        instances, _ = window.reads(feeder)
        rows = instances * self.keys_in(feeder.range_us)
        per_second = _SECOND_US / window.slide_us
        reading = rows * per_second * (c.read_partial_ns + c.combine_ns * width)
        writing = self.keys_in(window.range_us) * per_second * c.write_partial_ns
        return reading + writing + rows * c.state_row_ns + c.operator_ns

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
        held = max(range_us / _SECOND_US * arriving, 1.0)
        if node.technique in _LAZY:
            return held * _SECOND_US / period * per_row + held * c.state_row_ns
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
        delta_s = (range_us - self.range_us(inner.window)) / _SECOND_US
        held = delta_s * self.rows_per_second(slices)
        reads = (held + self.keys_in(range_us)) * _SECOND_US / self.period_us(node.window)
        return reads * per_row + held * self.coefficients.state_row_ns
