"""Results: labels, bounds and lowered aggregates under the names the user gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from weft.engines.spark.fan_out import NODE, START, constant
from weft.engines.spark.flow import LAST
from weft.engines.spark.lower import Lowered, lower
from weft.engines.spark.readings import Shape, shapes_of
from weft.engines.spark.times import calendar_end, timestamp_of
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
        # Rows of windows that the query does not have meet an empty list, or none, and go.
        found = F.get(constant(table, f"array<array<{_LINE}>>"), F.col(NODE) - first)
        labelled = self.rows.select("*", F.inline(found))
        return labelled.select(*self._columns(emits[0], shapes))

    def _columns(self, emit: Emit, shapes: Mapping[int, Shape]) -> list[Column]:
        label, start, end = emit.window_columns
        time_type = self.events.time_type
        keys = zip(self.events.keys, emit.keys, strict=True)
        return [
            *(F.col(own).alias(name) for own, (name, _) in keys),
            F.col(_LABEL).alias(label),
            timestamp_of(F.col(START), time_type).alias(start),
            timestamp_of(_end(shapes), time_type).alias(end),
            *(self._lowered(call).alias(alias) for alias, call in emit.outputs),
        ]

    def _lowered(self, call: AggregateCall) -> Column:
        argument = self.events.types[call.args[0]] if call.args else None
        columns = tuple(F.col(self.names[p]) for p in call.partials)
        ranks = self.ranks.get(call.partials[0], ())
        return lower(Lowered(columns, call, argument, ranks))


def _span(shape: Shape) -> int:
    match shape:
        case PeriodicWindow():
            return shape.range_us
        case SessionWindow():
            return shape.gap_us
        case CalendarWindow():
            return 0  # as long as the calendar says


def _end(shapes: Mapping[int, Shape]) -> Column:
    end = F.col(START) + F.col(_SPAN)
    for number, shape in shapes.items():
        if isinstance(shape, SessionWindow):
            end = F.when(F.col(NODE) == number, F.col(LAST) + F.col(_SPAN)).otherwise(end)
        elif isinstance(shape, CalendarWindow):
            end = F.when(F.col(NODE) == number, calendar_end(shape, F.col(START))).otherwise(end)
    return end
