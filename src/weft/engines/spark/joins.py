"""Joins as Catalyst plans: windows of each input, early or late, joined on (join value, instant).

An early input is aggregated by (group, join value, slice), its slices are fanned out to the
instants at which the join is evaluated and aggregated again; of a late one every event is fanned
out. A landmark needs no fan-out: contributions of its slices add up behind the join.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.aggregates import Partial
from weft.engines.base import Unsupported
from weft.engines.joins import variable_types
from weft.engines.spark.events import check_input
from weft.engines.spark.lower import Lowered, lower
from weft.engines.spark.partials import PARTIALS, sum_type
from weft.engines.spark.session import arrow_schema
from weft.engines.spark.stamps import micros_of, timestamp_of
from weft.engines.spark.times import floor_to
from weft.errors import InternalError, UnsupportedError
from weft.expression import column
from weft.plan import Emit, Join, Plan
from weft.plan.joins import JoinShape, end_class, join_order, join_query
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from weft.plan import JoinSide
    from weft.query import JoinQuery

INSTANT, TIME, SLICE = "instant", "time", "slice"
COUNT = Partial("count_rows", ())
# One event as a partial; kinds without an entry have no form that counts several times.
_OF_ONE_EVENT = {
    "count_rows": "1L",
    "count": "cast({x} IS NOT NULL AS bigint)",
    **dict.fromkeys(("sum", "min", "max", "bit_and", "bit_or"), "{x}"),
    **dict.fromkeys(("bool_and", "bool_or"), "cast({x} AS boolean)"),
}
_ADDED = ("sum", "count", "count_rows")  # what a row adds as often as it has partners


def unsupported_joins(plan: Plan) -> list[Unsupported]:
    """Name the joins with an aggregate that Spark cannot count several times."""
    return [
        Unsupported(join, f"{partial} has no form that a join can repeat on Spark")
        for emit in plan.emits
        for join in emit.inputs
        if isinstance(join, Join)
        for partial in join.partials
        if partial.kind not in _OF_ONE_EVENT
    ]


def compile_joins(plan: Plan, sources: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the lazy results of the joins of a plan, by query."""
    return {
        emit.query: JoinCompilation.of(emit, sources).result()
        for emit in plan.emits
        if isinstance(emit.inputs[0], Join)
    }


@dataclass(frozen=True, slots=True)
class JoinCompilation:
    """One join and the DataFrames that it reads."""

    emit: Emit
    join: Join
    query: JoinQuery
    shape: JoinShape
    sources: Mapping[str, DataFrame]
    variable_types: tuple[str, ...]  # in which the variables are compared, as SQL names them

    @classmethod
    def of(cls, emit: Emit, sources: Mapping[str, DataFrame]) -> JoinCompilation:
        """Check the types of a join over these sources."""
        from pyspark.sql.pandas.types import from_arrow_type

        join, query = emit.inputs[0], join_query(emit)
        assert isinstance(join, Join)
        read = {i.source: sources[i.source] for i in query.inputs}
        for name, frame in read.items():
            if frame.isStreaming:
                raise UnsupportedError(
                    f"the table {name!r} is a stream, and this is a batch run",
                    hint="start streams with weft.start",
                )
        schemas = {name: arrow_schema(frame.schema) for name, frame in read.items()}
        types = tuple(
            from_arrow_type(type).simpleString() for type in variable_types(query, schemas)
        )
        return cls(emit, join, query, JoinShape.of(query), read, types)

    def result(self) -> DataFrame:
        """Join the inputs one after the other, then group and aggregate."""
        frame: DataFrame | None = None
        bound: set[int] = set()
        for side in join_order(self.shape):
            rows = self.side(side)
            own = self.shape.variables_of(side)
            if frame is None:
                frame = rows
            else:
                shared = [f"v{v}" for v in own if v in bound]
                moving = isinstance(self.shape.windows[side], PeriodicWindow)
                frame = frame.join(rows, [*shared, *([INSTANT] if moving else [])])
                if self.shape.windows[side] is not None and not moving:
                    frame = frame.where(f"{SLICE}{side} < {INSTANT}")
            bound |= {*own}
        assert frame is not None
        return self._finished(frame)

    def side(self, side: int) -> DataFrame:
        """Bring an input to rows of (variables, groups, instant) with its partials and a count."""
        events, given = self._events(side), self.join.sides[side]
        window = given.window
        keys = [*(f"v{v}" for v in self.shape.variables_of(side)), *self._groups(side)]
        if given.early:
            cut = [] if window is None else [f"{self._slice(side)} AS {SLICE}{side}"]
            sliced = events.selectExpr("*", *cut)
            at = [] if window is None else [f"{SLICE}{side}"]
            lifted = [
                PARTIALS[p.kind].lift(name, self._arguments(side, p), TIME)
                for p, name in self._partials(side).items()
            ]
            rows = sliced.groupBy(*keys, *at).agg(*(c for one in lifted for c in one.columns()))
        else:
            single = [
                f"{_OF_ONE_EVENT[p.kind].format(x=next(iter(self._arguments(side, p)), ''))}"
                f" AS {name}"
                for p, name in self._partials(side).items()
            ]
            at = [] if window is None else [f"{TIME} AS {SLICE}{side}"]
            rows = events.selectExpr(*keys, *at, *single)
        if not isinstance(window, PeriodicWindow):
            return rows
        instants = f"explode({fan_out(self.shape, window, f'{SLICE}{side}')}) AS {INSTANT}"
        spread = rows.selectExpr(*keys, *self._partials(side).values(), instants)
        return self._composed(side, spread, [*keys, INSTANT]) if given.early else spread

    def _composed(self, side: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        types = {field.name: field.dataType for field in rows.schema}
        combined = [
            PARTIALS[p.kind].combine(name, (self._argument_type(side, p, types[name]),))
            for p, name in self._partials(side).items()
        ]
        return rows.groupBy(*keys).agg(*(c for one in combined for c in one.columns()))

    def _events(self, side: int) -> DataFrame:
        """Filter an input; name its variables, groups, arguments and time as we do."""
        given: JoinSide = self.join.sides[side]
        source = self.sources[given.scan.source]
        kept = source if given.scan.where is None else source.where(given.scan.where)
        picked: list[str] = []
        for v in self.shape.variables_of(side):
            first, *others = self.shape.variables[v][side]
            kept = kept.where(f"{first} IS NOT NULL")
            for other in others:
                kept = kept.where(f"{first} = {other}")
            picked.append(f"cast({first} AS {self.variable_types[v]}) AS v{v}")
        for name, text in zip(self._groups(side), self._group_texts(side), strict=True):
            picked.append(f"{text} AS {name}")
        texts = dict.fromkeys(a for p in self._partials(side) for a in p.args)
        picked += [f"{text} AS s{side}_a{i}" for i, text in enumerate(texts)]
        if given.window is not None:
            if given.scan.time is None:
                raise InternalError(f"the time column of {given.scan.source!r} was not looked up")
            time = column(given.scan.time)
            kept = kept.where(f"{time} IS NOT NULL")
            type = source.schema[given.scan.time].dataType
            picked.append(f"{micros_of(time, type, given.scan.time)} AS {TIME}")
        return kept.selectExpr(*picked)

    def _slice(self, side: int) -> str:
        """Where the slice of an event begins: at the last edge of its window, or last instant."""
        window = self.shape.windows[side]
        classes = list(self.shape.instants.classes)
        if isinstance(window, PeriodicWindow):
            begin = (window.offset_us, window.slide_us)
            classes = list(dict.fromkeys((begin, end_class(window))))
        floors = [floor_to(TIME, residue, modulus) for residue, modulus in classes]
        return floors[0] if len(floors) == 1 else f"greatest({', '.join(floors)})"

    def _partials(self, side: int) -> dict[Partial, str]:
        own = (*self.shape.partials_of(side), COUNT)
        return {p: f"s{side}_n" if p == COUNT else f"s{side}_p{i}" for i, p in enumerate(own)}

    def _arguments(self, side: int, partial: Partial) -> tuple[str, ...]:
        texts = list(dict.fromkeys(a for p in self._partials(side) for a in p.args))
        return tuple(f"s{side}_a{texts.index(a)}" for a in partial.args)

    def _groups(self, side: int) -> list[str]:
        return [f"g{at}" for at, key in enumerate(self.shape.keys) if key.side == side]

    def _group_texts(self, side: int) -> list[str]:
        return [key.text for key in self.shape.keys if key.side == side]

    def _argument_type(self, side: int, partial: Partial, otherwise: Any) -> Any:
        if not partial.args:
            return otherwise
        source = self.sources[self.join.sides[side].scan.source]
        return source.selectExpr(f"{partial.args[0]} AS x").schema["x"].dataType

    def _finished(self, frame: DataFrame) -> DataFrame:
        """Coalesce what each input contributes, group, aggregate, lower and name."""
        sides = range(len(self.query.inputs))
        groups = [f"g{at}" for at in range(len(self.shape.keys))]
        totals = {
            (side, p): self._total(side, p, name)
            for side in sides
            for p, name in self._partials(side).items()
            if p != COUNT or side == 0
        }
        from pyspark.sql import functions as F

        summed = frame.groupBy(*groups, INSTANT).agg(
            *(F.expr(text).alias(f"t{at}") for at, text in enumerate(totals.values()))
        )
        names = {owner: f"t{at}" for at, owner in enumerate(totals)}
        label, start, end = (column(name) for name in self.query.window_columns)
        time_type = self._time_type()
        outputs = [
            f"{self._lowered(at, names)} AS {column(alias)}"
            for at, (alias, _) in enumerate(self.query.aggs)
        ]
        return summed.selectExpr(
            *(
                f"{g} AS {column(name)}"
                for g, (name, _) in zip(groups, self.query.keys, strict=True)
            ),
            f"'{self.emit.label}' AS {label}",
            f"{timestamp_of(self._start(), time_type)} AS {start}",
            f"{timestamp_of(INSTANT, time_type)} AS {end}",
            *outputs,
        )

    def _total(self, side: int, partial: Partial, name: str) -> str:
        """Fold a partial over the matches; sums and counts as often as the others have tuples."""
        if partial.kind not in _ADDED:
            return f"{PARTIALS[partial.kind]._combined(name, ())}"
        others = [f"s{o}_n" for o in range(len(self.query.inputs)) if o != side]
        total = f"sum({' * '.join([name, *others])})"
        if partial.kind != "sum":
            return f"coalesce({total}, 0L)"
        from pyspark.sql.types import DecimalType

        type = self._argument_type(side, partial, None)
        if isinstance(type, DecimalType):
            return f"cast({total} AS {sum_type(type).simpleString()})"
        return total

    def _lowered(self, at: int, names: Mapping[tuple[int, Partial], str]) -> str:
        side, call = self.shape.calls[at]
        type: DataType | None = None
        if call.args:
            type = self._argument_type(side, call.partials[0], None)
            check_input(call, {call.args[0]: type})
        columns = tuple(names[side if p.args else 0, p] for p in call.partials)
        return lower(Lowered(columns, call, type, ()))

    def _start(self) -> str:
        starts = []
        for window in self.shape.instants.periodic:
            residue, modulus = end_class(window)
            starts.append(f"{floor_to(INSTANT, residue, modulus)} - {window.range_us}L")
        return starts[0] if len(starts) == 1 else f"least({', '.join(starts)})"

    def _time_type(self) -> Any:
        for side in self.join.sides:
            if isinstance(side.window, PeriodicWindow) and side.scan.time is not None:
                return self.sources[side.scan.source].schema[side.scan.time].dataType
        raise InternalError(f"join {self.query.name!r} has no window that moves")


def fan_out(shape: JoinShape, window: PeriodicWindow, start: str) -> str:
    """Return the instants at which a slice that begins at `start` is in the window, as an array.

    >>> from weft.window import PeriodicWindow
    >>> shape = JoinShape(("a",), (PeriodicWindow(4, 2),), (), (), ())
    >>> fan_out(shape, PeriodicWindow(4, 2), "s")
    'sequence(s + 1L + pmod(0L - (s + 1L), 2L), s + 4L - pmod(s + 4L - 0L, 2L), 2L)'
    """
    residue, slide = end_class(window)
    first = f"{start} + 1L + pmod({residue}L - ({start} + 1L), {slide}L)"
    last = f"{start} + {window.range_us}L"
    last = f"{last} - pmod({last} - {residue}L, {slide}L)"
    classes = shape.instants.classes
    if classes == ((residue, slide),):
        if window.range_us >= slide:
            return f"sequence({first}, {last}, {slide}L)"
        # A window with gaps: an event between two instances is in none.
        return f"CASE WHEN {first} <= {last} THEN array({first}) ELSE array() END"
    parts = []
    for residue_, modulus in classes:
        low = f"{first} + pmod({residue_}L - ({first}), {modulus}L)"
        high = f"{last} + {slide - 1}L"
        parts.append(
            f"CASE WHEN {low} <= {high} AND {first} <= {last} "
            f"THEN sequence({low}, {high}, {modulus}L) ELSE cast(array() AS array<bigint>) END"
        )
    return f"array_distinct(concat({', '.join(parts)}))"
