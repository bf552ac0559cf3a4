"""Joins of streams, each with a window of its own, as join queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from weft.expression import canonical
from weft.query import JoinInput, JoinQuery
from weft.sql.brackets import stream_window
from weft.sql.projection import Projector, grouping_elements, items_of, read_keys
from weft.sql.scope import stripped
from weft.window import CountingWindow

if TYPE_CHECKING:
    from weft.sql.dialect import StreamWindow
    from weft.sql.scope import Scope
    from weft.sql.script import Statement
    from weft.window import LandmarkWindow, PeriodicWindow

_EQUALITY = "join on equal columns, such as a.id = b.id"


@dataclass(frozen=True, slots=True)
class _Conditions:
    """What WHERE and ON say: pairs of equal columns, and filters of single sources."""

    on: list[tuple[str, str]]
    filters: dict[str, list[str]]


def bind_join(scope: Scope, statement: Statement, tables: list[exp.Table]) -> JoinQuery:
    """Bind an aggregation over the equi-join of two or more sources."""
    select = statement.tree
    assert isinstance(select, exp.Select)
    _check_aliases(scope, tables)
    conditions = _conditions(scope, select)
    items = items_of(scope, select)
    key_nodes, window_nodes = grouping_elements(scope, statement, items)
    if window_nodes:
        raise scope.script.error(
            "the streams of a join have a window each, so GROUP BY has none",
            hint="write it after each stream: FROM a [RANGE 1 HOUR SLIDE 5 MINUTES], b [...]",
            at=window_nodes[0],
        )
    keys = read_keys(scope, key_nodes)
    for key in keys:
        if len(scope.aliases(key.node)) > 1:
            raise scope.script.error(
                f"the key {key.text} reads columns of two streams",
                hint="group by columns of one stream, in as many keys as you need",
                at=key.node,
            )
    projector = Projector(scope, keys, [])
    for item in items:
        projector.add(item)
    projection = projector.finish()
    inputs = _inputs(scope, tables, conditions)
    _check_connected(scope, tables, conditions)
    with scope.script.located(statement.tokens[0]):
        return JoinQuery(
            statement.name,
            inputs,
            tuple(conditions.on),
            tuple(projection.keys.items()),
            tuple(projection.aggs.items()),
            projection.window_columns,
        )


def _check_aliases(scope: Scope, tables: list[exp.Table]) -> None:
    seen: set[str] = set()
    for table in tables:
        alias = table.alias_or_name.casefold()
        if alias in seen:
            raise scope.script.error(
                f"two sources of this join are called {table.alias_or_name!r}",
                hint=f"give one another name: {table.name} AS other",
                at=table,
            )
        seen.add(alias)


def _conditions(scope: Scope, select: exp.Select) -> _Conditions:
    """Sort every conjunct of ON, USING and WHERE."""
    found = _Conditions([], {})
    left = [scope.sources[0].alias]
    for join, source in zip(select.args["joins"], scope.sources[1:], strict=True):
        _check_kind(scope, join)
        for name in join.args.get("using") or ():
            pair = [exp.column(name.copy(), table=alias) for alias in (left[0], source.alias)]
            for column in pair:
                column.this.update_positions(name)
                scope.resolve(column)
            found.on.append((pair[0].sql(dialect="spark"), pair[1].sql(dialect="spark")))
        if join.args.get("on") is not None:
            _sort(scope, join.args["on"], found)
        left.append(source.alias)
    where = select.args.get("where")
    if where is not None:
        _sort(scope, where.this, found)
    return found


def _check_kind(scope: Scope, join: exp.Join) -> None:
    words = [join.args.get(part) for part in ("method", "side", "kind")]
    unusual = [word for word in words if word and word != "INNER"]
    if unusual == ["CROSS"]:
        raise scope.script.error(
            "a cross join pairs every event with every other", hint=_EQUALITY, at=join.this
        )
    if unusual:
        raise scope.script.error(
            f"{' '.join(unusual)} JOIN is not supported",
            hint="use an inner join: a JOIN b ON a.id = b.id",
            at=join.this,
        )


def _sort(scope: Scope, condition: exp.Expr, found: _Conditions) -> None:
    condition = stripped(condition)
    if isinstance(condition, exp.And):
        _sort(scope, condition.left, found)
        _sort(scope, condition.right, found)
        return
    if isinstance(condition, exp.Boolean) and condition.this:
        return  # sqlglot completes a JOIN without ON by ON TRUE
    text = scope.scalar(condition, "WHERE")
    aliases = scope.aliases(condition)
    if len(aliases) > 1:
        if not _is_equality(condition):
            raise scope.script.error(
                f"{text} compares streams other than by equal columns",
                hint=_EQUALITY,
                at=condition,
            )
        sides = (condition.left, condition.right)
        found.on.append((sides[0].sql(dialect="spark"), sides[1].sql(dialect="spark")))
        return
    owner = aliases[0] if aliases else scope.sources[0].alias
    # A filter reads one source, before the join, where its columns have no qualifier.
    for column in condition.find_all(exp.Column):
        column.set("table", None)
    wrapped = exp.paren(condition) if isinstance(condition, exp.Or) else condition
    found.filters.setdefault(owner, []).append(wrapped.sql(dialect="spark", comments=False))


def _is_equality(condition: exp.Expr) -> bool:
    return (
        isinstance(condition, exp.EQ)
        and isinstance(condition.left, exp.Column)
        and isinstance(condition.right, exp.Column)
    )


def _inputs(
    scope: Scope, tables: list[exp.Table], conditions: _Conditions
) -> tuple[JoinInput, ...]:
    inputs = []
    for table, source in zip(tables, scope.sources, strict=True):
        bracket = table.args.get("stream_window")
        by = table.args.get("timestamp_by")
        if bracket is None and by is not None:
            raise scope.script.error(
                f"the stream {table.alias_or_name} has an event time and no window",
                hint=f"add one: {table.alias_or_name} [RANGE 1 HOUR SLIDE 5 MINUTES]",
                at=table,
            )
        window = None if bracket is None else _join_window(scope, bracket)
        filters = conditions.filters.get(source.alias)
        where = None if filters is None else canonical(" AND ".join(filters))
        time = None if by is None else _time(scope, by, source.alias)
        inputs.append(JoinInput(source.name, source.alias, time, window, where))
    if all(source.window is None for source in inputs):
        raise scope.script.error(
            "no source of this join has a window",
            hint="add one to each stream: FROM a [RANGE 1 HOUR SLIDE 5 MINUTES], b [...]",
            at=tables[0],
        )
    return tuple(inputs)


def _join_window(scope: Scope, bracket: StreamWindow) -> PeriodicWindow | LandmarkWindow:
    window = stream_window(scope.script, bracket)
    if isinstance(window, CountingWindow):
        raise scope.script.error(
            "a join has no windows over rows",
            hint="write [RANGE 1 HOUR SLIDE 5 MINUTES] or [UNTIL NOW]",
            at=bracket,
        )
    return window


def _time(scope: Scope, column: exp.Column, alias: str) -> str:
    if not column.table:
        column.set("table", exp.to_identifier(alias))
    source = scope.resolve(column)
    if source.alias != alias:
        raise scope.script.error(
            f"the event time of {alias} is a column of {source.alias}",
            hint=f"name a column of {alias}",
            at=column,
        )
    return column.name


def _check_connected(scope: Scope, tables: list[exp.Table], conditions: _Conditions) -> None:
    """Refuse a source that no chain of equalities ties to the first one."""
    pairs = [(a.rpartition(".")[0], b.rpartition(".")[0]) for a, b in conditions.on]
    tied = {scope.sources[0].alias}
    while True:
        reached = {side for pair in pairs if tied & set(pair) for side in pair} - tied
        if not reached:
            break
        tied |= reached
    for table, source in zip(tables, scope.sources, strict=True):
        if source.alias not in tied:
            raise scope.script.error(
                f"nothing ties {source.alias} to the other sources, which is a cross join",
                hint=_EQUALITY,
                at=table,
            )
