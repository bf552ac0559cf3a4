"""Plans as plain SQL: text that any Spark session, or DuckDB, runs without weft.

The text has one common table expression per step of the plan: the events, the slices, the
fan-out of slices to windows, the windows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

from weft.errors import QueryError
from weft.plain_sql.partials import Dialect
from weft.plain_sql.scopes import PlainScopes
from weft.plan.planned_scope import PlannedScope, planned_scopes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from weft.plan import Plan
    from weft.statistics import Statistics


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

    check_dialect(dialect)
    # Statements run one by one, so one that kept events of others would read them in vain.
    plan = optimize(parse(sql), planner, "spark", statistics, filters="apart", key_sets="apart")
    texts = rewrite_plan(plan, dialect)
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"-- name: {name}\n{text};" for name, text in texts.items())


def check_dialect(dialect: str) -> None:
    """Refuse a dialect that text is not written in."""
    if dialect not in get_args(Dialect):
        raise QueryError(
            f"unknown dialect {dialect!r}", hint=f"use one of {', '.join(get_args(Dialect))}"
        )


def rewrite_plan(plan: Plan, dialect: Dialect = "spark") -> dict[str, str]:
    """Return the SQL text of every query of a plan."""
    found: dict[str, str] = {}
    for scope in planned_scopes(plan):
        for query in scope.queries:
            own = PlannedScope(scope.scan, scope.keys, scope.emits_of(query))
            found[query] = in_dialect(PlainScopes((own,), dialect).text(), dialect)
    return {query.name: found[query.name] for query in plan.queries}


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
