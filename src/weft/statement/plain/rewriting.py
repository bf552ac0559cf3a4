"""Statements as plain SQL: blocks that share become steps of one WITH, and the rest stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from weft.errors import QueryError, UnsupportedError
from weft.plain_sql.statements import check_dialect, in_dialect
from weft.plain_sql.statements import rewrite as rewrite_workload
from weft.statement.door import speaks_to_weft
from weft.statement.notes import Note
from weft.statement.plain.host import PlainHost
from weft.statement.shared import Statements
from weft.statement.spellings import in_sparks_words
from weft.statement.syntax import is_call, query_of, statements_of, written_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.plain_sql.partials import Dialect
    from weft.statement.plain.host import KnownTables, Planning


def rewrite(
    sql: str,
    dialect: Dialect = "spark",
    *,
    planner: str = "auto",
    statistics: Planning = None,
    **tables: Any,
) -> str:
    """Return SQL that computes the same rows as the statement, windows from shared slices.

    The text is for a Spark, or a DuckDB, that has no weft. Blocks that group by windows over the
    same events read steps of one WITH, the rest stays as it is, and a comment says of each block
    that is left why. With tables, which are DataFrames of Spark by name, Spark is asked for what a
    text alone does not tell: names of columns, and the types of decimals. What weft alone reads,
    such as `TIMESTAMP BY`, has weft's columns.

    >>> print(rewrite("SELECT k, MAX(x) - MIN(x) AS span FROM t "
    ...               "GROUP BY k, window(ts, '1 hour', '5 minutes')").splitlines()[-2])
    SELECT weft_k0 AS `k`, weft_a0 - weft_a1 AS `span` FROM weft_block_0
    """
    check_dialect(dialect)
    if speaks_to_weft(sql):
        return rewrite_workload(sql, dialect, planner=planner, statistics=statistics)
    texts = statements_of(in_sparks_words(sql) or sql) or {}
    if not texts:
        raise QueryError("there is no statement in the text", hint="write a SELECT")
    known = _known(tables)
    made = {
        name: _rewritten(text, PlainHost(dialect, statistics, known), planner)
        for name, text in texts.items()
    }
    if len(made) == 1:
        return next(iter(made.values()))
    return "\n\n".join(
        text + ";" if f"-- name: {name}" in text else f"-- name: {name}\n{text};"
        for name, text in made.items()
    )


def _known(tables: Mapping[str, Any]) -> KnownTables | None:
    if not tables:
        return None
    from weft.frames import kind_of

    if any(kind_of(table) != "spark" for table in tables.values()):
        raise QueryError(
            "a statement is rewritten for tables that are not DataFrames of Spark",
            hint="leave them out, or give DataFrames of Spark, which is asked for their types",
        )
    from weft.statement.spark.tables import Tables

    session = next(iter(tables.values())).sparkSession
    return Tables(session, tables)


def _rewritten(text: str, host: PlainHost, planner: str) -> str:
    """Return one statement whose blocks read steps of shared plans; else as it is."""
    tree = query_of(text)
    if tree is None or any(w.args.get("recursive") for w in tree.find_all(exp.With)):
        return _as_it_is(text, host, ["it is no query that can be written out as it was read"])
    _write_out_times(tree)
    statements = Statements(host, planner)
    (made,) = statements.with_results({"": tree}).values()
    left = [
        f"block {note.number} is left: {note.reason}"
        for note in statements.notes
        if isinstance(note, Note) and not note.shared
    ]
    if not host.steps:
        return _as_it_is(text, host, left)
    if left and host.dialect != "spark":
        _refuse(left)
    whole = f"WITH {host.listed()}\n(\n{written_of(made)}\n)"
    if host.dialect != "spark":
        return in_dialect(whole, host.dialect)
    wrong = host.difference(whole, text)
    if wrong is not None:
        return _as_it_is(text, host, [wrong])
    return "\n".join((*map(_comment, left), whole))


def _as_it_is(text: str, host: PlainHost, reasons: list[str]) -> str:
    if host.dialect != "spark":
        _refuse(reasons)
    return "\n".join((*map(_comment, reasons), text))


def _refuse(reasons: list[str]) -> None:
    raise UnsupportedError(
        f"not all of the statement can be written for another engine: {'; '.join(reasons)}"
        if reasons
        else "no block of the statement groups by a window",
        hint="run it as it is, or with weft.sql",
    )


def _comment(reason: str) -> str:
    return f"-- {' '.join(reason.split())}"


def _write_out_times(tree: exp.Query) -> None:
    """Write the time of a window as the instant before its end: a table of results marks none."""
    for call in [n for n in tree.find_all(exp.Anonymous) if is_call(n, "window_time")]:
        if len(call.expressions) == 1:
            (window,) = call.expressions
            before = query_of(f"SELECT ({written_of(window)}.end - INTERVAL '1' MICROSECOND)")
            assert isinstance(before, exp.Select)
            made: exp.Expr = before.expressions[0]
            if isinstance(call.parent, exp.Select) and isinstance(window, exp.Column):
                made = exp.alias_(made, f"window_time({window.name})", quoted=True)
            call.replace(made)
