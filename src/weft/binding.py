"""Queries meet tables: the time column is looked up, and every column that is read exists."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from weft.errors import QueryError, suggest
from weft.expression import tree
from weft.query import AnyQuery, JoinQuery, Query, Workload

Schemas = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table, and which of them are timestamps or hold exact numbers."""

    names: tuple[str, ...]
    timestamps: tuple[str, ...] = ()
    exact: frozenset[str] = frozenset()


def bind(workload: Workload, tables: Mapping[str, TableColumns]) -> Workload:
    """Return the workload with every time column known, or name the first column that is missing.

    >>> from weft import agg, tumbling
    >>> q = Query("q", source="t", windows={"1h": tumbling("1 hour")}, aggs={"n": agg.sum("tmp")})
    >>> bind(Workload([q]), {"t": TableColumns(("ts", "temp"), ("ts",))})
    Traceback (most recent call last):
    weft.errors.QueryError: t has no column 'tmp', which query 'q' reads
    hint: did you mean 'temp'?
    """
    schemas = {name: table.names for name, table in tables.items()}
    for source in workload.sources:
        columns_of_source(source, schemas)
    bound = Workload(_with_time(query, tables) for query in workload)
    check_columns(bound, schemas)
    return bound


def _with_time(query: AnyQuery, tables: Mapping[str, TableColumns]) -> AnyQuery:
    if isinstance(query, JoinQuery):
        inputs = tuple(
            replace(i, time=_only_time(query.name, i.source, tables))
            if i.window is not None and i.time is None
            else i
            for i in query.inputs
        )
        return replace(query, inputs=inputs)
    if query.time is not None:
        return query
    return query.with_time(_only_time(query.name, query.source, tables))


def _only_time(query: str, source: str, tables: Mapping[str, TableColumns]) -> str:
    stamps = tables[source].timestamps
    if len(stamps) == 1:
        return stamps[0]
    found = ", ".join(stamps)
    raise QueryError(
        f"query {query!r} does not say which column of {source!r} is the event time, "
        + (f"and there are several timestamps: {found}" if found else "and none is a timestamp"),
        hint="name it: time='...' in Python, TIMESTAMP BY ... in SQL",
    )


def check_columns(workload: Workload, schemas: Schemas) -> None:
    """Refuse a workload that reads a table or a column which `schemas` does not have.

    >>> from weft.parsing import parse
    >>> check_columns(parse("SELECT SUM(tmep) FROM r GROUP BY window(ts, '1 hour')"),
    ...               {"r": ["ts", "temp"]})
    Traceback (most recent call last):
    weft.errors.QueryError: r has no column 'tmep', which query 'q1' reads
    hint: did you mean 'temp'?
    """
    for query in workload:
        for source, column in dict.fromkeys(_reads(query)):
            known = columns_of_source(source, schemas)
            if column not in known:
                otherwise = f"its columns are {', '.join(known) or 'none'}"
                raise QueryError(
                    f"{source} has no column {column!r}, which query {query.name!r} reads",
                    hint=suggest(column, list(known), otherwise),
                )
            if known.count(column) > 1:
                raise QueryError(
                    f"{source} has {known.count(column)} columns {column!r}, and query "
                    f"{query.name!r} reads one",
                    hint="rename or drop the others",
                )


def _reads(query: AnyQuery) -> Iterator[tuple[str, str]]:
    if isinstance(query, Query):
        times = () if query.time is None else (query.time,)
        yield from ((query.source, column) for column in (*times, *query.inputs))
        return
    from sqlglot import exp

    sources = {source.alias: source.source for source in query.inputs}
    for source in query.inputs:
        if source.time is not None:
            yield source.source, source.time
        if source.where is not None:
            for column in tree(source.where).find_all(exp.Column):
                yield source.source, column.name
    expressions = [expression for _, expression in query.keys]
    expressions += [argument for _, call in query.aggs for argument in call.args]
    expressions += [side for pair in query.on for side in pair]
    for expression in expressions:
        for column in tree(expression).find_all(exp.Column):
            yield sources[column.table], column.name


def columns_of_source(source: str, schemas: Schemas) -> tuple[str, ...]:
    """Return the columns of a source, or say which tables there are."""
    if source not in schemas:
        known = list(schemas)
        raise QueryError(
            f"there is no table {source!r}",
            hint=suggest(source, known, f"the tables are {', '.join(known) or 'none'}"),
        )
    return tuple(schemas[source])
