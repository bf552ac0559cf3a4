"""Joins as Catalyst plans: inputs early or late, joined on their values, windows made at the end.

An early input is aggregated by (group, join value, slice). Rows of an input with a window that
moves are first matched with landmarks and tables, each row once, and then collapsed to (group,
slice): only these are fanned out to the instants at which the join is evaluated. Two windows that
move meet at instants, so there the rows of both are fanned out before they are matched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engines.base import Unsupported
from weft.engines.joins import variable_types
from weft.engines.spark.joins.mode import Running
from weft.engines.spark.joins.row_set import INSTANT, Rows
from weft.engines.spark.joins.rows import JoinRows
from weft.engines.spark.native.events import check_argument
from weft.engines.spark.session import arrow_schema
from weft.engines.spark.sql.instants import floor_to
from weft.engines.spark.sql.kinds import SPARK_KINDS
from weft.engines.spark.sql.lower import Lowered, lower
from weft.engines.spark.sql.timestamps import timestamp_of
from weft.errors import InternalError
from weft.expression import column, literal
from weft.plan import Emit, Join, Plan
from weft.plan.joins import JoinShape, end_class, join_query
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from weft.aggregates import Partial
    from weft.query import JoinQuery


def _order(shape: JoinShape, streams: Sequence[bool]) -> tuple[int, ...]:
    """Order the inputs: a window that moves, what is tied to it and stands still, then the others.

    The first is a stream where there is one, for Spark closes the windows of streams alone.
    """
    moving = [isinstance(window, PeriodicWindow) for window in shape.windows]
    sides = range(len(moving))
    order = [min((s for s in sides if moving[s]), key=lambda s: (not streams[s], s))]
    while len(order) < len(moving):
        bound = {v for side in order for v in shape.variables_of(side)}
        tied = [s for s in sides if s not in order and bound & {*shape.variables_of(s)}]
        order.append(min(tied, key=lambda s: (moving[s], streams[s], s)))
    return tuple(order)


def unsupported_joins(plan: Plan) -> list[Unsupported]:
    """Name the joins with an aggregate that Spark cannot count several times."""
    return [
        Unsupported(join, f"{partial} has no form that a join can repeat on Spark")
        for emit in plan.emits
        for join in emit.inputs
        if isinstance(join, Join)
        for partial in join.partials
        if partial.args and not _repeats(partial)
    ]


def _repeats(partial: Partial) -> bool:
    native = SPARK_KINDS.get(partial.kind)
    return native is not None and native.one_event is not None


def compile_joins(
    plan: Plan, sources: Mapping[str, DataFrame]
) -> tuple[dict[str, DataFrame], list[DataFrame]]:
    """Return the lazy results of the joins of a plan, by query, and the slices that they share."""
    running = Running()
    results = {
        emit.query: JoinCompilation.of(emit, sources, running).result()
        for emit in plan.emits
        if isinstance(emit.inputs[0], Join)
    }
    return results, list(running.kept.values())


@dataclass(frozen=True, slots=True)
class JoinCompilation:
    """One join, and the rows that it is made of."""

    emit: Emit
    query: JoinQuery
    shape: JoinShape
    rows: JoinRows
    order: tuple[int, ...]

    @classmethod
    def of(cls, emit: Emit, sources: Mapping[str, DataFrame], running: Running) -> JoinCompilation:
        """Check the types of a join over these sources."""
        from pyspark.sql.pandas.types import from_arrow_type

        join, query = emit.inputs[0], join_query(emit)
        assert isinstance(join, Join)
        read = {i.source: sources[i.source] for i in query.inputs}
        schemas = {name: arrow_schema(frame.schema) for name, frame in read.items()}
        types = tuple(
            from_arrow_type(type).simpleString() for type in variable_types(query, schemas)
        )
        shape = JoinShape.of(query)
        rows = JoinRows(join, shape, read, types, running)
        streams = [read[given.source].isStreaming for given in query.inputs]
        return cls(emit, query, shape, rows, _order(shape, streams))

    def result(self) -> DataFrame:
        """Match the inputs one after the other, then group, aggregate, lower and name."""
        first, *others = self.order
        matched = self.rows.of_input(first)
        while others:
            side = others.pop(0)
            other = self.rows.of_input(side)
            if isinstance(self.shape.windows[side], PeriodicWindow):
                matched = self._at_instants(matched, [side, *others])
                other = self._at_instants(other, [s for s in self.order if s != side])
            matched = self.rows.matched(matched, other)
        matched = self.rows.completed(matched)
        if not matched.at_instants:
            matched = self.rows.fanned_out(self.rows.grouped(matched, matched.keys))
        return self._finished(self.rows.grouped(matched, matched.keys))

    def _at_instants(self, rows: Rows, others: Sequence[int]) -> Rows:
        """Bring rows to every instant at which they count; early ones are combined there."""
        if rows.at_instants:
            return rows
        if not rows.early:
            return self.rows.fanned_out(rows)
        keys = self.rows.keys_before(rows, others)
        if len(rows.sides) > 1:
            rows = self.rows.grouped(rows, keys)
        return self.rows.grouped(self.rows.fanned_out(rows), keys)

    def _finished(self, rows: Rows) -> DataFrame:
        label, start, end = (column(name) for name in self.query.window_columns)
        time_type = self._time_type()
        assert rows.count is not None  # a group always has one
        outputs = [
            f"{self._lowered(at, rows.count)} AS {column(alias)}"
            for at, (alias, _) in enumerate(self.query.aggs)
        ]
        return rows.frame.selectExpr(
            *(f"g{at} AS {column(name)}" for at, (name, _) in enumerate(self.query.keys)),
            f"{literal(self.emit.label)} AS {label}",
            f"{timestamp_of(self._start(), time_type)} AS {start}",
            f"{timestamp_of(INSTANT, time_type)} AS {end}",
            *outputs,
        )

    def _lowered(self, at: int, count: str) -> str:
        side, call = self.shape.calls[at]
        type: DataType | None = None
        if call.args:
            type = self.rows.argument_type(side, call.partials[0])
            check_argument(call, {call.args[0]: type})
        columns = tuple(self.rows.partial_name(side, p) if p.args else count for p in call.partials)
        return lower(Lowered(columns, call, type, ()))

    def _start(self) -> str:
        starts = []
        for window in self.shape.instants.periodic:
            residue, modulus = end_class(window)
            starts.append(f"{floor_to(INSTANT, residue, modulus)} - {window.range_us}L")
        return starts[0] if len(starts) == 1 else f"least({', '.join(starts)})"

    def _time_type(self) -> DataType:
        for side in self.rows.join.sides:
            if isinstance(side.window, PeriodicWindow) and side.scan.time is not None:
                return self.rows.sources[side.scan.source].schema[side.scan.time].dataType
        raise InternalError(f"join {self.query.name!r} has no window that moves")
