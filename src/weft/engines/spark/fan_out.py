"""Fan-out as data: one constant table says which instances a row belongs to.

A row of a feeder begins at `start`. A *reading* tells where instances of a window that hold the
row begin: with x = start - shift, at the positions `offset + m*slide` from x - reach to x. One
expression serves every window, however many there are: the plan does not grow with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

NODE, START = "node", "start"
FEEDER = "feeder"
_INSTANCE = "instance"


def constant(value: Any, type: str) -> str:
    """Return a constant of any size as one short expression, which Spark evaluates once.

    As one literal per element, thousands of windows would be thousands of expressions. The value
    holds numbers only, so nothing in it needs to be quoted.

    >>> constant([1, 2], "array<int>")
    "from_json('[1,2]', 'array<int>')"
    """
    return f"from_json('{json.dumps(value, separators=(',', ':'))}', '{type}')"


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows of a feeder map to instances of a window."""

    node: int  # whom the instances belong to
    shift: int = 0  # distance of the newest instance's position from the row's start
    reach: int = 0  # how far before that position an instance may begin
    slide: int = 1
    offset: int = 0
    every: int = 1  # a row counts only in instances that begin a multiple of this before it

    @property
    def most(self) -> int:
        """The largest number of instances a row belongs to."""
        return self.reach // self.slide + 1

    @property
    def has_gaps(self) -> bool:
        """True when some rows belong to no instance."""
        return self.reach < self.slide - 1


def fan_out(
    rows: DataFrame,
    kept: Sequence[str],
    readings: Mapping[int, Sequence[Reading]],
    special: Mapping[int, str],
) -> DataFrame:
    """Copy each row to the instances it belongs to: columns `kept`, `node` and `start`.

    `readings` are listed by the node that a row comes from, which `feeder` tells. The instances
    of some nodes follow no period; `special` has their start, as an expression over the row.
    """
    listed = [reading for found in readings.values() for reading in found]
    traits = _Traits.of(listed)
    varying = [p for p in traits.parameters if len({getattr(r, p) for r in listed}) > 1]
    if len(listed) > 1:
        types = ", ".join([f"{NODE}: int", *(f"{p}: bigint" for p in varying)])
        table = _table(readings, varying, f"array<struct<{types}>>")
        rows = rows.selectExpr("*", f"inline({table})")
    else:
        rows = rows.selectExpr("*", f"{listed[0].node} AS {NODE}")
    values = {p: f"{getattr(listed[0], p)}L" for p in traits.parameters}
    values |= {p: p for p in varying}
    return _with_starts(rows, kept, traits, values, special)


@dataclass(frozen=True, slots=True)
class _Traits:
    """What some reading needs; what none needs, no row computes."""

    shift: bool
    offset: bool
    slide: bool
    every: bool
    gaps: bool
    overlap: bool

    @staticmethod
    def of(listed: Sequence[Reading]) -> _Traits:
        return _Traits(
            shift=any(r.shift for r in listed),
            offset=any(r.offset for r in listed),
            slide=any(r.slide > 1 for r in listed),
            every=any(r.every > 1 for r in listed),
            gaps=any(r.has_gaps for r in listed),
            overlap=any(r.most > 1 for r in listed),
        )

    @property
    def parameters(self) -> tuple[str, ...]:
        needed = {
            "shift": self.shift,
            "offset": self.offset,
            "slide": self.slide or self.overlap,
            "every": self.every,
            "reach": self.gaps or self.overlap,
        }
        return tuple(name for name, is_needed in needed.items() if is_needed)


def _table(readings: Mapping[int, Sequence[Reading]], varying: Sequence[str], type: str) -> str:
    def line(reading: Reading) -> dict[str, int]:
        return {name: getattr(reading, name) for name in (NODE, *varying)}

    if len(readings) == 1:
        (only,) = readings.values()
        return constant([line(r) for r in only], type)
    first, last = min(readings), max(readings)
    lines = [[line(r) for r in readings.get(node, ())] for node in range(first, last + 1)]
    return f"get({constant(lines, f'array<{type}>')}, {FEEDER} - {first})"


def _with_starts(
    rows: DataFrame,
    kept: Sequence[str],
    traits: _Traits,
    values: Mapping[str, str],
    special: Mapping[int, str],
) -> DataFrame:
    """Compute the start of every instance; rows in a gap between instances are dropped."""
    newest = f"({START} - {values['shift']})" if traits.shift else START
    if "slide" in values:
        position = f"{newest} - {values['offset']}" if traits.offset else newest
        behind = f"pmod({position}, {values['slide']})"
        newest = f"({newest} - {behind})"
        if traits.gaps:
            rows = rows.where(f"{behind} <= {values['reach']}")
        if traits.overlap:
            older = f"({values['reach']} - {behind}) div {values['slide']} * {values['slide']}"
            starts = f"explode(sequence({newest} - {older}, {newest}, {values['slide']}))"
            rows = rows.selectExpr("*", f"{starts} AS {_INSTANCE}")
            newest = _INSTANCE
    if traits.every:
        rows = rows.where(f"pmod({START} - {newest}, {values['every']}) = 0")
    if special:
        cases = " ".join(f"WHEN {NODE} = {node} THEN {start}" for node, start in special.items())
        newest = f"CASE {cases} ELSE {newest} END"
    return rows.selectExpr(*kept, NODE, f"{newest} AS {START}")
