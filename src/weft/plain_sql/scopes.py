"""Scopes of a plan as steps of plain SQL: events, slices, the fan-out of slices, windows.

Tables of readings are VALUES, so the text hardly grows with the number of windows. Scopes that
regroup the slices of another one read the step that has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.engines.spark.native.levels import Level, Levels
from weft.engines.spark.sql.fan_out import FEEDER, NODE, START, FanOut, with_special
from weft.engines.spark.sql.instants import calendar_end
from weft.engines.spark.sql.readings import shapes_of
from weft.errors import QueryError, UnsupportedError
from weft.expression import column
from weft.plain_sql.partials import Columns, lowered, plain_of
from weft.plan import Roll
from weft.plan.planned_scope import PlannedScope, planned_scopes
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weft.aggregates import Partial
    from weft.engines.spark.sql.readings import Shape
    from weft.plain_sql.partials import Dialect, PlainPartial, Types
    from weft.plan import Emit, Plan, Scan
    from weft.query import Keys
    from weft.window import Window

TIME = "event_us"
Step = tuple[str, str]  # a name, and the query that it stands for


@dataclass(frozen=True)
class PlainScopes:
    """Scopes that read the same events under the same keys, and the result of each query."""

    scopes: tuple[PlannedScope, ...]
    dialect: Dialect
    prefix: str = ""  # of the names of steps
    types: Types | None = None  # of the time and of arguments, where they are known

    @staticmethod
    def of(
        plan: Plan, dialect: Dialect, prefix: str = "", types: Types | None = None
    ) -> list[PlainScopes]:
        """Cut a plan into scopes, those together of which one regroups slices of another."""
        found: dict[tuple[tuple[Scan, Keys], ...], list[PlannedScope]] = {}
        for scope in planned_scopes(plan):
            found.setdefault(scope.roots, []).append(scope)
        return [
            PlainScopes(tuple(scopes), dialect, f"{prefix}{at}_" if prefix else "", types)
            for at, scopes in enumerate(found.values())
        ]

    @cached_property
    def _root(self) -> tuple[Scan, Keys]:
        (root, *others) = self.scopes[0].roots
        if others:
            raise UnsupportedError(
                "windows of several key sets in one scope cannot be written as plain SQL",
                hint="run the statement with weft.sql",
            )
        return root

    @cached_property
    def _partials(self) -> dict[Partial, PlainPartial]:
        found = dict.fromkeys(p for scope in self.scopes for p in scope.partials)
        return {partial: plain_of(partial, self.dialect, self.types) for partial in found}

    @cached_property
    def _names(self) -> dict[Partial, str]:
        return {partial: f"p{i}" for i, partial in enumerate(self._partials)}

    @cached_property
    def _keys(self) -> dict[str, str]:
        """The column of each key, by its text."""
        return {text: f"k{i}" for i, (_, text) in enumerate(self._root[1])}

    @cached_property
    def _arguments(self) -> dict[str, str]:
        texts = dict.fromkeys(a for partial in self._partials for a in partial.reads)
        # A number that is written out stays one: functions of Spark ask for constants.
        return {text: text if text.isdigit() else f"a{i}" for i, text in enumerate(texts)}

    @cached_property
    def _levels(self) -> Levels:
        """The levels of all windows; the first is the same for all scopes."""
        rolls = tuple(roll for scope in self.scopes for roll in scope.rolls)
        for roll in rolls:
            check_window(roll.window, self.dialect)
        if any(len({r.window for r in s.rolls}) < len(s.rolls) for s in self.scopes):
            raise UnsupportedError(
                "partials of one window that are computed apart cannot be written as plain SQL",
                hint="run the statement with weft.sql",
            )
        shapes = dict.fromkeys(shape for roll in rolls for shape in shapes_of(roll.window))
        return Levels(rolls, {shape: i for i, shape in enumerate(shapes)})

    def text(self) -> str:
        """Return the statement of the only query, in Spark's dialect."""
        steps, ends = self.steps()
        listed = ",\n".join(f"{name} AS (\n{sql}\n)" for name, sql in steps)
        (scope,) = self.scopes
        return f"WITH {listed}\n{self.result(ends[0], scope.emits)}"

    def steps(self) -> tuple[list[Step], list[str]]:
        """Return the steps from events to the rows of all windows, and the last of each scope."""
        first, *_ = self._levels
        partials = self._partials
        lifts = [
            plain.lift(self._names[p], tuple(self._arguments[a] for a in p.reads), TIME)
            for p, plain in partials.items()
        ]
        events = f"{self.prefix}events"
        columns = (TIME, *(name for text, name in self._arguments.items() if text != name))
        alone = len(self.scopes) == 1
        last = alone and len(list(self._levels)) == 1
        keys = tuple(self._keys.values())
        steps = [(events, self._events())]
        steps += self._level(first, f"{self.prefix}{{}}_1", events, columns, keys, lifts, last=last)
        base, ends = steps[-1][0], []
        for number, scope in enumerate(self.scopes):
            own = f"{self.prefix}{{}}" if alone else f"{self.prefix}{{}}_{number}"
            more = list(self._above(scope, base, own))
            steps += more
            ends.append(more[-1][0] if more else base)
        return steps, ends

    def _above(self, scope: PlannedScope, base: str, named: str) -> Iterator[Step]:
        """Yield the steps of a scope over the rows that all scopes have made of events."""
        keys = tuple(self._keys[text] for _, text in scope.keys)
        source = base
        own = Levels(scope.rolls, self._levels.numbers, self._levels)
        needed, *levels = own
        if len(self.scopes) > 1 and not levels:
            raise UnsupportedError(
                "windows of events and of slices cannot be written together as plain SQL",
                hint="run the statement with weft.sql",
            )
        if needed.places < next(iter(self._levels)).places and levels:
            listed = ", ".join(map(str, sorted(needed.places)))
            source = f"(SELECT * FROM {base} WHERE {FEEDER} IN ({listed})) AS own_rows"
        made = [self._partials[p].combine(self._names[p]) for p in scope.partials]
        kept = tuple(name for columns in made for name in columns.finished)
        for number, level in enumerate(levels, 2):
            last = level is levels[-1]
            found = list(
                self._level(level, f"{named}_{number}", source, kept, keys, made, last=last)
            )
            yield from found
            source = found[-1][0]

    def _events(self) -> str:
        scan, _ = self._root
        if scan.time is None:
            raise QueryError(
                f"the event time of {scan.source!r} is not named",
                hint="name it: window(ts, ...) or TIMESTAMP BY ts",
            )
        keys = [f"{text} AS {name}" for text, name in self._keys.items()]
        arguments = [f"{t} AS {name}" for t, name in self._arguments.items() if t != name]
        times = [f"{self._micros(scan.time)} AS {name}" for name in (TIME, START)]
        listed = ", ".join([*keys, *times, *arguments])
        kept = f" AND ({scan.where})" if scan.where else ""
        time = column(scan.time)
        return f"SELECT {listed} FROM {column(scan.source)} WHERE {time} IS NOT NULL{kept}"

    def _micros(self, name: str) -> str:
        """Write the time of an event as a number."""
        time = column(name)
        if self.dialect != "spark":
            return f"unix_micros({time})"
        if self.types is None:
            told = f"give weft.rewrite the table as a DataFrame: {name} has no zone"
            known = f"typeof({time}) = 'timestamp_ntz'"
            wrong = f"raise_error('{told.replace(chr(39), '')}')"
            micros = f"unix_micros(CAST({time} AS TIMESTAMP))"
            return f"CASE WHEN {known} THEN {wrong} ELSE {micros} END"
        from weft.engines.spark.sql.timestamps import micros_of

        return micros_of(time, self.types[name], name)

    def _timestamp(self, micros: str) -> str:
        """Write a number as a time of the kind that events have."""
        name = self._root[0].time
        if self.types is None or name is None:
            return f"timestamp_micros({micros})"
        from weft.engines.spark.sql.timestamps import timestamp_of

        return timestamp_of(micros, self.types[name])

    def _level(
        self,
        level: Level,
        named: str,
        source: str,
        kept: Sequence[str],
        keys: Sequence[str],
        made: Sequence[Columns],
        *,
        last: bool,
    ) -> Iterator[Step]:
        """Fan rows out and aggregate them; yields named steps."""
        copies = named.format("copies")
        yield copies, _fan_out(level, source, (*keys, *kept))
        by = ", ".join((*keys, NODE, START))
        if moments := kept_moments(kept):
            # The mean of each instance first: squared distances from it do not cancel digits.
            means = [
                f"sum({m}_n * {m}_mean) OVER (PARTITION BY {by}) / "
                f"nullif(sum({m}_n) OVER (PARTITION BY {by}), 0) AS {m}_centre"
                for m in moments
            ]
            yield named.format("centred"), f"SELECT *, {', '.join(means)} FROM {copies}"
            copies = named.format("centred")
        node = NODE if last else f"{NODE} AS {FEEDER}"
        called = [f"{sql} AS {name}" for c in made for name, sql in c.aggregates.items()]
        rows = f"SELECT {', '.join([*keys, node, START, *called])} FROM {copies} GROUP BY {by}"
        finished = {name: sql for columns in made for name, sql in columns.finished.items()}
        if any(name != sql for name, sql in finished.items()):
            told = [NODE if last else FEEDER, START]
            listed = [*keys, *told, *(f"{sql} AS {name}" for name, sql in finished.items())]
            rows = f"SELECT {', '.join(listed)} FROM (\n{rows}\n) AS made"
        yield named.format("level"), rows

    def result(self, source: str, emits: Sequence[Emit]) -> str:
        """Return the SELECT of a query's rows from those of all windows."""
        first = emits[0]
        label, start, end = (column(name) for name in first.window_columns)
        lines, ends = [], []
        for emit in emits:
            roll = emit.inputs[0]
            assert isinstance(roll, Roll)
            quoted = emit.label.replace("\\", "\\\\").replace("'", "\\'")
            for shape in shapes_of(roll.window):
                number = self._levels.ids[roll, shape]
                lines.append(f"({number}, '{quoted}', {_range_us(shape)})")
                if isinstance(shape, CalendarWindow):
                    ends.append(f"WHEN {NODE} = {number} THEN {calendar_end(shape, START)}")
        keys = [f"{self._keys[text]} AS {column(name)}" for name, text in first.keys]
        results = [
            f"{self._lowered(alias, first)} AS {column(alias)}" for alias, _ in first.outputs
        ]
        until = f"{START} + span"
        if ends:
            until = f"CASE {' '.join(ends)} ELSE {until} END"
        bounds = [
            f"label AS {label}",
            f"{self._timestamp(START)} AS {start}",
            f"{self._timestamp(until)} AS {end}",
        ]
        named = f"(VALUES {', '.join(lines)}) AS windows(number, label, span)"
        listed = ", ".join([*keys, *bounds, *results])
        own = "" if first.exists is None else f" WHERE {self._names[first.exists]} > 0"
        return f"SELECT {listed} FROM {source} JOIN {named} ON {NODE} = number{own}"

    def _lowered(self, alias: str, emit: Emit) -> str:
        call = dict(emit.outputs)[alias]
        names = tuple(self._names[partial] for partial in call.partials)
        return lowered(call, names, self.dialect, self.types)


def check_window(window: Window, dialect: Dialect) -> None:
    """Refuse a window whose instances plain SQL cannot tell."""
    known = (PeriodicWindow, CumulatingWindow, CalendarWindow)
    if not isinstance(window, known if dialect == "spark" else PeriodicWindow):
        raise UnsupportedError(
            f"{window} cannot be written as plain SQL",
            hint="run the statement with weft.sql, which has every window",
        )


def _range_us(shape: Shape) -> int:
    return shape.range_us if isinstance(shape, PeriodicWindow) else 0


def kept_moments(columns: Sequence[str]) -> list[str]:
    """Name the moments among columns of partials.

    >>> kept_moments(["p0", "p1_n", "p1_mean", "p1_m2"])
    ['p1']
    """
    return [name.removesuffix("_m2") for name in columns if name.endswith("_m2")]


def _fan_out(level: Level, source: str, kept: Sequence[str]) -> str:
    plan = FanOut(level.readings)
    tables = source
    node = f"{plan.listed[0].node} AS {NODE}"
    if len(plan.listed) > 1:
        node = NODE
        several = len(plan.lines) > 1
        columns = (*((FEEDER,) if several else ()), *plan.columns)
        lines = [
            f"({', '.join(str(v) for v in ((feeder, *line) if several else line))})"
            for feeder, found in plan.lines.items()
            for line in found
        ]
        named = f"(VALUES {', '.join(lines)}) AS readings({', '.join(columns)})"
        join = f"JOIN {named} USING ({FEEDER})" if several else f"CROSS JOIN {named}"
        tables = f"{source} {join}"
    if plan.starts is not None:
        tables += f" LATERAL VIEW explode({plan.starts}) instances AS {plan.start}"
    conditions = [c for c in (plan.condition, plan.later_condition) if c is not None]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    special: Mapping[int, str] = level.special
    start = with_special(plan.start, special)
    if len(plan.listed) == 1:
        start = special.get(plan.listed[0].node, plan.start)
    return f"SELECT {', '.join(kept)}, {node}, {start} AS {START} FROM {tables}{where}"
