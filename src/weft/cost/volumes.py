"""How many rows there are: of events, slices and instances, per second and in all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self, assert_never

from weft.cost.edges.rates import edge_rate
from weft.cost.occupancy import occupancy
from weft.cost.selectivity import kept_fraction
from weft.plan.nodes import Emit, Join, Node, Roll, Scan, Slice, scan_below
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    Edges,
    PeriodicWindow,
    Window,
)

if TYPE_CHECKING:
    from weft.query import Keys
    from weft.statistics import Statistics

SECOND_US = 1e6
_UNIT_US = {"day": 86_400e6, "week": 604_800e6, "month": 2_629_746e6}
_UNIT_US |= {"quarter": 3 * _UNIT_US["month"], "year": 12 * _UNIT_US["month"]}
# Events per instance that is assumed of windows which only the events themselves delimit.
_EVENTS_PER_UNKNOWN = 10.0
_CLOCKED = PeriodicWindow | CumulatingWindow | CalendarWindow

# A plan asks for the rate of the same slices once per window that reads them.
_edge_rate = lru_cache(maxsize=4096)(edge_rate)
_occupancy = lru_cache(maxsize=4096)(occupancy)


@lru_cache(maxsize=4096)
def _rows_of(
    range_us: float, period_us: float, lasts_us: float, per_us: float, keys: float, skew: float
) -> float:
    whole_us, part_us = abs(lasts_us - range_us), min(lasts_us, range_us)
    inside = whole_us / period_us * occupancy(keys, per_us * part_us, skew)
    return inside + 2 * part_us / period_us * occupancy(keys, per_us * part_us / 2, skew)


def at_part(statistics: Statistics, part: float) -> Statistics:
    """Return what is known of a part of a source's events.

    >>> from weft.statistics import Statistics
    >>> at_part(Statistics(rate=50.0, keys=3), 0.1).rate
    5.0
    """
    events = None if statistics.events is None else round(statistics.events * part)
    rate = statistics.events_per_us * SECOND_US * part
    return replace(statistics, rate=rate, events=events)


@dataclass(frozen=True, slots=True)
class Rates:
    """What a source brings per second, as its statistics tell."""

    statistics: Statistics

    @property
    def events_per_second(self) -> float:
        """The rate of the source."""
        return self.statistics.events_per_us * SECOND_US

    def keys_in(self, interval_us: float) -> float:
        """Expected number of distinct keys among the events of an interval."""
        known = self.statistics
        return _occupancy(known.key_count, known.events_per_us * interval_us, known.key_skew)

    def slices_per_second(self, edges: Edges) -> float:
        """Rate of slices, over all keys together where only events tell the edges."""
        rate = _edge_rate(edges.classes) * SECOND_US if edges.classes else 0.0
        return rate + sum(1 / self.period_us(w) * SECOND_US for w in edges.windows)

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

    def of_query(self, node: Emit) -> Self:
        """Return the rates of a query's own events, where its scan keeps more than those."""
        if node.where is None:
            return self
        all_kept = kept_fraction(scan_below(node).where, self.statistics)
        part = min(kept_fraction(node.where, self.statistics) / all_kept, 1.0)
        return replace(self, statistics=at_part(self.statistics, part))

    def rows_per_second(self, node: Node) -> float:
        """Rows the node puts out."""
        match node:
            case Scan():
                return self.events_per_second
            case Slice():
                rate = self.slices_per_second(node.edges)
                return rate * self.keys_in(SECOND_US / rate)
            case Roll():
                range_us, period = self.range_us(node.window), self.period_us(node.window)
                return self.keys_in(range_us) * SECOND_US / period
            case Join():
                return self.statistics.key_count
            case Emit():
                return self.of_query(node).rows_per_second(node.inputs[0])
            case _:
                assert_never(node)


@dataclass(frozen=True, slots=True)
class Volumes(Rates):
    """What a source brings in all, in a span of time that begins and ends somewhere.

    >>> from weft.statistics import Statistics
    >>> day = Volumes(Statistics(rate=10.0, keys=5), 86_400e6)
    >>> round(day.events), round(day.rows_of(3_600e6, 3_600e6))
    (864000, 125)
    """

    lasts_us: float
    dropped: float = 0.0  # events that the filter of the scan does not keep
    pushes: float = 1.0  # in how many parts they come, each of which closes windows

    @property
    def events(self) -> float:
        """The number of events."""
        return self.statistics.events_per_us * self.lasts_us

    def instances(self, range_us: float, period_us: float) -> float:
        """Instances that hold part of the span: some begin before it, some end after it."""
        return (self.lasts_us + range_us) / period_us

    def rows_of(self, range_us: float, period_us: float) -> float:
        """Rows of all instances: those inside the span, and those that it fills in part."""
        known = self.statistics
        source = (known.events_per_us, known.key_count, known.key_skew)
        return _rows_of(range_us, period_us, self.lasts_us, *source)

    def rows(self, node: Node) -> float:
        """Rows the node puts out."""
        match node:
            case Scan():
                return self.events
            case Slice() if not node.edges.windows:
                length_us = SECOND_US / self.slices_per_second(node.edges)
                return self.rows_of(length_us, length_us)
            case Roll(window=window) if isinstance(window, _CLOCKED):
                return self.rows_of(self.range_us(window), self.period_us(window))
            case Emit():
                return self.of_query(node).rows(node.inputs[0])
            case Slice() | Roll() | Join():
                return self.rows_per_second(node) * self.lasts_us / SECOND_US
            case _:
                assert_never(node)

    def rows_in_pushes(self, node: Node) -> float:
        """Rows of slices, counted in each push: one that lasts longer has some in several.

        >>> from weft.statistics import Statistics
        >>> from weft.plan import Slice
        >>> hour = PeriodicWindow(3_600_000_000, 3_600_000_000)
        >>> hours = Slice(Scan("t", "ts", None, ()), (), Edges.of([hour]), ())
        >>> day = Volumes(Statistics(rate=10.0, keys=5), 86_400e6, pushes=86_400 / 60)
        >>> round(day.rows(hours)), round(day.rows_in_pushes(hours))
        (125, 7200)
        """
        if self.pushes == 1 or not isinstance(node, Slice) or node.edges.windows:
            return self.rows(node)
        length_us = SECOND_US / self.slices_per_second(node.edges)
        part_us = min(length_us, self.lasts_us / self.pushes)
        return self.lasts_us / part_us * self.keys_in(part_us)

    def overlap(self, window: Window) -> float:
        """Instances that one event is in."""
        return self.range_us(window) / self.period_us(window)


@dataclass(frozen=True, slots=True)
class KeyedVolumes(Volumes):
    """What a source brings where nodes of one plan group its events by several key sets.

    Events, and the bytes of their keys, are those of the set with the most keys.
    """

    by_keys: tuple[tuple[Keys, Volumes], ...] = ()

    def rows(self, node: Node) -> float:
        """Rows the node puts out, under its own keys."""
        own = None if isinstance(node, Scan) else dict(self.by_keys).get(node.keys)
        return Volumes.rows(self, node) if own is None else own.rows(node)

    def rows_in_pushes(self, node: Node) -> float:
        """Rows of slices under their own keys, counted in each push."""
        own = None if isinstance(node, Scan) else dict(self.by_keys).get(node.keys)
        return Volumes.rows_in_pushes(self if own is None else own, node)
