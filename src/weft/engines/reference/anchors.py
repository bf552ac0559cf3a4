"""What windows at anchors mean: for each point, for each window, fold the events inside.

Slow on purpose and never optimized; every other way to compute features is tested against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.engines.reference.events import events_by_key, key_value, time_us
from weft.engines.reference.oracle import fold
from weft.engines.scalar.expressions import compiled
from weft.errors import InternalError
from weft.expression import column
from weft.window.trailing import Trailing, TrailingRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.reference.events import Key
    from weft.engines.reference.instances import Event
    from weft.engines.scalar.rows import EventRow
    from weft.plan.anchors import FeaturePlan, Trail


def interpret_features(
    plan: FeaturePlan, sources: Mapping[str, Sequence[EventRow]]
) -> list[tuple[Any, ...]]:
    """Return the feature columns of every point, in the order of the points."""
    points = sources[plan.points.source]
    numbers = {id(row): number for number, row in enumerate(points)}
    grouped = [_events(trail, sources[trail.events.source]) for trail in plan.trails]
    rows: list[tuple[Any, ...]] = []
    for point in points:
        known = []
        for trail, groups in zip(plan.trails, grouped, strict=True):
            events = groups.get(_key(trail, point), [])
            if plan.points.rolling and isinstance(trail.window, TrailingRows):
                inside = _rows_before(trail.window, point, plan.points.at, events, numbers)
            else:
                inside = _inside(trail, point, events)
            known.append({partial: fold(partial, inside) for partial in trail.partials})
        rows.append(
            tuple(
                call.lower(tuple(known[at][partial] for partial in call.partials))
                for _, at, call in plan.features.outputs
            )
        )
    return rows


def _events(trail: Trail, rows: Sequence[EventRow]) -> dict[Key, list[Event]]:
    scan = trail.events
    if scan.time is None:
        raise InternalError(f"the time column of {scan.source!r} was not looked up")
    groups, _ = events_by_key(rows, scan.time, scan.where, trail.keys)
    return groups


def _key(trail: Trail, point: EventRow) -> Key:
    if trail.points.rolling:
        texts = [expression for _, expression in trail.keys]
    else:
        texts = [column(name) for name, _ in trail.keys]
    return tuple(key_value(compiled(text)(point)) for text in texts)


def _inside(trail: Trail, point: EventRow, events: list[Event]) -> list[Event]:
    """Keep the events of the point's key that its window holds, oldest first."""
    at = time_us(point[trail.points.at], trail.points.at)
    if at is None:
        return []
    window = trail.window
    if isinstance(window, Trailing):
        first, stop = window.interval(at)
        return [event for event in events if first <= event.time_us < stop]
    before = [event for event in events if event.time_us < at + window.stop_us]
    return _last_rows(window, before)


def _last_rows(window: TrailingRows, before: list[Event]) -> list[Event]:
    return before[: max(len(before) - window.lag, 0)][-window.rows :]


def _rows_before(
    window: TrailingRows,
    point: EventRow,
    at: str,
    events: list[Event],
    numbers: Mapping[int, int],
) -> list[Event]:
    """Keep the last events up to a row itself; those of one instant are in the table's order."""
    when = time_us(point[at], at)
    if when is None:
        return []
    own = (when, numbers[id(point)])
    before = [
        event
        for event in events
        if (place := (event.time_us, numbers[id(event.row)])) < own
        or (place == own and window.holds_anchor)
    ]
    return _last_rows(window, before)
