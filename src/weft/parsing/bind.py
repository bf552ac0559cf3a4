"""From SQL text to a workload; every mistake in a statement is reported here, at its place."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from weft.binding import Schemas, columns_of_source
from weft.expression import stripped
from weft.parsing.brackets import stream_window
from weft.parsing.joins import bind_join
from weft.parsing.projection import Projector, grouping_elements, items_of, read_keys
from weft.parsing.scope import Scope, Source
from weft.parsing.script import Script, Statement
from weft.parsing.windows import LabelledWindow, WindowReader, default_label
from weft.query import JoinQuery, Query, Workload
from weft.window import LandmarkWindow

# Parts of a statement, of a source and of a join that are read; any other is refused.
_READ = {"expressions", "from_", "joins", "where", "group"}
_READ_OF_TABLE = {"this", "db", "catalog", "alias", "timestamp_by", "stream_window"}
_READ_OF_JOIN = {"this", "on", "using", "kind", "side", "method"}
# What is refused, the keyword an error points at, and what to do instead.
_REFUSED = {
    "having": (TokenType.HAVING, "HAVING", "filter the result, or events with WHERE"),
    "order": (TokenType.ORDER_BY, "ORDER BY", "sort the result"),
    "limit": (TokenType.LIMIT, "LIMIT", "take the rows you need from the result"),
    "offset": (TokenType.OFFSET, "OFFSET", "take the rows you need from the result"),
    "distinct": (TokenType.DISTINCT, "SELECT DISTINCT", "remove it: result rows are distinct"),
    "into": (TokenType.INTO, "INTO", "name the statement with -- name: x instead"),
    "qualify": (TokenType.QUALIFY, "QUALIFY", "filter the result"),
    "laterals": (TokenType.LATERAL, "LATERAL VIEW", "flatten the table first"),
    "sample": (TokenType.TABLE_SAMPLE, "TABLESAMPLE", "sample the table first"),
    "sort": (TokenType.SORT_BY, "SORT BY", "sort the result"),
    "cluster": (TokenType.CLUSTER_BY, "CLUSTER BY", "remove it: weft places the rows itself"),
    "distribute": (
        TokenType.DISTRIBUTE_BY,
        "DISTRIBUTE BY",
        "remove it: weft places the rows itself",
    ),
}


def parse(text: str, schemas: Schemas | None = None) -> Workload:
    """Read one or several statements into a workload; `;` separates, `-- name: x` names.

    With `schemas`, the columns of each source, columns that do not exist are errors too.

    >>> workload = parse("SELECT device, MIN(temp) AS lo FROM readings "
    ...                  "GROUP BY device, window(ts, '20 minutes')")
    >>> query, = workload.queries
    >>> query.name, query.time, query.columns
    ('q1', 'ts', ('device', 'window', 'window_start', 'window_end', 'lo'))
    """
    script = Script(text)
    workload = Workload()
    for statement in script.statements():
        try:
            query = _bind(script, statement, schemas)
        except RecursionError:
            hint = "split it into simpler expressions"
            raise script.error(
                "this statement is nested too deeply", hint=hint, at=statement.tokens[0]
            ) from None
        with script.located(statement.named_at):
            workload.add(query)
    return workload


def _bind(script: Script, statement: Statement, schemas: Schemas | None) -> Query | JoinQuery:
    select = checked_select(script, statement)
    tables = tables_of(script, statement, select)
    sources = tuple(source_of(script, table, schemas) for table in tables)
    scope = Scope(script, sources)
    if len(tables) > 1:
        return bind_join(scope, statement, select, tables)
    return _bind_query(scope, statement, select, tables[0])


def checked_select(script: Script, statement: Statement) -> exp.Select:
    """Return a plain SELECT, or refuse the part of it that is not read."""
    select = statement.tree
    if isinstance(select, exp.SetOperation):
        raise script.error(
            "UNION, INTERSECT and EXCEPT are not supported",
            hint="separate the queries with ; and name each with -- name: x",
            at=statement.token(TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT),
        )
    if not isinstance(select, exp.Select):
        raise script.error(
            "this is not a plain SELECT statement",
            hint="begin with SELECT, without parentheses around the statement",
            at=statement.tokens[0],
        )
    for part in _unread(select, _READ):
        token, words, remedy = _REFUSED.get(part, (TokenType.SELECT, part.upper(), "remove it"))
        raise script.error(f"{words} is not supported", hint=remedy, at=statement.token(token))
    return select


def tables_of(script: Script, statement: Statement, select: exp.Select) -> list[exp.Table]:
    """Return the tables of FROM and of its joins."""
    source = select.args.get("from_")
    if source is None:
        raise script.error(
            "this query reads no table", hint="add FROM and a table", at=statement.tokens[0]
        )
    tables = [source.this, *(join.this for join in select.args.get("joins") or ())]
    for table in tables:
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            hint = "name a table; write a subquery as a statement of its own"
            raise script.error("FROM takes tables only", hint=hint, at=table)
        renamed = isinstance(table.args.get("alias"), exp.TableAlias) and table.alias_column_names
        if renamed or _unread(table, _READ_OF_TABLE):
            hint = f"write its name alone, or with an alias: {table.name} AS t"
            raise script.error("FROM takes a table as it is", hint=hint, at=table)
    for join in select.args.get("joins") or ():
        if _unread(join, _READ_OF_JOIN):
            hint = "write a JOIN b ON a.id = b.id"
            raise script.error("this kind of join is not supported", hint=hint, at=join.this)
    return tables


def _unread(node: exp.Expr, read: set[str]) -> list[str]:
    return [part for part, value in node.args.items() if value and part not in read]


def source_of(script: Script, table: exp.Table, schemas: Schemas | None) -> Source:
    """Return a table of FROM as a scope knows it."""
    name = ".".join(part.name for part in table.parts)
    if schemas is None:
        return Source(name, table.alias_or_name)
    with script.located(table):
        return Source(name, table.alias_or_name, columns_of_source(name, schemas))


def _bind_query(scope: Scope, statement: Statement, select: exp.Select, table: exp.Table) -> Query:
    items = items_of(scope, select)
    key_nodes, window_nodes = grouping_elements(scope, statement, items)
    # Keys first: a misspelt window is an unknown function among them, not a missing window.
    keys = read_keys(scope, key_nodes)
    windows, times = _windows(scope, statement, table, window_nodes)
    projector = Projector(scope, keys, window_nodes)
    for item in items:
        projector.add(item)
    projection = projector.finish(statement)
    where = select.args.get("where")
    condition = None if where is None else scope.scalar(stripped(where.this), "filter")
    with scope.script.located(statement.tokens[0]):
        return Query(
            statement.name,
            source=scope.sources[0].name,
            time=time_column(scope, times),
            keys=projection.keys,
            where=condition,
            windows={labelled.label: labelled.window for labelled in windows},
            aggs=projection.aggs,
            window_columns=projection.window_columns,
        )


def _windows(
    scope: Scope, statement: Statement, table: exp.Table, nodes: list[exp.Expr]
) -> tuple[list[LabelledWindow], list[exp.Column]]:
    """Gather the windows of GROUP BY, or the one in brackets, and the time columns named."""
    script = scope.script
    by = table.args.get("timestamp_by")
    times = [] if by is None else [by]
    bracket = table.args.get("stream_window")
    if bracket is not None:
        nodes = [bracket, *nodes]
    if not nodes:
        raise script.error(
            "this query has no window",
            hint="group by one, such as window(ts, '20 minutes') or TumblingWindow(minute, 20)",
            at=statement.token(TokenType.GROUP_BY),
        )
    if len(nodes) > 1:
        raise script.error(
            "this query has a second window",
            hint="put all windows of a query into one list: Windows(..., ...)",
            at=nodes[1],
        )
    if bracket is None:
        grouping = WindowReader(scope).read(nodes[0])
        return _distinct(script, grouping.windows), [*times, *grouping.times]
    window = stream_window(script, bracket)
    if isinstance(window, LandmarkWindow):
        raise script.error(
            "[UNTIL NOW] never completes, so it has a result only in a join",
            hint="write [RANGE 1 HOUR SLIDE 5 MINUTES], or CumulatingWindow(hour, 24, 1)",
            at=bracket,
        )
    return [LabelledWindow(default_label(window), window, bracket)], times


def _distinct(script: Script, windows: tuple[LabelledWindow, ...]) -> list[LabelledWindow]:
    seen: set[str] = set()
    for labelled in windows:
        if labelled.label in seen:
            raise script.error(
                f"two windows are labelled {labelled.label!r}",
                hint="give each its own label: Window('label', ...)",
                at=labelled.node,
            )
        seen.add(labelled.label)
    return list(windows)


def time_column(scope: Scope, times: list[exp.Column]) -> str | None:
    """Return the one time column; None leaves it to the table."""
    for column in times:
        scope.resolve(column)
        if column.name != times[0].name:
            raise scope.script.error(
                f"this query has two time columns, {times[0].name} and {column.name}",
                hint="all windows of a query stand over the same event time",
                at=column,
            )
    return times[0].name if times else None
