"""Statements in this process: blocks by the local engine, and DuckDB around them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from weft.engines.local.engine import LocalEngine
from weft.errors import DataError, QueryError, UnsupportedError, WeftError
from weft.running import plan_for
from weft.statement.blocks import WINDOWS
from weft.statement.host import Shared, Unshareable
from weft.statement.local.column_types import (
    INSTANT,
    is_time,
    spark_name,
    spark_type,
    stored_type,
    to_stored,
)
from weft.statement.local.expressions import Expressions
from weft.statement.local.queries import Queries, item_name
from weft.statement.local.results import obstacle_of, table_of, with_ordinals
from weft.statement.local.scope import Column, Field, Rows, Scope
from weft.statement.local.selects import select_rows
from weft.statement.local.sources import source_of
from weft.statement.local.values import Value
from weft.statement.notes import Note
from weft.statement.relations import Obstacle
from weft.statement.shared import Statements
from weft.statement.sharing import EVENTS, TIME
from weft.statement.spellings import in_sparks_words
from weft.statement.syntax import is_call, query_of, written_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.statement.sharing import Group, Member

_SPARK = "use engine='spark', which takes any statement"


@dataclass
class LocalHost:
    """DuckDB, which runs what it computes to Spark's answer, and refuses the rest.

    Without rows (`dry`) everything is planned and nothing computed, for EXPLAIN.
    """

    given: Mapping[str, pa.Table]
    dry: bool = False
    zone: str = "UTC"
    _tables: dict[str, Rows] = field(default_factory=dict)  # in lower case
    _results: int = 0

    def run(
        self, texts: Mapping[str, str], planner: str = "auto"
    ) -> tuple[dict[str, pa.Table], Statements]:
        """Return what Spark would, or raise why that is not known here."""
        trees = {name: _query_of(text) for name, text in texts.items()}
        statements = Statements(self, planner)
        try:
            made = statements.with_results(trees)
            blocks = [note for note in statements.notes if isinstance(note, Note)]
            left = next((note for note in blocks if not note.shared), None)
            if left is not None:
                raise Obstacle(f"block {left.number}: {left.reason}")
            results = {name: self._fetched(self._read(tree)) for name, tree in made.items()}
        except Obstacle as obstacle:
            raise UnsupportedError(
                f"the local engine does not run this statement: {obstacle}", hint=_SPARK
            ) from obstacle
        return results, statements

    @cached_property
    def _duck(self) -> duckdb.DuckDBPyConnection:
        # Nothing but the tables that were given is read, and no variable of Python's by its name.
        return duckdb.connect(
            ":memory:",
            config={"enable_external_access": "false", "python_enable_replacements": "false"},
        )

    def columns(self, query: exp.Select) -> list[str]:
        """Name the columns of a query as Spark does, where that is known here."""
        if query.args.get("group"):
            return self._names_of_block(query)
        return [_known_name(at, column.name) for at, column in enumerate(self._read(query).columns)]

    def _names_of_block(self, query: exp.Select) -> list[str]:
        """Name what a block selects: its window is a struct beside the columns that it reads."""
        queries = self._queries()
        source = source_of(queries, query, None)
        window = pa.struct([("start", INSTANT), ("end", INSTANT)])
        own = tuple(Field(Value("w", window, name)) for name in WINDOWS)
        scope = Scope((source.fields if source is not None else ()) + own)
        reader = Expressions(scope, queries.rows)
        names: list[str] = []
        for at, item in enumerate(query.expressions):
            plain = item.transform(
                lambda node: (
                    exp.column(str(node.this).casefold()) if is_call(node, *WINDOWS) else node
                )
            )
            if isinstance(item, exp.Alias):
                names.append(item.alias)
                with suppress(Obstacle):  # a later item that reads it says so itself
                    scope.aliases.setdefault(item.alias.casefold(), reader.value(plain.this))
                continue
            known = item_name(item, Value("", pa.null()))
            names.append(_known_name(at, known or reader.value(plain).name))
        return names

    def gaining(self, members: Sequence[Member]) -> list[Member]:
        """Return all blocks: DuckDB has no windows of Spark's."""
        return list(members)

    def share(self, group: Group, planner: str) -> Shared:
        """Compute a group by the local engine, and have tables of its results."""
        try:
            events = self._events(group)
        except Obstacle as obstacle:
            raise Unshareable({m.number: str(obstacle) for m in group.members}) from obstacle
        found = {m.number: obstacle_of(group, m, events.schema) for m in group.members}
        problems = {number: problem for number, problem in found.items() if problem}
        if problems:
            raise Unshareable(problems)
        engine = LocalEngine()
        sources = {EVENTS: events}
        try:
            plan = plan_for(group.workload(), sources, engine, planner, None)
        except WeftError as error:
            raise Unshareable({m.number: error.message for m in group.members}) from error
        results = engine.run(plan, sources)
        places: dict[int, str] = {}
        for member in group.members:
            place = places[member.number] = f"weft_result_{self._results}"
            self._results += 1
            table = table_of(group, member, results, events.schema)
            self._tables[place] = self._registered(place, table)
        return Shared(plan, places)

    def _events(self, group: Group) -> pa.Table:
        """Return the events of a group, with a time that is a timestamp."""
        rows = self._read(group.events())
        kind = rows.columns[0].type
        if pa.types.is_struct(kind) or kind in (pa.string(), pa.date32()):
            call = "window_time" if pa.types.is_struct(kind) else "timestamp"
            rows = self._read(group.events(exp.Anonymous(this=call, expressions=[group.time])))
        elif not is_time(kind):
            raise Obstacle(f"its event time is of type {spark_name(kind)}")
        assert rows.columns[0].name == TIME
        return self._fetched(with_ordinals(rows, group))

    def _queries(self) -> Queries:
        return Queries(self._found, select_rows, tuple(self.given))

    def _found(self, name: str) -> Rows | None:
        """Return a table of results, or one that was given; DuckDB sees only what is read."""
        if name not in self._tables:
            given = {own.casefold(): table for own, table in self.given.items()}
            if name not in given:
                return None
            self._tables[name] = self._registered(name, given[name])
        return self._tables[name]

    def _registered(self, name: str, table: pa.Table) -> Rows:
        columns, stored = [], []
        for at, one in enumerate(table.schema):
            kind = spark_type(one.type)
            if kind is None:
                raise Obstacle(
                    f"column {one.name} of {name} is of type {one.type}, which is not read here: "
                    "cast it, or leave it out"
                )
            columns.append(Column(one.name, kind))
            stored.append(to_stored(table.column(at), kind))
        place = f"t{len(self._tables)}"
        whole = pa.table(stored, names=[f"c{at}" for at in range(len(stored))])
        self._duck.register(place, whole.slice(0, 0) if self.dry else whole)
        return Rows(f"SELECT * FROM {place}", tuple(columns))

    def _read(self, tree: exp.Expr) -> Rows:
        return self._queries().statement(tree)

    def _fetched(self, rows: Rows) -> pa.Table:
        """Run a query; columns have the names and types that Spark gives."""
        fields = [
            pa.field(_known_name(at, column.name), column.type)
            for at, column in enumerate(rows.columns)
        ]
        try:
            found: Any = self._duck.sql(rows.sql).to_arrow_table()
        except duckdb.Error as error:
            raise _refusal(error) from error
        columns = [_as_spark(found.column(at), f.type) for at, f in enumerate(fields)]
        return pa.table(columns, schema=pa.schema(fields))


def _as_spark(column: Any, kind: pa.DataType) -> Any:
    """Return a column of DuckDB's as the type that Spark has."""
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    return column.cast(stored_type(kind)).cast(kind)


def _known_name(place: int, name: str | None) -> str:
    if name is None:
        raise Obstacle(f"column {place + 1} has a name that only Spark makes: name it with AS")
    return name


def _query_of(text: str) -> exp.Query:
    tree = query_of(in_sparks_words(text) or text)
    if tree is None:
        raise UnsupportedError("the local engine does not read this statement", hint=_SPARK)
    recursive = next((w for w in tree.find_all(exp.With) if w.args.get("recursive")), None)
    if recursive is not None:
        raise UnsupportedError(
            f"the local engine does not run {written_of(recursive)}", hint=_SPARK
        )
    return tree


def _refusal(error: duckdb.Error) -> WeftError:
    """Return what to raise for a query that DuckDB ended."""
    told = next(filter(None, str(error).splitlines()), type(error).__name__)
    told = told.removeprefix("Invalid Input Error: ").removeprefix("Invalid Error: ")
    if isinstance(error, duckdb.BinderException):
        return QueryError(f"this statement cannot be run: {told}", hint=_SPARK)
    return DataError(f"the statement ends on its rows: {told}", hint=_SPARK)
