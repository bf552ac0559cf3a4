"""Queries meet tables: the time column is looked up, and every column that is read exists."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from weft.errors import QueryError
from weft.query import JoinQuery, Query, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class TableColumns:
    """The columns of a table, and which of them are timestamps or hold exact numbers."""

    __slots__ = ("exact", "names", "timestamps")

    def __init__(
        self, names: Iterable[str], timestamps: Iterable[str] = (), exact: Iterable[str] = ()
    ) -> None:
        self.names = tuple(names)
        self.timestamps = tuple(timestamps)
        self.exact = frozenset(exact)


def bind(workload: Workload, tables: Mapping[str, TableColumns]) -> Workload:
    """Return the workload with every time column known, or name the first column that is missing.

    >>> from weft import agg, tumbling
    >>> q = Query("q", source="t", windows={"1h": tumbling("1 hour")}, aggs={"n": agg.sum("tmp")})
    >>> bind(Workload([q]), {"t": TableColumns(["ts", "temp"], ["ts"])})
    Traceback (most recent call last):
    weft.errors.QueryError: query 'q' reads the column 'tmp', which table 't' does not have
    hint: did you mean 'temp'?
    """
    return Workload(_bind(query, tables) for query in workload)


def _bind(query: Query | JoinQuery, tables: Mapping[str, TableColumns]) -> Query | JoinQuery:
    if isinstance(query, JoinQuery):
        for side in query.inputs:
            _table(query.name, side.source, tables)
        return query
    table = _table(query.name, query.source, tables)
    time = query.time if query.time is not None else _only_timestamp(query, table)
    for name in (time, *query.inputs):
        if name not in table.names:
            raise QueryError(
                f"query {query.name!r} reads the column {name!r}, which table "
                f"{query.source!r} does not have",
                hint=_suggest(name, table.names, "the columns are "),
            )
    return query.with_time(time)


def _table(query: str, source: str, tables: Mapping[str, TableColumns]) -> TableColumns:
    if source not in tables:
        raise QueryError(
            f"query {query!r} reads {source!r}, and no table of that name was given",
            hint=_suggest(source, tables, "the tables are ")
            if tables
            else "pass the table by name",
        )
    return tables[source]


def _only_timestamp(query: Query, table: TableColumns) -> str:
    if len(table.timestamps) == 1:
        return table.timestamps[0]
    found = ", ".join(table.timestamps)
    raise QueryError(
        f"query {query.name!r} does not say which column of {query.source!r} is the event time, "
        + (f"and there are several timestamps: {found}" if found else "and none is a timestamp"),
        hint="name it: time='...' in Python, TIMESTAMP BY ... in SQL",
    )


def _suggest(name: str, known: Iterable[str], otherwise: str) -> str:
    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise + ", ".join(names)
