"""What a stream has given so far: watermark, lateness and closing, in plain loops.

It holds all events that were not too late, and evaluates queries over them anew whenever it is
asked; no slices, no state, nothing in common with the engines it judges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from weft.aggregates.distinct import canonical
from weft.engines.reference.engine import event_rows, result_table
from weft.engines.reference.events import time_us
from weft.engines.reference.instances import Event
from weft.engines.reference.oracle import ResultRow, aggregate, evaluate
from weft.engines.reference.streams import ended, watermark_of
from weft.engines.scalar.expressions import compiled
from weft.engines.schema import result_schema
from weft.engines.spark.sql.slice_bounds import classes_cut, edge_after
from weft.plan import Roll, Scan, Slice
from weft.plan.nodes import ends_read_open
from weft.plan.planned_scope import PlannedScope, planned_scopes
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from weft.engines.reference.instances import Instance
    from weft.plan import Emit, Plan
    from weft.query import Query

MILLISECOND_US = 1000  # what Spark counts watermarks in


def is_late(windows: Iterable[Window], at_us: int, watermark_us: int | None) -> bool:
    """Tell whether an event comes too late for windows that are kept together.

    One that is older than the watermark counts in all of them or in none: if every instance that
    holds it is open, and none of the windows waits for the order of events.

    >>> from weft.window import SessionWindow
    >>> [is_late([PeriodicWindow(4, 2)], us, 6) for us in (3, 4, 6)]
    [True, True, False]
    >>> is_late([PeriodicWindow(8, 8)], 3, 6), is_late([SessionWindow(9)], 3, 6)
    (False, True)
    """
    if watermark_us is None or at_us >= watermark_us:
        return False
    for window in windows:
        if not isinstance(window, PeriodicWindow | CumulatingWindow | CalendarWindow):
            return True
        if any(end <= watermark_us for _, end in window.instances(at_us)):
            return True
    return False


@dataclass
class StreamOracle:
    """A plan over one source as a stream: batches are taken, and rows are closed.

    An event is judged by the watermark that the batches before its own allow. `unit_us` is what
    watermarks are counted in; Spark's begin in 1970.

    >>> import weft
    >>> query = weft.Query("n", source="s", time="ts", windows={"10": weft.tumbling(10)},
    ...                    aggs={"n": weft.agg.count()})
    >>> oracle = StreamOracle(weft.optimize(weft.Workload([query])), delay_us=5)
    >>> for times in ([3, 8, 12], [9, 15], [4, 11]):
    ...     oracle.take([{"ts": time} for time in times])
    >>> [row.values for row in oracle.closed()["n"]], oracle.late
    ([(3,)], {'n': 1})
    """

    plan: Plan
    delay_us: int
    unit_us: int = 1
    watermark_us: int | None = None
    late: dict[str, int] = field(default_factory=dict)  # events dropped, by query
    _kept: dict[PlannedScope, list[Mapping[str, Any]]] = field(default_factory=dict)

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take a batch, in the order of arrival, and move the watermark."""
        latest_us: int | None = None
        for scope in planned_scopes(self.plan):
            keep = compiled(scope.scan.where) if scope.scan.where is not None else None
            events = [(time_of(scope, row), row) for row in rows]
            known = [(at_us, row) for at_us, row in events if at_us is not None]
            latest_us = max((at_us for at_us, _ in known), default=None)
            self._take(scope, [(us, row) for us, row in known if keep is None or keep(row) is True])
        allowed = None
        if latest_us is not None:
            allowed = watermark_of(latest_us, self.delay_us, self.unit_us)
        self.advance(allowed)

    def _take(self, scope: PlannedScope, events: list[tuple[int, Mapping[str, Any]]]) -> None:
        kept = self._kept.setdefault(scope, [])
        windows = windows_of(scope)
        late = [is_late(windows, at_us, self.watermark_us) for at_us, _ in events]
        kept += [row for (_, row), dropped in zip(events, late, strict=True) if not dropped]
        self._count(scope, sum(late))

    def _count(self, scope: PlannedScope, late: int) -> None:
        self.late |= {query: self.late.get(query, 0) + late for query in scope.queries}

    @property
    def late_events(self) -> int:
        """Events dropped; one counts once for each scope that would have kept it."""
        return sum(self.late[scope.queries[0]] for scope in self._kept)

    def advance(self, to_us: int | None) -> None:
        """Move the watermark as far as a batch allows, never back."""
        if to_us is None or (self.unit_us == MILLISECOND_US and to_us <= 0):
            return  # Spark has none before 1970
        self.watermark_us = to_us if self.watermark_us is None else max(to_us, self.watermark_us)

    def closed(self) -> dict[str, list[ResultRow]]:
        """Return the rows of all instances that have closed so far, by query."""
        found: dict[str, list[ResultRow]] = {}
        queries = {query.name: query for query in self.plan.queries}
        for scope, kept in self._kept.items():
            for name in scope.queries:
                found[name] = evaluate(queries[name], kept, partial(_ended, self.watermark_us))
        return found

    def tables(self, source: pa.Schema) -> dict[str, pa.Table]:
        """Return `closed` as tables, of events of this schema."""
        rows = self.closed()
        return {
            query.name: result_table(result_schema(query, source), rows.get(query.name, []))
            for query in self.plan.queries
        }

    def asked_besides(self, query: Query, other: str, source: pa.Schema) -> pa.Table:
        """Return what closed of a query, over the events that were kept for another one."""
        (kept,) = (rows for scope, rows in self._kept.items() if other in scope.queries)
        rows = evaluate(query, kept, partial(_ended, self.watermark_us))
        return result_table(result_schema(query, source), rows)

    def played(self, batches: Iterable[pa.Table]) -> StreamOracle:
        """Take tables as batches."""
        for batch in batches:
            self.take(event_rows(batch))
        return self


@dataclass
class NativeOracle(StreamOracle):
    """The same under Spark's own states, which drop rows of theirs that have ended.

    What comes to the first state is cut into cells, by which it is keyed: slices, or instances
    where a window reads events. A state drops a cell whose end was behind the watermark of the
    micro-batch before its own; so an event is judged a micro-batch later than by sessions, and
    where cells are instances it is missing in those that have ended alone.
    """

    dropped: int = 0  # rows of states: those of one key and cell that came together are one
    _before_us: int | None = None
    _inside: dict[Instanced, list[Event]] = field(default_factory=dict)

    def _take(self, scope: PlannedScope, events: list[tuple[int, Mapping[str, Any]]]) -> None:
        queries = {query.name: query for query in self.plan.queries}
        self._kept.setdefault(scope, [])
        dropped: set[object] = set()
        late = 0
        # All of 1969 is behind the watermark that Spark begins with.
        judged_by = 0 if self._before_us is None else self._before_us
        for at_us, row in events:
            own: set[object] = set()
            for emit in scope.emits:
                query, base = queries[emit.query], _base(emit)
                key = tuple(canonical(compiled(text)(row)) for _, text in query.keys)
                for bounds in _window_of(emit).instances(at_us):
                    end = bounds[1] if isinstance(base, Roll) else slice_end(base, scope, at_us)
                    if end <= judged_by:
                        own.add((base, key, end))
                    elif query.where is None or compiled(query.where)(row) is True:
                        held = self._inside.setdefault((emit.query, emit.label, key, *bounds), [])
                        held.append(Event(at_us, dict(row)))
            late += bool(own)
            dropped |= own
        self._count(scope, late)
        self.dropped += len(dropped)

    def advance(self, to_us: int | None) -> None:
        """Move the watermark; the one there was is what the next batch is judged by."""
        self._before_us = self.watermark_us
        super().advance(to_us)

    def closed(self) -> dict[str, list[ResultRow]]:
        """Return the rows of all instances that have closed so far, by query."""
        found: dict[str, list[ResultRow]] = {query.name: [] for query in self.plan.queries}
        for (name, label, key, start_us, end_us), events in self._inside.items():
            if self.watermark_us is None or end_us > self.watermark_us:
                continue
            query = next(query for query in self.plan.queries if query.name == name)
            inside = sorted(events, key=lambda event: event.time_us)
            values = tuple(aggregate(call, inside) for _, call in query.aggs)
            found[name].append(ResultRow(key, label, start_us, end_us, values))
        return found


Instanced = tuple[str, str, tuple[Any, ...], int, int]  # query, label, key, bounds


def windows_of(scope: PlannedScope) -> tuple[Window, ...]:
    """List the windows that are kept of a scope, those that only feed others included."""
    return tuple(dict.fromkeys(node.window for node in scope.nodes if isinstance(node, Roll)))


def time_of(scope: PlannedScope, row: Mapping[str, Any]) -> int | None:
    assert scope.scan.time is not None
    return time_us(row[scope.scan.time], scope.scan.time)


def slice_end(node: Slice, scope: PlannedScope, at_us: int) -> int:
    """Return where the slice around a time ends, as Spark cuts it."""
    classes = classes_cut(node.edges, ends_read_open(node, scope.nodes))
    ends = [us for w in node.edges.windows for _, us in w.instances(at_us)]
    return min([*ends, *([edge_after(at_us, classes)] if classes else [])])


def _window_of(emit: Emit) -> Any:
    (roll,) = emit.inputs
    return roll.window


def _base(emit: Emit) -> Slice | Roll:
    """Return what reads the events below a result."""
    (node,) = emit.inputs
    while not isinstance(node.inputs[0], Scan):
        node = node.inputs[0]
    return node


def _ended(watermark_us: int | None, window: Window, events: Sequence[Event]) -> list[Instance]:
    return ended(window, events, watermark_us)
