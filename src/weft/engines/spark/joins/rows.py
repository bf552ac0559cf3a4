"""Rows of a join on Spark: what inputs, alone or matched, bring to it, and when that counts.

A row has values of join variables, grouping columns, partials and a count of the tuples behind it.
It counts during a span of time, or at one instant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, FloatType

from weft.aggregates import Partial
from weft.engines.spark.joins.row_set import INSTANT, Rows
from weft.engines.spark.joins.spans import instants_during, next_instant, span_of
from weft.engines.spark.sql.instants import floor_to
from weft.engines.spark.sql.kinds import SPARK_KINDS
from weft.engines.spark.sql.partials import sum_type
from weft.engines.spark.sql.timestamps import micros_of
from weft.errors import InternalError
from weft.expression import column
from weft.plan import Slice
from weft.plan.joins import JOINT, JoinShape, merged_name
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from weft.engines.spark.joins.mode import Running
    from weft.plan import Join

SLICE, COUNT = "slice", "n"
COUNT_ROWS = Partial("count_rows", ())


@dataclass(frozen=True)
class JoinRows:
    """Makes the rows of one join: of its inputs, of matches, and of groups of them.

    Columns of different inputs have different names, so that no match has to rename them.
    """

    join: Join
    shape: JoinShape
    sources: Mapping[str, DataFrame]
    variable_types: tuple[str, ...]  # in which the variables are compared, as SQL names them
    running: Running

    def of_input(self, side: int) -> Rows:
        """Read an input: every tuple, or a row per (group, join value, slice) where it is early."""
        given, own = self.join.sides[side], self.shape.partials_of(side)
        keys, when, count = tuple(self._keys(side)), self._when(side), f"n_{side}"
        if isinstance(given.input, Slice):
            node = given.input
            sliced = self.running.shared(node, lambda: self._sliced(side, node))
            names = {COUNT_ROWS: count, **{p: self.partial_name(side, p) for p in own}}
            picked = [f"p{node.partials.index(p)} AS {name}" for p, name in names.items()]
            frame = sliced.selectExpr(*keys, *self._spans(side, SLICE), *picked)
            return self._lasting(Rows(frame, (side,), keys, count, when, True))
        spans = self._spans(side, self._micros(side))
        if not given.early:
            single = [f"{self._single(side, p)} AS {self.partial_name(side, p)}" for p in own]
            frame = self._events(side, [*spans, *single])
            return self._lasting(Rows(frame, (side,), keys, None, when))
        events = self._events(side, [*spans, *_named_arguments(own)])
        timed = self._lasting(Rows(events, (side,), keys, None, when)).frame
        made = _lifted(own, [self.partial_name(side, p) for p in own])
        frame = self.running.grouped(timed, keys, when, [*made, _counted(count)])
        return Rows(frame, (side,), keys, count, when, True)

    def matched(self, left: Rows, right: Rows) -> Rows:
        """Match rows of an input with those before; their spans, or instants, meet."""
        shared = [key for key in right.keys if key in left.keys]
        own = [left.count] if left.count else []
        theirs = [right.count] if right.count else []
        when = list(left.when)
        if right.at_instants:
            frame = self.running.at_instants(left.frame, right.frame, shared)
        elif right.when:
            frame = self.running.since(left, right, shared)
            if not left.at_instants:
                when[0] = f"greatest({when[0]}, {right.when[0]}) AS {when[0]}"
        else:
            frame = left.frame.join(right.frame, shared)
        partials = [
            *(f"{self._weighted(s, p, theirs)} AS {n}" for s, p, n in self._partials(left.sides)),
            *(f"{self._weighted(s, p, own)} AS {n}" for s, p, n in self._partials(right.sides)),
        ]
        count = left.count or right.count
        counted = [f"{' * '.join([*own, *theirs])} AS {count}"] if count else []
        keys = tuple(dict.fromkeys((*left.keys, *right.keys)))
        matched = Rows(
            frame.selectExpr(*keys, *when, *partials, *counted),
            (*left.sides, *right.sides),
            keys,
            count,
            left.when,
            left.early or right.early,
        )
        return self._lasting(matched) if right.when and not right.at_instants else matched

    def completed(self, rows: Rows) -> Rows:
        """Compute what reads columns of several inputs, once all are matched."""
        joint = self.shape.partials_of(JOINT)
        keys = tuple(key for key in rows.keys if key.startswith("g"))
        if not joint:
            return replace(rows, keys=keys)
        weights = [rows.count] if rows.count else []
        made = [
            f"{self._weighted(JOINT, p, weights, self._single(JOINT, p))}"
            f" AS {self.partial_name(JOINT, p)}"
            for p in joint
        ]
        others = [name for _, _, name in self._partials(rows.sides)]
        frame = rows.frame.selectExpr(*keys, *rows.when, *others, *made, *weights)
        return replace(rows, frame=frame, sides=(*rows.sides, JOINT), keys=keys)

    def grouped(self, rows: Rows, keys: Sequence[str]) -> Rows:
        """Aggregate rows by some of their keys, and when they count."""
        combined = [
            made
            for side, p, name in self._partials(rows.sides)
            for made in SPARK_KINDS[p.kind].combine(name, (self.argument_type(side, p),)).columns()
        ]
        count = rows.count or COUNT
        counts = f"coalesce(sum({count}), 0L)" if rows.count else "count(1)"
        made = [*combined, F.expr(counts).alias(count)]
        frame = self.running.grouped(rows.frame, keys, rows.when, made)
        return replace(rows, frame=frame, count=count, keys=tuple(keys))

    def fanned_out(self, rows: Rows) -> Rows:
        """Copy rows to every instant at which they count."""
        names = [name for _, _, name in self._partials(rows.sides)]
        counts = [rows.count] if rows.count else []
        instants = instants_during(self.shape.instants.classes, *rows.when)
        frame = rows.frame.selectExpr(
            *rows.keys, *names, *counts, f"explode({instants}) AS {INSTANT}"
        )
        return replace(rows, frame=frame, when=(INSTANT,))

    def keys_before(self, rows: Rows, others: Sequence[int]) -> list[str]:
        """List the keys of rows that matching them with others still needs."""
        wanted = {f"v{v}" for side in others for v in self.shape.variables_of(side)}
        return [key for key in rows.keys if not key.startswith("v") or key in wanted]

    def argument_type(self, side: int, partial: Partial) -> DataType:
        """Return the type of what a partial folds."""
        known = self._argument_types.get((side, partial.args[0]))
        if known is None:
            raise InternalError(f"{partial} of a join has an argument of no known type")
        return known

    def partial_name(self, side: int, partial: Partial) -> str:
        """Name the column of a partial."""
        owner = "joint" if side == JOINT else f"s{side}"
        return f"{owner}_p{self.shape.partials_of(side).index(partial)}"

    @cached_property
    def _argument_types(self) -> dict[tuple[int, str], DataType]:
        found: dict[tuple[int, str], DataType] = {}
        for side in (*range(len(self.shape.aliases)), JOINT):
            texts = list(dict.fromkeys(a for p in self.shape.partials_of(side) for a in p.args))
            if not texts:
                continue
            source = self._all_columns() if side == JOINT else self._source(side)
            # To ask Spark takes time, and mostly it is asked for columns.
            known = {column(field.name): field.dataType for field in source.schema}
            if not set(texts) <= set(known):
                asked = source.selectExpr(*(f"{t} AS a{i}" for i, t in enumerate(texts))).schema
                known = {t: asked[f"a{i}"].dataType for i, t in enumerate(texts)}
            found |= {(side, text): known[text] for text in texts}
        return found

    def _all_columns(self) -> DataFrame:
        """The columns that aggregates over several inputs read, side by side; only for types."""
        frames = [
            self._source(side).selectExpr(*(f"{c} AS {m}" for c, m in carried.items()))
            for side in range(len(self.shape.aliases))
            if (carried := self._carried(side))
        ]
        first, *others = frames
        for other in others:
            first = first.crossJoin(other)
        return first

    def _source(self, side: int) -> DataFrame:
        return self.sources[self.join.sides[side].scan.source]

    def _partials(self, sides: Sequence[int]) -> list[tuple[int, Partial, str]]:
        return [
            (side, p, self.partial_name(side, p))
            for side in sides
            for p in self.shape.partials_of(side)
        ]

    def _keys(self, side: int) -> list[str]:
        groups = [f"g{at}" for at, key in enumerate(self.shape.keys) if key.side == side]
        variables = [f"v{v}" for v in self.shape.variables_of(side)]
        return [*variables, *groups, *self._carried(side).values()]

    def _carried(self, side: int) -> dict[str, str]:
        alias = self.shape.aliases[side]
        return {
            column(name): f"`{merged_name(alias, name).replace('`', '``')}`"
            for name in self.shape.carried_columns(side)
        }

    def _when(self, side: int) -> tuple[str, ...]:
        window = self.shape.windows[side]
        if window is None:
            return ()
        since, until = f"since_{side}", f"until_{side}"
        return (since, until) if isinstance(window, PeriodicWindow) else (since,)

    def _spans(self, side: int, time: str) -> list[str]:
        window = self.shape.windows[side]
        if window is None:
            return []
        if isinstance(window, PeriodicWindow):
            texts: tuple[str, ...] = span_of(window, time)
        else:
            texts = (next_instant(self.shape.instants.classes, time),)
        return [f"{text} AS {name}" for text, name in zip(texts, self._when(side), strict=True)]

    def _lasting(self, rows: Rows) -> Rows:
        """Drop rows that never count: between two instances, or of no common instant."""
        if len(rows.when) != 2:
            return rows
        (side, *others) = rows.sides
        window = self.shape.windows[side]
        assert isinstance(window, PeriodicWindow)
        if not others and window.range_us >= window.slide_us:
            return rows
        since, until = rows.when
        return replace(rows, frame=rows.frame.where(f"{since} < {until}"))

    def _sliced(self, side: int, node: Slice) -> DataFrame:
        """Aggregate an input by the slices that several joins read."""
        time = self._micros(side)
        floors = [floor_to(time, residue, modulus) for residue, modulus in node.edges.classes]
        start = floors[0] if len(floors) == 1 else f"greatest({', '.join(floors)})"
        events = self._events(side, [f"{start} AS {SLICE}", *_named_arguments(node.partials)])
        made = _lifted(node.partials, [f"p{at}" for at in range(len(node.partials))])
        return self.running.sliced(events, self._keys(side), SLICE, made, node.edges.classes)

    def _micros(self, side: int) -> str:
        """Return the time of a tuple as text; of a table's none is read."""
        scan = self.join.sides[side].scan
        if self.shape.windows[side] is None:
            return ""
        if scan.time is None:
            raise InternalError(f"the time column of {scan.source!r} was not looked up")
        type = self._source(side).schema[scan.time].dataType
        return f"({micros_of(column(scan.time), type, scan.time)})"

    def _events(self, side: int, more: Sequence[str]) -> DataFrame:
        """Filter an input; name its variables and groups, and compute what else is asked."""
        given = self.join.sides[side]
        source = self.running.source(self._source(side), given.scan)
        tests = [] if given.scan.where is None else [f"({given.scan.where})"]
        picked: list[str] = []
        for v in self.shape.variables_of(side):
            first, *others = self.shape.variables[v][side]
            tests.append(f"{first} IS NOT NULL")
            tests += [f"{first} = {other}" for other in others]
            picked.append(f"cast({first} AS {self.variable_types[v]}) AS v{v}")
        if given.window is not None and given.scan.time is not None:
            tests.append(f"{column(given.scan.time)} IS NOT NULL")
        picked += [
            f"{key.text} AS g{at}" for at, key in enumerate(self.shape.keys) if key.side == side
        ]
        picked += [f"{name} AS {merged}" for name, merged in self._carried(side).items()]
        return self.running.plain(source.where(" AND ".join(tests)), [*picked, *more])

    def _single(self, side: int, partial: Partial) -> str:
        """Return one tuple, or match, as a partial."""
        argument = f"({partial.args[0]})"
        if partial.kind == "sum" and isinstance(self.argument_type(side, partial), FloatType):
            return f"cast({argument} AS double)"  # counts would be rounded to floats, too
        form = SPARK_KINDS[partial.kind].one_event
        assert form is not None  # `unsupported_joins` names the others
        return form.format(x=argument)

    def _weighted(
        self, side: int, partial: Partial, weights: Sequence[str], value: str | None = None
    ) -> str:
        """Count a partial as often as its partners have tuples; a minimum stays what it is."""
        own = value or self.partial_name(side, partial)
        if not SPARK_KINDS[partial.kind].added or not weights:
            return own
        product = " * ".join([f"({own})", *weights])
        type = self.argument_type(side, partial)
        if isinstance(type, DecimalType) and partial.kind == "sum":
            return f"cast({product} AS {sum_type(type).simpleString()})"
        return product


def _counted(name: str) -> Column:
    return F.expr("count(1)").alias(name)


def _texts(partials: Sequence[Partial]) -> list[str]:
    return list(dict.fromkeys(text for partial in partials for text in partial.args))


def _named_arguments(partials: Sequence[Partial]) -> list[str]:
    """Name what partials fold, each expression once."""
    return [f"{text} AS a{at}" for at, text in enumerate(_texts(partials))]


def _lifted(partials: Sequence[Partial], names: Sequence[str]) -> list[Column]:
    """Fold named arguments into partials. None of those that can be repeated asks for times."""
    texts = _texts(partials)
    return [
        made
        for partial, name in zip(partials, names, strict=True)
        for made in SPARK_KINDS[partial.kind]
        .lift(name, tuple(f"a{texts.index(text)}" for text in partial.args), "NULL")
        .columns()
    ]
