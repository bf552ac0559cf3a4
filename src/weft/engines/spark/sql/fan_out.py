"""Fan-out as data: one constant table says which instances a row belongs to.

A row of a feeder begins at `start`. A *reading* tells where instances of a window that hold the
row begin: with x = start - shift, at the positions `offset + m*slide` from x - look_back to x, or
at every `stride`-th of them from the newest on. One expression serves every window, however many
there are: the plan does not grow with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.spark.text_rows import Rows

NODE, START, FEEDER = "node", "start", "feeder"
_INSTANCE = "instance"


def constant(value: Any, type: str) -> str:
    """Return a constant of any size as one short expression, which Spark evaluates once.

    As one literal per element, thousands of windows would be thousands of expressions. The value
    holds numbers and truths only, so nothing in it needs to be quoted.

    >>> constant([1, 2], "array<int>")
    "from_json('[1,2]', 'array<int>')"
    """
    return f"from_json('{json.dumps(value, separators=(',', ':'))}', '{type}')"


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows of a feeder map to instances of a window."""

    node: int  # whom the instances belong to
    shift: int = 0  # distance of the newest instance's position from the row's start
    look_back: int = 0  # how far before that position an instance may begin
    slide: int = 1
    offset: int = 0
    stride: int = 1  # of so many positions, one may hold the row
    every: int = 1  # a row counts only in instances that begin a multiple of this before it

    @property
    def step(self) -> int:
        """The distance between instances that may hold the same row."""
        return self.slide * self.stride

    @property
    def most(self) -> int:
        """The largest number of instances a row belongs to."""
        return self.look_back // self.step + 1

    @property
    def has_gaps(self) -> bool:
        """True when some rows belong to no instance."""
        return self.look_back < self.slide - 1


@dataclass(frozen=True)
class FanOut:
    """The arithmetic from rows of some feeders to all instances that hold them, as SQL text.

    What no reading needs, no row computes.

    >>> readings = [Reading(1, look_back=9, slide=10), Reading(2, look_back=14, slide=15)]
    >>> tumbling = FanOut({0: readings})
    >>> tumbling.lines, tumbling.condition, tumbling.starts, tumbling.start
    ({0: [(1, 10), (2, 15)]}, None, None, '(start - pmod(start, slide))')
    """

    readings: Mapping[int, Sequence[Reading]]  # by the node that rows come from

    @cached_property
    def listed(self) -> tuple[Reading, ...]:
        """All readings."""
        return tuple(reading for found in self.readings.values() for reading in found)

    @cached_property
    def overlap(self) -> bool:
        """True when a row may belong to several instances of one window."""
        return any(r.most > 1 for r in self.listed)

    @cached_property
    def _gaps(self) -> bool:
        return any(r.has_gaps for r in self.listed)

    @cached_property
    def _used(self) -> tuple[str, ...]:
        needed = {
            "shift": any(r.shift for r in self.listed),
            "offset": any(r.offset for r in self.listed),
            "slide": any(r.slide > 1 for r in self.listed) or self.overlap,
            "stride": any(r.stride > 1 for r in self.listed),
            "every": any(r.every > 1 for r in self.listed),
            "look_back": self._gaps or self.overlap,
        }
        return tuple(name for name, is_needed in needed.items() if is_needed)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table of readings: the node, and all in which readings differ."""
        varying = [p for p in self._used if len({getattr(r, p) for r in self.listed}) > 1]
        return (NODE, *varying)

    @cached_property
    def lines(self) -> dict[int, list[tuple[int, ...]]]:
        """The table of readings, by the node that rows come from."""
        return {
            feeder: [tuple(getattr(r, c) for c in self.columns) for r in found]
            for feeder, found in self.readings.items()
        }

    def _value(self, parameter: str) -> str:
        return parameter if parameter in self.columns else f"{getattr(self.listed[0], parameter)}L"

    @cached_property
    def _position(self) -> str:
        return f"({START} - {self._value('shift')})" if "shift" in self._used else START

    @cached_property
    def _behind(self) -> str:
        offset = f" - {self._value('offset')}" if "offset" in self._used else ""
        return f"pmod({self._position}{offset}, {self._value('slide')})"

    @cached_property
    def condition(self) -> str | None:
        """What a row must fulfil to be in any instance; None if all are."""
        return f"{self._behind} <= {self._value('look_back')}" if self._gaps else None

    @cached_property
    def _newest(self) -> str:
        return f"({self._position} - {self._behind})" if "slide" in self._used else self._position

    @cached_property
    def starts(self) -> str | None:
        """The array of all starts, where a row may belong to several instances of one window."""
        if not self.overlap:
            return None
        older = f"({self._value('look_back')} - {self._behind}) div {self._step} * {self._step}"
        return f"sequence({self._newest} - {older}, {self._newest}, {self._step})"

    @cached_property
    def _step(self) -> str:
        if "stride" not in self._used:
            return self._value("slide")
        if {"slide", "stride"}.isdisjoint(self.columns):
            return f"{self.listed[0].step}L"
        return f"({self._value('slide')} * {self._value('stride')})"

    @cached_property
    def start(self) -> str:
        """The start of the instance."""
        return _INSTANCE if self.overlap else self._newest

    @cached_property
    def later_condition(self) -> str | None:
        """What must hold of a row and an instance; None if nothing more."""
        if "every" not in self._used:
            return None
        return f"pmod({START} - {self.start}, {self._value('every')}) = 0"


def fan_out(
    rows: Rows,
    kept: Sequence[str],
    readings: Mapping[int, Sequence[Reading]],
    special: Mapping[int, str],
    *,
    from_rows: bool,
) -> Rows:
    """Copy each row to the instances it belongs to: columns `kept`, `node` and `start`.

    `readings` are listed by the node that a row comes from, which `node` tells of rows, and
    `feeder` of events that come in several kinds. The instances of some nodes follow no period;
    `special` has their start, as an expression over the row. Every step here is a round trip to the
    JVM, so there are no more of them than it takes.
    """
    plan = FanOut(readings)
    (only, *others) = plan.listed
    if others:
        if from_rows:
            rows = rows.selectExpr(*kept, START, f"inline({_table(plan, NODE)})")
        else:
            rows = rows.selectExpr("*", f"inline({_table(plan, FEEDER)})")
        node, start = NODE, with_special(plan.start, special)
    else:
        node, start = f"{only.node} AS {NODE}", special.get(only.node, plan.start)
    if plan.condition is not None:
        rows = rows.where(plan.condition)
    if plan.starts is not None:
        instances = f"explode({plan.starts})"
        if start == plan.start and plan.later_condition is None:
            return rows.selectExpr(*kept, node, f"{instances} AS {START}")
        rows = rows.selectExpr("*", f"{instances} AS {_INSTANCE}")
    if plan.later_condition is not None:
        rows = rows.where(plan.later_condition)
    return rows.selectExpr(*kept, node, f"{start} AS {START}")


def with_special(start: str, special: Mapping[int, str]) -> str:
    """Return the start of an instance where some nodes have an expression of their own."""
    if not special:
        return start
    cases = " ".join(f"WHEN {NODE} = {node} THEN {own}" for node, own in special.items())
    return f"CASE {cases} ELSE {start} END"


def _table(plan: FanOut, told: str) -> str:
    """Return the readings of a row, given the column that tells where it comes from."""
    types = [f"{NODE}: int", *(f"{column}: bigint" for column in plan.columns[1:])]
    line_type = f"array<struct<{', '.join(types)}>>"
    lines = {
        feeder: [dict(zip(plan.columns, line, strict=True)) for line in found]
        for feeder, found in plan.lines.items()
    }
    if len(lines) == 1:
        (only,) = lines.values()
        return constant(only, line_type)
    first, last = min(lines), max(lines)
    dense = [lines.get(feeder, []) for feeder in range(first, last + 1)]
    return f"get({constant(dense, f'array<{line_type}>')}, {told} - {first})"
