"""Joins of streams, each with a window of its own, as join queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.expression import canonical, spelled, stripped
from weft.parsing.brackets import stream_window
from weft.parsing.projection import Projector, grouping_elements, items_of, read_keys
from weft.query import JoinInput, JoinQuery
from weft.window import CountingWindow

if TYPE_CHECKING:
    from weft.parsing.dialect import StreamWindow
    from weft.parsing.scope import Scope
    from weft.parsing.script import Statement
    from weft.window import LandmarkWindow, PeriodicWindow

_EQUALITY = "join on equal columns, such as a.id = b.id"


@dataclass(frozen=True, slots=True)
class _Conditions:
    """What WHERE and ON say: pairs of equal columns, and filters of single sources."""

    on: list[tuple[exp.Column, exp.Column]]
    filters: dict[str, list[exp.Expr]]


def bind_join(
    scope: Scope, statement: Statement, select: exp.Select, tables: list[exp.Table]
) -> JoinQuery:
    """Bind an aggregation over the equi-join of two or more sources."""
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
    projection = projector.finish(statement)
    inputs = _inputs(scope, tables, conditions)
    _check_connected(scope, tables, conditions)
    with scope.script.located(statement.tokens[0]):
        return JoinQuery(
            statement.name,
            inputs,
            tuple((spelled(left), spelled(right)) for left, right in conditions.on),
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
    left = scope.sources[0].alias
    for join, source in zip(select.args["joins"], scope.sources[1:], strict=True):
        _check_kind(scope, join)
        for name in join.args.get("using") or ():
            pair = (exp.column(name, table=left), exp.column(name, table=source.alias))
            for column in pair:
                column.update_positions(name)
                scope.resolve(column)
            found.on.append(pair)
        if join.args.get("on") is not None:
            _sort(scope, join.args["on"], found)
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
    conjuncts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    for conjunct in map(stripped, conjuncts):
        if isinstance(conjunct, exp.And):
            _sort(scope, conjunct, found)
        # sqlglot completes a JOIN without ON by ON TRUE.
        elif not isinstance(conjunct, exp.Boolean) or not conjunct.this:
            _sort_one(scope, conjunct, found)


def _sort_one(scope: Scope, conjunct: exp.Expr, found: _Conditions) -> None:
    text = scope.scalar(conjunct, "filter")
    aliases = scope.aliases(conjunct)
    if len(aliases) > 1:
        left, right = conjunct.args.get("this"), conjunct.args.get("expression")
        equality = isinstance(conjunct, exp.EQ)
        if not (equality and isinstance(left, exp.Column) and isinstance(right, exp.Column)):
            raise scope.script.error(
                f"{text} ties streams by more than equal columns", hint=_EQUALITY, at=conjunct
            )
        found.on.append((left, right))
        return
    owner = aliases[0] if aliases else scope.sources[0].alias
    # A filter reads one source, before the join, where its columns have no qualifier.
    for column in conjunct.find_all(exp.Column):
        column.set("table", None)
    found.filters.setdefault(owner, []).append(conjunct)


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
        where = None if filters is None else canonical(spelled(exp.and_(*filters)))
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
    pairs = [{left.table, right.table} for left, right in conditions.on]
    tied = {scope.sources[0].alias}
    for _ in tables:
        tied = tied.union(*(pair for pair in pairs if tied & pair))
    for table, source in zip(tables, scope.sources, strict=True):
        if source.alias not in tied:
            raise scope.script.error(
                f"nothing ties {source.alias} to the other sources, which is a cross join",
                hint=_EQUALITY,
                at=table,
            )
