"""The plan interpreter: executes any plan node by node, slowly and plainly.

It obeys the plan to the letter (slices, feeders, picks, stairs), so a wrong plan gives a wrong
answer here, before any fast engine exists. Techniques differ in how they get to the same result;
here each is a fold.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from weft.engines.reference.events import Key, Rows, events_by_key
from weft.engines.reference.instances import Event, instances_of
from weft.engines.reference.joins import interpret_join
from weft.engines.reference.oracle import ResultRow, fold, ordered
from weft.errors import InternalError
from weft.plan import STAIR, Emit, Join, Node, Plan, Roll, Scan, Slice
from weft.plan.joins import end_class
from weft.plan.nodes import ends_read_open, scan_below
from weft.window import CalendarWindow, Edges, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from weft.aggregates import Partial


class Part(NamedTuple):
    """Partials of one key over one slice or instance, and where its events are."""

    start_us: int
    end_us: int
    first: int
    stop: int
    partials: dict[Partial, Any]


Flow = dict[Key, list[Part]]
Grouped = dict[Key, list[Event]]


@dataclass(slots=True)
class Interpreter:
    """Runs one plan over rows; every node's output is kept, so tests can look inside."""

    plan: Plan
    sources: Mapping[str, Rows]
    join_types: Mapping[str, Sequence[pa.DataType]] = field(default_factory=dict)
    outputs: dict[Node, Flow] = field(default_factory=dict)
    results: dict[str, list[ResultRow]] = field(default_factory=dict)
    timeless: int = 0  # events dropped because their time is NULL
    _events: dict[tuple[Scan, Any], Grouped] = field(default_factory=dict)

    def run(self) -> dict[str, list[ResultRow]]:
        """Return the results of every query, each in (end, window, start, key) order."""
        labels: dict[str, list[str]] = {}
        for node in self.plan.nodes:
            match node:
                case Scan():
                    pass  # read when a reader's keys are known
                case Slice():
                    self.outputs[node] = self._slice(node)
                case Roll():
                    self.outputs[node] = self._roll(node)
                case Emit():
                    self.results.setdefault(node.query, []).extend(self._emit(node))
                    labels.setdefault(node.query, []).append(node.label)
                case Join():
                    pass  # interpreted where it is emitted
                case _:
                    assert_never(node)
        return {query: ordered(rows, labels[query]) for query, rows in self.results.items()}

    def _grouped(self, scan: Scan, keys: Any) -> Grouped:
        if (scan, keys) not in self._events:
            if scan.time is None:
                raise InternalError(f"the time column of {scan.source!r} was not looked up")
            rows = self.sources[scan.source]
            self._events[scan, keys], timeless = events_by_key(rows, scan.time, scan.where, keys)
            self.timeless += timeless
        return self._events[scan, keys]

    def _events_under(self, node: Slice | Roll) -> Grouped:
        return self._grouped(scan_below(node), node.keys)

    def _slice(self, node: Slice) -> Flow:
        events = self._events_under(node)
        ends = ends_read_open(node, self.plan.nodes)
        flow: Flow = {}
        for key, own in events.items():
            cuts = _positions_cut(node.edges, own)
            if isinstance(node.input, Scan):
                parts: Iterable[Part] = (
                    _part_of_events(node.partials, own, i, i + 1) for i in range(len(own))
                )
            else:
                parts = self._fed(node.input, node)[key]
            flow[key] = _merge_into_slices(node, ends, cuts, parts)
        return flow

    def _fed(self, feeder: Slice | Roll, node: Slice | Roll) -> Flow:
        """Return what a node reads of a feeder: rows of its own keys, which may be fewer.

        Rows of a coarser key lie among its events wherever their bounds do: only slices and
        windows that follow the clock are regrouped.
        """
        if feeder.keys == node.keys:
            return self.outputs[feeder]
        places = [feeder.keys.index(key) for key in node.keys]
        found: Flow = {}
        for key, parts in self.outputs[feeder].items():
            found.setdefault(tuple(key[at] for at in places), []).extend(parts)
        events = self._events_under(node)
        return {
            key: [
                _placed(part, [event.time_us for event in events[key]])
                for part in sorted(parts, key=lambda part: (part.start_us, part.end_us))
            ]
            for key, parts in found.items()
        }

    def _roll(self, node: Roll) -> Flow:
        if isinstance(node.feeder, Scan):
            return {
                key: [
                    _part_of_events(node.partials, own, i.first, i.stop)._replace(
                        start_us=i.start_us, end_us=i.end_us
                    )
                    for i in instances_of(node.window, own)
                ]
                for key, own in self._events_under(node).items()
            }
        if node.read == STAIR:
            return self._stair(node)
        if isinstance(node.feeder, Slice):
            return self._roll_slices(node, node.feeder)
        return self._roll_windows(node, node.feeder)

    def _roll_slices(self, node: Roll, feeder: Slice) -> Flow:
        events = self._events_under(node)
        flow: Flow = {}
        for key, slices in self._fed(feeder, node).items():
            flow[key] = [
                _combined(
                    node.partials,
                    i.start_us,
                    i.end_us,
                    [s for s in slices if i.first <= s.first and s.stop <= i.stop],
                )
                for i in instances_of(node.window, events[key])
            ]
        return flow

    def _roll_windows(self, node: Roll, feeder: Roll) -> Flow:
        if node.window == feeder.window and node.keys == feeder.keys:
            return self.outputs[feeder]
        outer, inner = node.window, feeder.window
        if outer == inner:
            return {
                key: [_combined(node.partials, *bounds, parts) for bounds, parts in found.items()]
                for key, rows in self._fed(feeder, node).items()
                for found in [_by_bounds(rows)]
            }
        if not isinstance(outer, PeriodicWindow) or not isinstance(inner, PeriodicWindow):
            raise InternalError(f"{inner} cannot feed {outer}")
        _, distance = outer.reads(inner)
        flow: Flow = {}
        for key, rows in self._fed(feeder, node).items():
            found: dict[tuple[int, int], list[Part]] = {}
            for row in rows:
                for start, end in outer.instances(row.start_us):
                    if (row.start_us - start) % distance == 0 and row.end_us <= end:
                        found.setdefault((start, end), []).append(row)
            flow[key] = [
                _combined(node.partials, *bounds, parts) for bounds, parts in found.items()
            ]
        return flow

    def _stair(self, node: Roll) -> Flow:
        inner, slices = node.inputs
        assert isinstance(node.window, PeriodicWindow)
        assert isinstance(inner, Roll)
        assert isinstance(inner.window, PeriodicWindow)
        flow: Flow = {}
        for key in self.outputs[slices]:
            found: dict[tuple[int, int], list[Part]] = {}
            for row in self.outputs[slices][key]:
                for start, end in node.window.instances(row.start_us):
                    if row.end_us <= end - inner.window.range_us:
                        found.setdefault((start, end), []).append(row)
            for row in self.outputs[inner].get(key, ()):
                start = row.end_us - node.window.range_us
                if (start - node.window.offset_us) % node.window.slide_us == 0:
                    found.setdefault((start, row.end_us), []).append(row)
            flow[key] = [
                _combined(node.partials, *bounds, parts) for bounds, parts in found.items()
            ]
        return flow

    def _emit(self, node: Emit) -> Iterable[ResultRow]:
        if isinstance(node.inputs[0], Join):
            yield from interpret_join(node, self.sources, self.join_types.get(node.query))
            return
        flows = [self.outputs[i] for i in node.inputs]
        for key in flows[0]:
            sides = [sorted(flow[key], key=lambda p: p[:4]) for flow in flows]
            for parts in zip(*sides, strict=True):
                known = {p: v for part in parts for p, v in part.partials.items()}
                if node.exists is not None and not known[node.exists]:
                    continue  # events of other queries alone
                values = tuple(
                    call.lower(tuple(known[p] for p in call.partials)) for _, call in node.outputs
                )
                yield ResultRow(key, node.label, parts[0].start_us, parts[0].end_us, values)


def _part_of_events(
    partials: tuple[Partial, ...], events: list[Event], first: int, stop: int
) -> Part:
    inside = events[first:stop]
    values = {p: fold(p, inside) for p in partials}
    return Part(inside[0].time_us, inside[-1].time_us + 1, first, stop, values)


def _combined(partials: tuple[Partial, ...], start_us: int, end_us: int, parts: list[Part]) -> Part:
    parts = sorted(parts, key=lambda part: (part.start_us, part.first))
    values: dict[Partial, Any] = {}
    for partial in partials:
        monoid = partial.monoid
        total = monoid.identity
        for part in parts:
            total = monoid.combine(total, part.partials[partial])
        values[partial] = total
    return Part(start_us, end_us, parts[0].first, max(p.stop for p in parts), values)


def _placed(part: Part, times_us: list[int]) -> Part:
    """Return a part with the positions of its bounds among the events of another key."""
    first = bisect_left(times_us, part.start_us)
    return part._replace(first=first, stop=bisect_left(times_us, part.end_us))


def _by_bounds(parts: Iterable[Part]) -> dict[tuple[int, int], list[Part]]:
    found: dict[tuple[int, int], list[Part]] = {}
    for part in parts:
        found.setdefault((part.start_us, part.end_us), []).append(part)
    return found


def _merge_into_slices(
    node: Slice, open_ends: tuple[PeriodicWindow, ...], cuts: set[int], parts: Iterable[Part]
) -> list[Part]:
    """Put neighbouring parts together until an edge or a cut position lies between them."""
    merged: list[tuple[tuple[int, int], list[Part]]] = []
    for part in parts:
        bounds = slice_bounds(node.edges, part.start_us, open_ends)
        if merged and merged[-1][0] == bounds and part.first not in cuts:
            merged[-1][1].append(part)
        else:
            merged.append((bounds, [part]))
    return [_combined(node.partials, *bounds, found) for bounds, found in merged]


def slice_bounds(
    edges: Edges, time_us: int, open_ends: tuple[PeriodicWindow, ...] = ()
) -> tuple[int, int]:
    """Return the nearest edges around a time, those of events excepted.

    >>> slice_bounds(Edges(((0, 4), (0, 6))), 5)
    (4, 6)
    """
    starts_ends = [
        (time_us - (time_us - residue) % modulus, modulus)
        for residue, modulus in (*edges.classes, *map(end_class, open_ends))
    ]
    bounds = [(start, start + modulus) for start, modulus in starts_ends]
    bounds += [
        b for w in edges.windows if isinstance(w, CalendarWindow) for b in w.instances(time_us)
    ]
    if not bounds:
        return time_us, time_us  # only events cut: every slice lies between two positions
    return max(b[0] for b in bounds), min(b[1] for b in bounds)


def _positions_cut(edges: Edges, events: list[Event]) -> set[int]:
    """Positions of a key's events where a data-driven window begins or ends."""
    cuts: set[int] = set()
    for window in edges.windows:
        if not isinstance(window, CalendarWindow):
            for instance in instances_of(window, events):
                cuts |= {instance.first, instance.stop}
    return cuts
