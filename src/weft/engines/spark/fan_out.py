"""Fan-out as data: one constant table says which instances a row belongs to.

A row of a feeder begins at `start`. A *reading* tells where instances of a window that hold the
row begin: with x = start - shift, at the positions `offset + m*slide` from x - reach to x. One
expression serves every window, however many there are: the plan does not grow with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from weft.engines.spark.times import whole

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NODE, START = "node", "start"
FEEDER = "feeder"
_INSTANCE = "instance"


def constant(value: Any, type: str) -> Column:
    """Return a constant of any size as one short expression, which Spark evaluates once.

    As one literal per element, thousands of windows would be thousands of expressions.
    """
    return F.from_json(F.lit(json.dumps(value, separators=(",", ":"))), type)


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


_PARAMETERS = tuple(f.name for f in fields(Reading) if f.name != NODE)


def fan_out(
    rows: DataFrame,
    kept: Sequence[str],
    readings: Mapping[int, Sequence[Reading]],
    special: Mapping[int, Column],
) -> DataFrame:
    """Copy each row to the instances it belongs to: columns `kept`, `node` and `start`.

    `readings` are listed by the node that a row comes from, which `feeder` tells. The instances of some nodes follow no
    period; `special` has their start, as an expression over the row's own start.
    """
    listed = [reading for found in readings.values() for reading in found]
    varying = [p for p in _PARAMETERS if len({getattr(r, p) for r in listed}) > 1]
    fixed = {
        p: F.lit(getattr(listed[0], p)).cast("bigint") for p in _PARAMETERS if p not in varying
    }
    if len(listed) > 1:
        types = ", ".join([f"{NODE}: int", *(f"{p}: bigint" for p in varying)])
        table = _table(readings, varying, f"array<struct<{types}>>")
        rows = rows.select("*", F.inline(table))
    else:
        rows = rows.select("*", F.lit(listed[0].node).alias(NODE))
    parameters = {p: fixed.get(p, F.col(p)) for p in _PARAMETERS}
    return _starts(rows, kept, listed, parameters, special)


def _table(
    readings: Mapping[int, Sequence[Reading]], varying: Sequence[str], type: str
) -> Column:
    def line(reading: Reading) -> dict[str, int]:
        return {name: value for name, value in asdict(reading).items() if name in (NODE, *varying)}

    if len(readings) == 1:
        (only,) = readings.values()
        return constant([line(r) for r in only], type)
    first, last = min(readings), max(readings)
    lines = [[line(r) for r in readings.get(node, ())] for node in range(first, last + 1)]
    return F.get(constant(lines, f"array<{type}>"), F.col(FEEDER) - first)


def _starts(
    rows: DataFrame,
    kept: Sequence[str],
    listed: Sequence[Reading],
    parameters: Mapping[str, Column],
    special: Mapping[int, Column],
) -> DataFrame:
    """Compute the start of every instance; rows in a gap between instances are dropped."""
    own = F.col(START)
    position = own - parameters["shift"] if any(r.shift for r in listed) else own
    behind = F.pmod(position - parameters["offset"], parameters["slide"])
    if any(r.has_gaps for r in listed):
        rows = rows.where(behind <= parameters["reach"])
    newest = position - behind
    if any(r.most > 1 for r in listed):
        older = whole(parameters["reach"] - behind, parameters["slide"]) * parameters["slide"]
        start = F.explode(F.sequence(newest - older, newest, parameters["slide"]))
        rows = rows.select("*", start.alias(_INSTANCE))
        newest = F.col(_INSTANCE)
    if any(r.every > 1 for r in listed):
        rows = rows.where(F.pmod(own - newest, parameters["every"]) == 0)
    for node, start in special.items():
        newest = F.when(F.col(NODE) == node, start).otherwise(newest)
    return rows.select(*kept, NODE, newest.alias(START))
