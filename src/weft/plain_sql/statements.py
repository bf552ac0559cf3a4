"""Plans as plain SQL: text that any Spark session, or DuckDB, runs without weft.

The text has one common table expression per step of the plan: the events, the slices, the
fan-out of slices to windows, the windows. Tables of readings are VALUES, so one statement serves
any number of windows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from weft.engines.spark.native.levels import Level, Levels
from weft.engines.spark.sql.fan_out import FEEDER, NODE, START, FanOut, with_special
from weft.errors import QueryError, UnsupportedError
from weft.expression import column
from weft.plain_sql.partials import PLAIN_KINDS, PlainPartial, lowered
from weft.plan import Plan, Roll
from weft.plan.planned_scope import PlannedScope, planned_scopes
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot import exp

    from weft.aggregates import Partial
    from weft.engines.spark.sql.readings import Shape
    from weft.plan import Emit
    from weft.statistics import Statistics

Dialect = Literal["spark", "duckdb"]
_TIME = "event_us"


def rewrite(
    sql: str,
    dialect: Dialect = "spark",
    *,
    planner: str = "auto",
    statistics: Statistics | Mapping[str, Statistics] | None = None,
) -> str:
    """Return SQL that computes the same rows as the statement, all windows from shared slices.

    Tumbling and hopping windows with aggregates that SQL can combine. The event time is a
    timestamp with a zone (TIMESTAMP in Spark, TIMESTAMPTZ in DuckDB), and so are the bounds of
    windows. Several statements become several, separated by semicolons.

    >>> text = rewrite("SELECT device, COUNT(*) AS n FROM readings GROUP BY device, "
    ...                "window(ts, '1 minute')")
    >>> text.splitlines()[0], text.splitlines()[-1]
    ('WITH events AS (', '  ON node = number')
    """
    from weft.parsing import parse
    from weft.planners.portfolio import optimize

    if dialect not in get_args(Dialect):
        raise QueryError(
            f"unknown dialect {dialect!r}", hint=f"use one of {', '.join(get_args(Dialect))}"
        )
    # Statements run one by one, so one that kept events of others would read them in vain.
    plan = optimize(parse(sql), planner, "spark", statistics, filters="apart", key_sets="apart")
    texts = rewrite_plan(plan, dialect)
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"-- name: {name}\n{text};" for name, text in texts.items())


def rewrite_plan(plan: Plan, dialect: Dialect = "spark") -> dict[str, str]:
    """Return the SQL text of every query of a plan."""
    found: dict[str, str] = {}
    for scope in planned_scopes(plan):
        for query in scope.queries:
            own = PlannedScope(scope.scan, scope.keys, scope.emits_of(query))
            found[query] = in_dialect(PlainScope(own).text(), dialect)
    return {query.name: found[query.name] for query in plan.queries}


@dataclass(frozen=True)
class PlainScope:
    """A scope of a plan as steps of plain SQL, and the result of each of its queries."""

    scope: PlannedScope
    prefix: str = ""  # of the names of steps

    @cached_property
    def _names(self) -> dict[Partial, str]:
        return {partial: f"p{i}" for i, partial in enumerate(self.scope.partials)}

    @cached_property
    def _plain(self) -> dict[Partial, PlainPartial]:
        found: dict[Partial, PlainPartial] = {}
        for partial in self.scope.partials:
            plain = PLAIN_KINDS.get(partial.kind)
            if plain is None:
                raise UnsupportedError(
                    f"{partial} cannot be written as plain SQL",
                    hint="run the statement with weft.sql, which has every aggregate",
                )
            found[partial] = plain
        return found

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(f"k{i}" for i in range(len(self.scope.keys)))

    @cached_property
    def _arguments(self) -> dict[str, str]:
        texts = dict.fromkeys(a for p in self.scope.partials for a in p.reads)
        return {text: f"a{i}" for i, text in enumerate(texts)}

    @cached_property
    def _windows(self) -> dict[Shape, int]:
        windows = dict.fromkeys(roll.window for roll in self.scope.rolls)
        for window in windows:
            if not isinstance(window, PeriodicWindow):
                raise UnsupportedError(
                    f"{window} cannot be written as plain SQL",
                    hint="run the statement with weft.sql, which has every window",
                )
        if len(windows) < len(self.scope.rolls):
            raise UnsupportedError(
                "partials of one window that are computed apart cannot be written as plain SQL",
                hint="run the statement with weft.sql",
            )
        return {w: i for i, w in enumerate(windows) if isinstance(w, PeriodicWindow)}

    def text(self) -> str:
        """Return the statement of the only query, in Spark's dialect."""
        steps = self.steps()
        listed = ",\n".join(f"{name} AS (\n{sql}\n)" for name, sql in steps)
        return f"WITH {listed}\n{self.result(steps[-1][0], self.scope.emits)}"

    def steps(self) -> list[tuple[str, str]]:
        """Return the steps from events to the rows of all windows, by name."""
        windows, partials = self._windows, self._plain  # refuse first
        levels = list(Levels(self.scope.rolls, windows))
        steps = [(f"{self.prefix}events", self._events())]
        columns: tuple[str, ...] = (_TIME, *self._arguments.values())
        lifts = {
            name: sql
            for p, plain in partials.items()
            for name, sql in plain.lift(
                self._names[p], tuple(self._arguments[a] for a in p.reads), _TIME
            ).items()
        }
        for i, level in enumerate(levels, 1):
            steps += self._level(level, i, steps[-1][0], columns, lifts, last=i == len(levels))
            columns = tuple(lifts)
            lifts = {
                name: sql
                for p, plain in partials.items()
                for name, sql in plain.combine(self._names[p]).items()
            }
        return steps

    def _events(self) -> str:
        scan = self.scope.scan
        if scan.time is None:
            raise QueryError(
                f"the event time of {scan.source!r} is not named",
                hint="name it: window(ts, ...) or TIMESTAMP BY ts",
            )
        time = column(scan.time)
        keys = [f"{text} AS {k}" for k, (_, text) in zip(self._keys, self.scope.keys, strict=True)]
        arguments = [f"{text} AS {name}" for text, name in self._arguments.items()]
        times = [f"unix_micros({time}) AS {name}" for name in (_TIME, START)]
        listed = ", ".join([*keys, *times, *arguments])
        kept = f" AND ({scan.where})" if scan.where else ""
        return f"SELECT {listed} FROM {column(scan.source)} WHERE {time} IS NOT NULL{kept}"

    def _level(
        self,
        level: Level,
        number: int,
        source: str,
        kept: Sequence[str],
        aggregates: Mapping[str, str],
        *,
        last: bool,
    ) -> Iterator[tuple[str, str]]:
        """Fan rows out and aggregate them; yields named steps."""
        copies = f"{self.prefix}copies_{number}"
        yield copies, _fan_out(level, source, (*self._keys, *kept))
        by = ", ".join((*self._keys, NODE, START))
        if moments := kept_moments(kept):
            # The mean of each instance first: squared distances from it do not cancel digits.
            means = [
                f"sum({m}_n * {m}_mean) OVER (PARTITION BY {by}) / "
                f"nullif(sum({m}_n) OVER (PARTITION BY {by}), 0) AS {m}_centre"
                for m in moments
            ]
            centred = f"{self.prefix}centred_{number}"
            yield centred, f"SELECT *, {', '.join(means)} FROM {copies}"
            copies = centred
        node = NODE if last else f"{NODE} AS {FEEDER}"
        listed = ", ".join(
            [*self._keys, node, START, *(f"{sql} AS {name}" for name, sql in aggregates.items())]
        )
        yield f"{self.prefix}level_{number}", f"SELECT {listed} FROM {copies} GROUP BY {by}"

    def result(self, source: str, emits: Sequence[Emit]) -> str:
        """Return the SELECT of a query's rows from those of all windows."""
        first = emits[0]
        label, start, end = (column(name) for name in first.window_columns)
        lines = []
        for emit in emits:
            roll = emit.inputs[0]
            assert isinstance(roll, Roll)
            assert isinstance(roll.window, PeriodicWindow)
            quoted = emit.label.replace("\\", "\\\\").replace("'", "\\'")
            lines.append(f"({self._windows[roll.window]}, '{quoted}', {roll.window.range_us})")
        keys = [
            f"{k} AS {column(name)}"
            for k, (name, _) in zip(self._keys, self.scope.keys, strict=True)
        ]
        results = [
            f"{lowered(call, tuple(self._names[p] for p in call.partials))} AS {column(alias)}"
            for alias, call in first.outputs
        ]
        bounds = [
            f"label AS {label}",
            f"timestamp_micros({START}) AS {start}",
            f"timestamp_micros({START} + span) AS {end}",
        ]
        named = f"(VALUES {', '.join(lines)}) AS windows(number, label, span)"
        listed = ", ".join([*keys, *bounds, *results])
        own = "" if first.exists is None else f" WHERE {self._names[first.exists]} > 0"
        return f"SELECT {listed} FROM {source} JOIN {named} ON {NODE} = number{own}"


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
    start = with_special(plan.start, level.special)
    return f"SELECT {', '.join(kept)}, {node}, {start} AS {START} FROM {tables}{where}"


def in_dialect(text: str, dialect: Dialect) -> str:
    """Return text of Spark's dialect in another, laid out to be read."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(text, read="spark")
    assert isinstance(tree, exp.Query)
    # Plain SQL needs no suffix on a literal: what does not fit an integer is a bigint. Only the
    # first step, the events, holds expressions of the user's, and those stay as they are.
    for step in tree.ctes[1:]:
        for cast in [*step.find_all(exp.Cast)]:
            if cast.this.is_number and cast.is_type("bigint"):
                cast.replace(cast.this)
    if dialect == "duckdb":
        tree = tree.transform(_for_duckdb)
    return tree.sql(dialect=dialect, pretty=True)


def _for_duckdb(node: exp.Expr) -> exp.Expr:
    """Spell the functions that DuckDB has under another name, or not at all."""
    from sqlglot import exp

    if node.key == "fromjson":
        return exp.Array(expressions=[exp.Literal.number(n) for n in json.loads(node.this.name)])
    if not isinstance(node, exp.Anonymous):
        return node
    # What is put in place of a node is not looked at again, so its arguments are spelled first.
    arguments = [argument.transform(_for_duckdb) for argument in node.expressions]
    match node.name.lower(), arguments:
        case "pmod", [position, modulus]:
            position, modulus = _wrapped(position), _wrapped(modulus)
            positive = exp.Add(
                this=exp.paren(exp.Mod(this=position, expression=modulus)),
                expression=modulus.copy(),
            )
            return exp.paren(exp.Mod(this=exp.paren(positive), expression=modulus.copy()))
        case "timestamp_micros", _:
            return exp.Anonymous(this="make_timestamptz", expressions=arguments)
        case "get", [listed, position]:  # which counts from 0, and DuckDB from 1
            following = exp.Add(this=_wrapped(position), expression=exp.Literal.number(1))
            return exp.Anonymous(this="list_extract", expressions=[listed, following])
    return node


def _wrapped(node: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    return node if isinstance(node, exp.Column | exp.Literal | exp.Paren) else exp.paren(node)
