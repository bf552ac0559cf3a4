"""Queries of Spark SQL in the words of DuckDB: columns by place, names kept beside them.

Every column of every query is `c0`, `c1`, ... there. What a name of the statement means is decided
here, as Spark decides it, and never left to DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.calls import aggregates_in
from weft.statement.local.column_types import widest
from weft.statement.local.expressions import Expressions
from weft.statement.local.operators import comparable, orderable
from weft.statement.local.scope import Column, Field, Rows, Scope
from weft.statement.local.values import Value, cast
from weft.statement.projection import own_name
from weft.statement.relations import Obstacle, common_table
from weft.statement.syntax import ShortCast, written_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

_SELECT_PARTS = frozenset(
    {"with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "hint"}
    | {"order", "limit", "offset", "distinct", "qualify", "windows"}
)
_SET_WORDS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


@dataclass
class Queries:
    """Reads queries over tables; each WITH is written once, in front."""

    find: Callable[[str], Rows | None]  # a table by its name in lower case
    select: Callable[[Queries, exp.Select, Scope | None], Rows]  # reads one SELECT
    given: tuple[str, ...] = ()  # the names of tables, for who misspells one
    _definitions: dict[int, tuple[str, Rows]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def statement(self, tree: exp.Expr) -> Rows:
        """Read a whole statement."""
        rows = self.rows(tree, None)
        if not self._definitions:
            return rows
        listed = ", ".join(f"{name} AS ({made.sql})" for name, made in self._definitions.values())
        return Rows(f"WITH {listed} {rows.sql}", rows.columns)

    def rows(self, node: exp.Expr, outer: Scope | None) -> Rows:
        """Read a query, in the scope of the one around it."""
        if isinstance(node, exp.Select):
            refuse_parts(node, _SELECT_PARTS)
            return self.select(self, node, outer)
        if isinstance(node, exp.SetOperation):
            return self._set_rows(node, outer)
        if isinstance(node, exp.Subquery | exp.Paren):
            inner = self.rows(node.this, outer)
            return self._arranged(node, inner, outer)
        raise Obstacle(f"{written_of(node)} is not a query that is read here")

    def alias(self, prefix: str = "r") -> str:
        """Return a name that nothing else has."""
        return f"{prefix}{next(self._numbers)}"

    def _set_rows(self, node: exp.SetOperation, outer: Scope | None) -> Rows:
        word = _SET_WORDS.get(type(node))
        if word is None or node.args.get("by_name") or node.args.get("side"):
            raise Obstacle(f"{written_of(node)} is Spark's")
        sides = [self.rows(side, outer) for side in (node.this, node.expression)]
        left, right = sides
        if len(left.columns) != len(right.columns):
            raise Obstacle(f"{word} of {len(left.columns)} and {len(right.columns)} columns")
        kinds = [
            widest((a.type, b.type), word) for a, b in zip(left.columns, right.columns, strict=True)
        ]
        if node.args.get("distinct") or word != "UNION":
            for kind in kinds:
                comparable(kind, word)
        every = "" if node.args.get("distinct") else " ALL"
        made = f" {word}{every} ".join(f"({self._as(side, kinds)})" for side in sides)
        columns = zip(left.columns, kinds, strict=True)
        rows = Rows(made, tuple(Column(c.name, kind) for c, kind in columns))
        return self._arranged(node, rows, outer)

    def _as(self, rows: Rows, kinds: Sequence[pa.DataType]) -> str:
        if [column.type for column in rows.columns] == list(kinds):
            return rows.sql
        items = (
            f"{cast(Value(f'c{i}', column.type), kind).sql} AS c{i}"
            for i, (column, kind) in enumerate(zip(rows.columns, kinds, strict=True))
        )
        return f"SELECT {', '.join(items)} FROM ({rows.sql}) AS {self.alias()}"

    def _arranged(self, node: exp.Expr, rows: Rows, outer: Scope | None) -> Rows:
        """Order and cut the rows of a query by what stands behind it."""
        if not any(node.args.get(part) for part in ("order", "limit", "offset")):
            return rows
        alias = self.alias()
        scope = Scope(
            tuple(
                Field(Value(f"{alias}.c{i}", column.type, column.name))
                for i, column in enumerate(rows.columns)
            ),
            outer,
        )
        reader = Expressions(scope, self.rows)
        said = f"SELECT * FROM ({rows.sql}) AS {alias}"
        order = node.args.get("order")
        if order is not None:
            said += f" ORDER BY {', '.join(self._key(reader, key) for key in order.expressions)}"
        return Rows(said + cut(node), rows.columns)

    @staticmethod
    def _key(reader: Expressions, key: exp.Expr) -> str:
        place = position(key.this, len(reader.scope.fields))
        if place is None:
            return reader.ordered(key)
        value = reader.scope.fields[place].value
        orderable(value.type, "ORDER BY")
        return reader.ordered(key, sql=value.sql)

    def table(self, node: exp.Table) -> Rows:
        """Return the rows that a name stands for: a WITH of the statement, or a table."""
        definition = common_table(node) if not node.args.get("db") else None
        if definition is None:
            found = self.find(node.name.casefold()) if not node.args.get("db") else None
            if found is None:
                known = ", ".join(self.given) or "none"
                raise Obstacle(f"no table is named {written_of(node)}; given are {known}")
            return found
        if id(definition) not in self._definitions:
            made = renamed(self.rows(definition.this, None), definition.args["alias"])
            self._definitions[id(definition)] = (self.alias("w"), made)
        name, made = self._definitions[id(definition)]
        return Rows(f"SELECT * FROM {name}", made.columns)


def refuse_parts(node: exp.Expr, known: frozenset[str]) -> None:
    """Refuse clauses that are not read here."""
    for part, value in node.args.items():
        if value and part not in known:
            raise Obstacle(f"{part.rstrip('_').upper()} is Spark's")


def cut(node: exp.Expr) -> str:
    """Write LIMIT and OFFSET."""
    said = ""
    for part in ("limit", "offset"):
        clause = node.args.get(part)
        if clause is not None:
            written = written_of(clause.expression)
            if not written.isdigit():
                raise Obstacle(f"{part.upper()} {written} is not written out")
            said += f" {part.upper()} {written}"
    return said


def position(node: exp.Expr, columns: int) -> int | None:
    """Return the place that an integer of GROUP BY or ORDER BY stands for, counted from 0."""
    if not isinstance(node, exp.Literal) or not str(node.this).isdigit():
        return None
    place = int(str(node.this))
    if not 1 <= place <= columns:
        raise Obstacle(f"position {place} is none of {columns} columns")
    return place - 1


def renamed(rows: Rows, alias: exp.Expr | None) -> Rows:
    """Return rows under the names that an alias gives their columns."""
    names = [column.name for column in (alias.args.get("columns") or ())] if alias else []
    if not names:
        return rows
    if len(names) != len(rows.columns):
        raise Obstacle(f"{len(names)} names for {len(rows.columns)} columns")
    pairs = zip(names, rows.columns, strict=True)
    return Rows(rows.sql, tuple(Column(name, column.type) for name, column in pairs))


def item_name(item: exp.Expr, value: Value) -> str | None:
    """Return the name of a column of SELECT: its own, or the one that Spark makes."""
    known = own_name(item)
    inner = item.this if isinstance(item, exp.Cast | ShortCast) else None
    if known is None and isinstance(inner, exp.Column):
        # A column that is cast keeps its name; what is named of a struct that is cast, Spark knows.
        return inner.name if len(inner.parts) == 1 else None
    return known or value.name


def has_aggregates(nodes: Sequence[exp.Expr]) -> bool:
    """Tell whether an aggregate stands among expressions."""
    return any(aggregates_in(node) for node in nodes)
