"""The columns a statement may read, and the expressions it may compute over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp

from weft.aggregates.base import function_names
from weft.aggregates.names import AGGREGATE_SYNONYMS, aggregate_name
from weft.errors import suggest
from weft.expression import SCALAR_FUNCTIONS, canonical, spelled
from weft.parsing.dialect import SCALAR_CALL
from weft.parsing.names import WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Collection

    from weft.errors import QueryError
    from weft.parsing.script import Script

_OPERATORS = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren),
    *(exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.DPipe, exp.Concat),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not),
    *(exp.NullSafeEQ, exp.IntDiv),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.Escape, exp.Case, exp.If),
    *(exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam),
    exp.TsOrDsToDate,  # sqlglot puts it inside YEAR, MONTH and DAY and never prints it
)
_TYPES = {
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("TEXT", "VARCHAR", "CHAR", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ"),
}


@dataclass(frozen=True, slots=True)
class Source:
    """A table of FROM: its name, the name it goes by, and its columns where they are known."""

    name: str
    alias: str
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The sources of one statement; it resolves columns and checks expressions."""

    script: Script
    sources: tuple[Source, ...]

    def scalar(self, node: exp.Expr, role: str) -> str:
        """Check an expression over events, resolve its columns, return its canonical text.

        Columns of the only source lose their qualifier; those of a join all have one.
        """
        for inner in node.dfs():
            self._check(inner, role)
        for column in list(node.find_all(exp.Column)):
            self.resolve(column)
        with self.script.located(node):
            return canonical(spelled(node))

    def resolve(self, column: exp.Column) -> Source:
        """Find the source of a column and spell the column as this scope spells it."""
        source = self._source_of(column)
        if source.columns is not None and column.name not in source.columns:
            raise self.missing_column(column, source)
        column.update_positions(column.args.get("table") or column.this)
        qualifier = exp.to_identifier(source.alias) if len(self.sources) > 1 else None
        column.set("table", qualifier)
        return source

    def missing_column(self, column: exp.Column, source: Source) -> QueryError:
        """Build the error for a column that its source does not have."""
        names = list(source.columns or ())
        return self.script.error(
            f"{source.name} has no column {column.name!r}",
            hint=suggest(column.name, names, f"its columns are {', '.join(names) or 'none'}"),
            at=column.this,
        )

    def owners(self, name: str) -> list[Source]:
        """List the sources that may own a column written without its source."""
        if len(self.sources) == 1:
            return list(self.sources)
        return [s for s in self.sources if s.columns is None or name in s.columns]

    def has_column(self, name: str) -> bool:
        """Tell whether a source is known to have a column of this name."""
        return any(name in (source.columns or ()) for source in self.sources)

    def aliases(self, node: exp.Expr) -> tuple[str, ...]:
        """List the sources that an expression of a join reads, once its columns are resolved."""
        return tuple(dict.fromkeys(column.table for column in node.find_all(exp.Column)))

    def _source_of(self, column: exp.Column) -> Source:
        if column.args.get("db") is not None:
            raise self._unknown_source(column, column.parts[0].name)
        if column.table:
            for source in self.sources:
                if column.table.casefold() == source.alias.casefold():
                    return source
            raise self._unknown_source(column, column.table)
        owners = self.owners(column.name)
        if len(owners) == 1:
            return owners[0]
        choices = " or ".join(f"{s.alias}.{column.name}" for s in owners or self.sources)
        raise self.script.error(
            f"column {column.name!r} could be of any source of this join",
            hint=f"write {choices}",
            at=column,
        )

    def _unknown_source(self, column: exp.Column, qualifier: str) -> QueryError:
        if qualifier.casefold() in ("window", "session_window", "system"):
            return self.script.error(
                f"{spelled(column)} is known only once a window is complete",
                hint="select it by itself; it cannot be computed with, filtered or grouped by",
                at=column,
            )
        known = [source.alias for source in self.sources]
        otherwise = f"the sources are {', '.join(known)}; fields of structs are not read"
        return self.script.error(
            f"no source of this query is called {qualifier!r}",
            hint=suggest(qualifier, known, otherwise),
            at=column,
        )

    def _check(self, node: exp.Expr, role: str) -> None:
        if isinstance(node, exp.Anonymous):
            self._refuse_call(node, role)
        if isinstance(node, exp.DataType) and node.this.name not in _TYPES:
            raise self.script.error(
                f"cannot cast to {spelled(node)}",
                hint="cast to INT, BIGINT, DOUBLE, DECIMAL(p, s), STRING, BOOLEAN, DATE "
                "or TIMESTAMP",
                at=node,
            )
        if not isinstance(node, _OPERATORS) and SCALAR_CALL not in node.meta:
            self._refuse(node)

    def _refuse_call(self, call: exp.Anonymous, role: str) -> NoReturn:
        if aggregate_name(call.name) is not None:
            inside = role == "argument"
            raise self.script.error(
                f"{call.name} is an aggregate inside another one"
                if inside
                else f"{call.name} is an aggregate and cannot stand in a {role}",
                hint="an aggregate takes columns of events"
                if inside
                else f"compute the {role} from the columns of events",
                at=call,
            )
        if call.name.casefold() in WINDOW_FUNCTIONS:
            raise self.script.error(
                f"{call.name}(...) is a window and cannot stand in a {role}",
                hint="put it in GROUP BY, by itself or inside Windows(...)",
                at=call,
            )
        raise unknown_function(self.script, call, SCALAR_FUNCTIONS)

    def _refuse(self, node: exp.Expr) -> NoReturn:
        hint = "use columns, literals, operators, CASE, CAST and the functions of docs/sql.md"
        match node:
            case exp.Query() | exp.Exists() | exp.Any() | exp.All():
                message = "subqueries are not supported"
                hint = "make it a statement or a table of its own"
            case exp.Window():
                message = "OVER is not supported: windows stand in GROUP BY"
                hint = "group by a window, such as window(ts, '20 minutes')"
            case exp.Star():
                message = "* stands only in COUNT(*)"
                hint = "name the columns"
            case _:
                message = f"cannot compute {spelled(node)}"
        raise self.script.error(message, hint=hint, at=node)


def unknown_function(script: Script, call: exp.Anonymous, known: Collection[str]) -> QueryError:
    """Build the error for a call that nobody answers, with the nearest name as a hint."""
    names = [*known, *AGGREGATE_SYNONYMS, *function_names(), *WINDOW_FUNCTIONS.values()]
    return script.error(
        f"unknown function {call.name!r}",
        hint=suggest(call.name, names, "docs/sql.md lists the functions"),
        at=call,
    )


def comparable(node: exp.Expr) -> str:
    """Spell a resolved expression so that equal ones are equal texts, whatever their case."""
    folded = node.copy()
    for name in folded.find_all(exp.Identifier):
        name.set("this", name.name.casefold())
        name.set("quoted", False)
    return spelled(folded)
