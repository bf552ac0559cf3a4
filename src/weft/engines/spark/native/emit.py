"""Results: labels, bounds and lowered aggregates under the names the user gave."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.engines.spark.native.aggregation import LAST
from weft.engines.spark.sql.fan_out import NODE, START
from weft.engines.spark.sql.instants import calendar_end
from weft.engines.spark.sql.lower import Lowered, lower
from weft.engines.spark.sql.readings import Shape, shapes_of
from weft.engines.spark.sql.timestamps import timestamp_of
from weft.expression import column, literal
from weft.plan import Emit, Roll
from weft.window import CalendarWindow, PeriodicWindow, SessionWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.spark.native.events import Events
    from weft.engines.spark.text_rows import Rows

_LABEL, _RANGE = "label", "range"
_LINE = f"struct<{_LABEL}: string, {_RANGE}: bigint>"


@dataclass(frozen=True, slots=True)
class Emission:
    """Rows of all windows of a scope, ready to be handed out query by query."""

    rows: Rows
    events: Events
    windows: Mapping[Shape, int]
    names: Mapping[Partial, str]
    ranks: Mapping[Partial, tuple[float, ...]]

    def result(self, emits: Sequence[Emit]) -> Rows:
        """Return the result of one query, given what it emits."""
        shapes: dict[int, Shape] = {}
        lines: dict[int, list[dict[str, Any]]] = {}
        for emit in emits:
            roll = emit.inputs[0]
            assert isinstance(roll, Roll)
            for shape in shapes_of(roll.window):
                number = self.windows[shape]
                shapes[number] = shape
                lines.setdefault(number, []).append({_LABEL: emit.label, _RANGE: _range(shape)})
        (number, own), *others = lines.items()
        if not others and len(own) == 1:
            return self._of_one_window(emits[0], number, shapes)
        first = min(lines)
        table = [lines.get(number, []) for number in range(first, max(lines) + 1)]
        known = f"from_json({literal(json.dumps(table))}, 'array<array<{_LINE}>>')"
        # Rows of windows that the query does not have meet an empty list, or none, and go.
        labelled = self._own(emits[0]).selectExpr("*", f"inline(get({known}, {NODE} - {first}))")
        return labelled.selectExpr(*self._columns(emits[0], _LABEL, _end(shapes, _RANGE)))

    def _of_one_window(self, emit: Emit, number: int, shapes: Mapping[int, Shape]) -> Rows:
        """Return the rows of one window: no table of windows, which every row would look up."""
        end = _end(shapes, f"{_range(shapes[number])}L")
        own = self._own(emit).where(f"{NODE} = {number}")
        return own.selectExpr(*self._columns(emit, literal(emit.label), end))

    def _own(self, emit: Emit) -> Rows:
        """Return the rows that hold an event of the query; others are of other queries alone."""
        exists = emit.exists
        return self.rows if exists is None else self.rows.where(f"{self.names[exists]} > 0")

    def _columns(self, emit: Emit, label: str, end: str) -> list[str]:
        time_type = self.events.time_type
        window = (label, timestamp_of(START, time_type), timestamp_of(end, time_type))
        named = [
            *((own, name) for own, (name, _) in zip(self.events.keys, emit.keys, strict=True)),
            *zip(window, emit.window_columns, strict=True),
            *((self._lowered(call), alias) for alias, call in emit.outputs),
        ]
        return [f"{text} AS {column(name)}" for text, name in named]

    def _lowered(self, call: AggregateCall) -> str:
        argument = self.events.types[call.reads[0]] if call.args else None
        names = tuple(self.names[p] for p in call.partials)
        return lower(Lowered(names, call, argument, self.ranks.get(call.partials[0], ())))


def _range(shape: Shape) -> int:
    match shape:
        case PeriodicWindow():
            return shape.range_us
        case SessionWindow():
            return shape.gap_us
        case CalendarWindow():
            return 0  # as long as the calendar says


def _end(shapes: Mapping[int, Shape], range_us: str) -> str:
    cases = []
    for number, shape in shapes.items():
        if isinstance(shape, SessionWindow):
            cases.append(f"WHEN {NODE} = {number} THEN {LAST} + {range_us}")
        elif isinstance(shape, CalendarWindow):
            cases.append(f"WHEN {NODE} = {number} THEN {calendar_end(shape, START)}")
    regular = f"{START} + {range_us}"
    return f"CASE {' '.join(cases)} ELSE {regular} END" if cases else regular
