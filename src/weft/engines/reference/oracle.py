"""The oracle: what a query means, in three plain loops. Slow on purpose, never optimized.

For each key, for each instance of each window, fold the events of the instance. No plan, no
slices, no sharing: every other way to compute a result is tested against this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft.aggregates.extremes import order_key
from weft.engines.reference.events import Key, Rows, events_by_key
from weft.engines.reference.instances import Event, instances_of
from weft.engines.scalar.expressions import compiled
from weft.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.reference.instances import Instance
    from weft.query import Query
    from weft.window import Window

    Instances = Callable[[Window, Sequence[Event]], list[Instance]]


class ResultRow(NamedTuple):
    """One result: the key, the window's label and bounds, the aggregates in their order."""

    key: Key
    label: str
    start_us: int
    end_us: int
    values: tuple[Any, ...]


def evaluate(query: Query, rows: Rows, instances: Instances = instances_of) -> list[ResultRow]:
    """Return all results of a query over a source, in (end, window, start, key) order.

    `instances` are those of a key's events that give a row; all of them, unless told otherwise.

    >>> from weft import agg
    >>> from weft.query import Query
    >>> from weft.window import PeriodicWindow
    >>> query = Query("q", source="s", time="ts", windows={"4": PeriodicWindow(4, 2)},
    ...               aggs={"n": agg.count(), "lo": agg.min("x")})
    >>> for row in evaluate(query, [{"ts": 1, "x": 5}, {"ts": 3, "x": 2}]):
    ...     print(row.start_us, row.end_us, row.values)
    -2 2 (1, 5)
    0 4 (2, 2)
    2 6 (1, 2)
    """
    if query.time is None:
        raise InternalError(f"the time column of query {query.name!r} was not looked up")
    groups, _ = events_by_key(rows, query.time, query.where, query.keys)
    results: list[ResultRow] = []
    for label, window in query.windows:
        for key, events in groups.items():
            for instance in instances(window, events):
                inside = events[instance.first : instance.stop]
                values = tuple(aggregate(call, inside) for _, call in query.aggs)
                results.append(ResultRow(key, label, instance.start_us, instance.end_us, values))
    return ordered(results, [label for label, _ in query.windows])


def aggregate(call: AggregateCall, events: Iterable[Event]) -> Any:
    """Lift, combine and lower one aggregate over some events."""
    return call.lower(tuple(fold(partial, events) for partial in call.partials))


def fold(partial: Partial, events: Iterable[Event]) -> Any:
    """Combine the lifted events of one partial, oldest first; of those its condition keeps."""
    monoid = partial.monoid
    arguments = [compiled(argument) for argument in partial.args]
    keep = compiled(partial.where) if partial.where is not None else None
    total = monoid.identity
    for event in events:
        if keep is not None and keep(event.row) is not True:
            continue
        lifted = monoid.lift(tuple(read(event.row) for read in arguments), event.time_us)
        total = monoid.combine(total, lifted)
    return total


def ordered(results: list[ResultRow], labels: list[str]) -> list[ResultRow]:
    """Sort results by (end, window, start, key); windows in the order of the query."""
    place = {label: i for i, label in enumerate(labels)}
    return sorted(results, key=lambda r: (r.end_us, place[r.label], r.start_us, order_key(r.key)))
