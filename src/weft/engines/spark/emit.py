"""Results: labels, bounds and lowered aggregates under the names the user gave."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from weft.engines.spark.fan_out import NODE, START
from weft.engines.spark.flow import LAST
from weft.engines.spark.lower import Lowered, lower
from weft.engines.spark.readings import Shape, shapes_of
from weft.engines.spark.stamps import timestamp_of
from weft.engines.spark.times import calendar_end
from weft.plan import Emit, Roll
from weft.window import CalendarWindow, PeriodicWindow, SessionWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.spark.events import Events

_LABEL, _SPAN = "label", "span"
_LINE = f"struct<{_LABEL}: string, {_SPAN}: bigint>"


@dataclass(frozen=True, slots=True)
class Emission:
    """Rows of all windows of a scope, ready to be handed out query by query."""

    rows: DataFrame
    events: Events
    windows: Mapping[Shape, int]
    names: Mapping[Partial, str]
    ranks: Mapping[Partial, tuple[float, ...]]

    def result(self, emits: Sequence[Emit]) -> DataFrame:
        """Return the result of one query, given what it emits."""
        lines: dict[int, list[dict[str, Any]]] = {}
        shapes: dict[int, Shape] = {}
        for emit in emits:
            roll = emit.inputs[0]
            assert isinstance(roll, Roll)
            for shape in shapes_of(roll.window):
                number = self.windows[shape]
                shapes[number] = shape
                lines.setdefault(number, []).append({_LABEL: emit.label, _SPAN: _span(shape)})
        first = min(lines)
        table = [lines.get(number, []) for number in range(first, max(lines) + 1)]
        # A literal, not SQL text: a label may hold any character.
        known = F.from_json(F.lit(json.dumps(table)), f"array<array<{_LINE}>>")
        # Rows of windows that the query does not have meet an empty list, or none, and go.
        labelled = self.rows.select("*", F.inline(F.get(known, F.col(NODE) - first)))
        return labelled.select(*self._columns(emits[0], shapes))

    def _columns(self, emit: Emit, shapes: Mapping[int, Shape]) -> list[Column]:
        label, start, end = emit.window_columns
        time_type = self.events.time_type
        keys = zip(self.events.keys, emit.keys, strict=True)
        named = [
            *((own, name) for own, (name, _) in keys),
            (_LABEL, label),
            (timestamp_of(START, time_type), start),
            (timestamp_of(_end(shapes), time_type), end),
            *((self._lowered(call), alias) for alias, call in emit.outputs),
        ]
        return [F.expr(text).alias(name) for text, name in named]

    def _lowered(self, call: AggregateCall) -> str:
        argument = self.events.types[call.args[0]] if call.args else None
        names = tuple(self.names[p] for p in call.partials)
        return lower(Lowered(names, call, argument, self.ranks.get(call.partials[0], ())))


def _span(shape: Shape) -> int:
    match shape:
        case PeriodicWindow():
            return shape.range_us
        case SessionWindow():
            return shape.gap_us
        case CalendarWindow():
            return 0  # as long as the calendar says


def _end(shapes: Mapping[int, Shape]) -> str:
    cases = []
    for number, shape in shapes.items():
        if isinstance(shape, SessionWindow):
            cases.append(f"WHEN {NODE} = {number} THEN {LAST} + {_SPAN}")
        elif isinstance(shape, CalendarWindow):
            cases.append(f"WHEN {NODE} = {number} THEN {calendar_end(shape, START)}")
    regular = f"{START} + {_SPAN}"
    return f"CASE {' '.join(cases)} ELSE {regular} END" if cases else regular
