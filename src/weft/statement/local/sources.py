"""FROM: tables, subqueries, joins, LATERAL VIEW, PIVOT and UNPIVOT, and the columns they offer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weft.statement.local.aggregates import aggregated
from weft.statement.local.column_types import widest
from weft.statement.local.expressions import Expressions
from weft.statement.local.literals import literal
from weft.statement.local.operators import alike, comparable, comparison
from weft.statement.local.queries import Queries, refuse_parts, renamed
from weft.statement.local.scope import Column, Field, Rows, Scope
from weft.statement.local.values import Value, cast, text, together
from weft.statement.relations import Obstacle
from weft.statement.syntax import is_call, written_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLE_PARTS = frozenset({"this", "alias", "db", "joins", "pivots"})
_JOIN_PARTS = frozenset({"this", "side", "kind", "on", "using", "pivots"})
_SUBQUERY_PARTS = frozenset({"this", "alias", "joins", "pivots", "order", "limit", "offset"})
_PIVOTED = ("sum", "min", "max", "avg")  # of no rows they are NULL, as Spark has it


@dataclass(frozen=True)
class Source:
    """What FROM says, and the columns that it offers."""

    sql: str
    fields: tuple[Field, ...]


def source_of(queries: Queries, select: exp.Select, outer: Scope | None) -> Source | None:
    """Read FROM with its joins and lateral views; None where there is none."""
    start = select.args.get("from_")
    if start is None:
        return None
    found = _relation(queries, start.this, outer)
    for join in (*(start.this.args.get("joins") or ()), *(select.args.get("joins") or ())):
        found = _joined(queries, found, join, outer)
    for view in select.args.get("laterals") or ():
        found = _exploded(queries, found, view, outer)
    return found


def _relation(queries: Queries, node: exp.Expr, outer: Scope | None) -> Source:
    named = node.args.get("alias")
    if isinstance(node, exp.Table):
        refuse_parts(node, _TABLE_PARTS)
        rows = queries.table(node)
        alias = named.name if named is not None else node.name
    elif isinstance(node, exp.Subquery):
        refuse_parts(node, _SUBQUERY_PARTS)
        rows = queries.rows(node, None)
        alias = named.name if named is not None else ""
    elif isinstance(node, exp.Values):
        rows = _values(queries, node)
        alias = named.name if named is not None else ""
    else:
        raise Obstacle(f"{written_of(node)} is not a table that is read here")
    for pivot in node.args.get("pivots") or ():
        rows = (
            _unpivoted(queries, rows, pivot)
            if pivot.args.get("unpivot")
            else _pivoted(queries, rows, pivot)
        )
    return _aliased(queries, renamed(rows, named), alias)


def _values(queries: Queries, node: exp.Expr) -> Rows:
    """Read VALUES: rows that are written out."""
    reader = Expressions(Scope(), queries.rows)
    lines = [v.expressions if isinstance(v, exp.Tuple) else [v] for v in node.expressions]
    if len({len(line) for line in lines}) != 1:
        raise Obstacle("the rows of VALUES have different numbers of columns")
    columns = [
        together([reader.value(v) for v in column], "VALUES") for column in zip(*lines, strict=True)
    ]
    selects = (
        "SELECT " + ", ".join(f"{column[at].sql} AS c{i}" for i, column in enumerate(columns))
        for at in range(len(lines))
    )
    named = tuple(Column(f"col{i}", column[0].type) for i, column in enumerate(columns, 1))
    return Rows(" UNION ALL ".join(selects), named)


def _aliased(queries: Queries, rows: Rows, alias: str) -> Source:
    own = queries.alias()
    fields = (
        Field(Value(f"{own}.c{i}", column.type, column.name), alias.casefold() or None)
        for i, column in enumerate(rows.columns)
    )
    return Source(f"({rows.sql}) AS {own}", tuple(fields))


def _joined(queries: Queries, left: Source, join: exp.Expr, outer: Scope | None) -> Source:
    refuse_parts(join, _JOIN_PARTS)
    side, kind = (str(join.args.get(part) or "").upper() for part in ("side", "kind"))
    if (side, kind) not in _KINDS:
        raise Obstacle(f"{side} {kind} JOIN is Spark's")
    word = _KINDS[side, kind]
    right = _relation(queries, join.this, outer)
    pivots = join.args.get("pivots")
    if pivots:
        raise Obstacle("PIVOT behind a join is Spark's")
    fields = left.fields + right.fields
    condition = join.args.get("on")
    using = [name.name for name in join.args.get("using") or ()]
    if using:
        return _by_names(left, right, using, side, word)
    if condition is None:
        if word not in ("INNER JOIN", "CROSS JOIN"):
            raise Obstacle(f"{word} without a condition is Spark's")
        return Source(f"{left.sql} CROSS JOIN {right.sql}", fields)
    reader = Expressions(Scope(fields, outer), queries.rows)
    made = f"{left.sql} {word} {right.sql} ON {reader.condition(condition)}"
    return Source(made, left.fields if word in _HALVES else fields)


_KINDS = {
    ("", ""): "INNER JOIN",
    ("", "INNER"): "INNER JOIN",
    ("", "CROSS"): "CROSS JOIN",
    **{
        (side, kind): f"{side} JOIN" for side in ("LEFT", "RIGHT", "FULL") for kind in ("", "OUTER")
    },
    ("LEFT", "SEMI"): "SEMI JOIN",
    ("", "SEMI"): "SEMI JOIN",
    ("LEFT", "ANTI"): "ANTI JOIN",
    ("", "ANTI"): "ANTI JOIN",
}
_HALVES = ("SEMI JOIN", "ANTI JOIN")


def _by_names(left: Source, right: Source, names: Sequence[str], side: str, word: str) -> Source:
    """Join by USING: its columns come first and once, and stay under the aliases of tables."""
    ties, first, hidden = [], [], []
    for name in names:
        one, two = _first(left, name), _first(right, name)
        ties.append(comparison("=", one, two).sql)
        a, b = alike(one, two, "USING")
        merged = {"RIGHT": b.sql, "FULL": f"coalesce({a.sql}, {b.sql})"}.get(side, a.sql)
        kind = a.type
        first.append(Field(Value(merged, kind, one.name)))
        hidden += [one.sql, two.sql]
    others = [f for f in (*left.fields, *right.fields) if f.value.sql not in hidden]
    kept = [replace(f, hidden=True) for f in (*left.fields, *right.fields) if f.value.sql in hidden]
    made = f"{left.sql} {word} {right.sql} ON {' AND '.join(ties)}"
    if word in _HALVES:
        return Source(made, left.fields)
    return Source(made, (*first, *others, *kept))


def _first(source: Source, name: str) -> Value:
    """Return the first column of a name, which is the one that USING takes."""
    own = [f for f in source.fields if not f.hidden]
    named = [f for f in own if (f.name or "").casefold() == name.casefold()]
    return Scope(tuple(named[:1])).lookup([name])


def _exploded(queries: Queries, left: Source, view: exp.Expr, outer: Scope | None) -> Source:
    """Read LATERAL VIEW: a row for each item of an array; OUTER keeps rows that have none."""
    call = view.this
    places = is_call(call, "posexplode", "posexplode_outer")
    if not (places or is_call(call, "explode", "explode_outer")):
        raise Obstacle(f"LATERAL VIEW {written_of(call)} is Spark's")
    items = Expressions(Scope(left.fields, outer), queries.rows).value(call.expressions[0])
    if not pa.types.is_list(items.type):
        raise Obstacle(f"LATERAL VIEW {written_of(call)} is not of an array")
    own = queries.alias()
    listed = f"unnest({items.sql}) AS c{int(places)}"
    kinds = [items.type.value_type]
    if places:
        listed = f"CAST(generate_subscripts({items.sql}, 1) - 1 AS INTEGER) AS c0, {listed}"
        kinds = [pa.int32(), *kinds]
    alias = view.args["alias"]
    names = [column.name for column in alias.args.get("columns") or ()]
    if len(names) != len(kinds):
        names = ["pos", "col"] if places else ["col"]
    outside = bool(view.args.get("outer")) or str(call.this).casefold().endswith("_outer")
    word = "LEFT JOIN" if outside else "INNER JOIN"
    fields = tuple(
        Field(Value(f"{own}.c{i}", kind, name), alias.name.casefold() or None)
        for i, (kind, name) in enumerate(zip(kinds, names, strict=True))
    )
    made = f"{left.sql} {word} LATERAL (SELECT {listed}) AS {own} ON TRUE"
    return Source(made, left.fields + fields)


def _pivoted(queries: Queries, rows: Rows, pivot: exp.Expr) -> Rows:
    """Read PIVOT: a column for each value that is written out; the rest is grouped by."""
    (call, *more), (over, *others) = pivot.expressions, pivot.args["fields"]
    call = call.unalias()
    if more or others or not is_call(call, *_PIVOTED) or pivot.args.get("alias"):
        raise Obstacle("PIVOT by several aggregates, columns, or this aggregate is Spark's")
    source = _aliased(queries, rows, "")
    reader = Expressions(Scope(source.fields), queries.rows)
    told, argument = reader.value(over.this), reader.value(call.expressions[0])
    used = {value.sql for value in (told, *(reader.value(c) for c in call.find_all(exp.Column)))}
    keys = [f.value for f in source.fields if f.value.sql not in used]
    columns = [Column(key.name, key.type) for key in keys]
    items = [key.sql for key in keys]
    for key in keys:
        comparable(key.type, "PIVOT")
    for wanted in over.expressions:
        value = literal(wanted.this if isinstance(wanted, exp.PivotAlias) else wanted)
        name = wanted.args["alias"].name if isinstance(wanted, exp.PivotAlias) else value.name
        kept = f" FILTER (WHERE {comparison('=', told, value).sql})"
        made = aggregated(str(call.this).casefold(), [argument], False, kept)
        items.append(made.sql)
        columns.append(Column(name, made.type))
    listed = ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))
    grouped = f" GROUP BY {', '.join(key.sql for key in keys)}" if keys else ""
    return Rows(f"SELECT {listed} FROM {source.sql}{grouped}", tuple(columns))


def _unpivoted(queries: Queries, rows: Rows, pivot: exp.Expr) -> Rows:
    """Read UNPIVOT: a row for each of some columns, where it is not NULL."""
    (value,), (over, *others) = pivot.expressions, pivot.args["fields"]
    if others or pivot.args.get("include_nulls") or not isinstance(value, exp.Identifier):
        raise Obstacle("UNPIVOT of several columns, or with NULLs, is Spark's")
    source = _aliased(queries, rows, "")
    reader = Expressions(Scope(source.fields), queries.rows)
    if not all(isinstance(column, exp.Column) for column in over.expressions):
        raise Obstacle("UNPIVOT of columns with aliases is Spark's")
    picked = [reader.value(column) for column in over.expressions]
    kind = widest((p.type for p in picked), "UNPIVOT")
    keys = [f.value for f in source.fields if f.value.sql not in {p.sql for p in picked}]
    places = zip(source.fields, rows.columns, strict=True)
    written = {f.value.sql: column.name for f, column in places}
    names = [written[one.sql] for one in picked]
    selects = []
    for one, name in zip(picked, names, strict=True):
        items = [key.sql for key in keys] + [text(name or ""), cast(one, kind).sql]
        listed = ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))
        selects.append(f"SELECT {listed} FROM {source.sql} WHERE {one.sql} IS NOT NULL")
    columns = [Column(key.name, key.type) for key in keys]
    columns += [Column(over.this.name, pa.string()), Column(value.name, kind)]
    return Rows(" UNION ALL ".join(selects), tuple(columns))
