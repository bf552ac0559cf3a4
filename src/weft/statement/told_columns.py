"""Columns that a text tells by itself, without a table that anybody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.projection import own_name

if TYPE_CHECKING:
    from collections.abc import Mapping


def columns_told(query: exp.Expr) -> list[str] | None:
    """Return the names of columns that a query lists itself; None where a table has to be known.

    >>> from weft.statement.syntax import query_of
    >>> columns_told(query_of("WITH a AS (SELECT x, y + 1 AS z FROM t) SELECT * FROM a"))
    ['x', 'z']
    >>> columns_told(query_of("SELECT * FROM t")) is None
    True
    """
    return _told(query, {})


def _told(query: exp.Expr, around: Mapping[str, exp.CTE]) -> list[str] | None:
    if isinstance(query, exp.Subquery | exp.Paren):
        return _told(query.this, around)
    defined = query.args.get("with_")
    if isinstance(defined, exp.With):
        around = {**around, **{cte.alias.casefold(): cte for cte in defined.expressions}}
    if isinstance(query, exp.SetOperation):
        return None if query.args.get("by_name") else _told(query.this, around)
    if not isinstance(query, exp.Select):
        return None
    names: list[str] = []
    for item in query.expressions:
        if isinstance(item, exp.Star):
            below = None if item.args.get("except_") else _told_by_source(query, around)
            if below is None:
                return None
            names += below
        else:
            name = own_name(item)
            if name is None or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                return None
            names.append(name)
    return names


def _told_by_source(select: exp.Select, around: Mapping[str, exp.CTE]) -> list[str] | None:
    source = select.args.get("from_")
    if source is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    table = source.this
    cte = around.get(table.name.casefold()) if isinstance(table, exp.Table) else None
    if cte is not None and not table.args.get("db"):
        columns = cte.args["alias"].args.get("columns")
        others = {name: own for name, own in around.items() if own is not cte}
        return [c.name for c in columns] if columns else _told(cte.this, others)
    if isinstance(table, exp.Subquery) and not table.args.get("pivots"):
        columns = table.args["alias"].args.get("columns") if table.args.get("alias") else None
        return [c.name for c in columns] if columns else _told(table.this, around)
    return None
