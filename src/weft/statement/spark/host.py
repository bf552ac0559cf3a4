"""Statements in the hands of Spark, their window aggregates shared where that pays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import types as T
from sqlglot import exp

from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.shared_rows import IN_MEMORY, IN_ONE_STATEMENT, SharedResults
from weft.engines.spark.streaming.engine import SparkStreamEngine
from weft.engines.spark.text_rows import taken
from weft.errors import WeftError
from weft.plan.body import NATIVE
from weft.running import plan_for
from weft.statement.host import Shared, Unshareable
from weft.statement.over.rows import TakenOver
from weft.statement.relations import Obstacle
from weft.statement.shared import Statements
from weft.statement.sharing import EVENTS, TIME, Group, worthwhile
from weft.statement.spark.frames import Around, rolled
from weft.statement.spark.results import TIMES, obstacle_of, table_of, united
from weft.statement.spark.schema import same_types, with_nullability
from weft.statement.spark.tables import place_of
from weft.statement.spark.text_tables import TextTables
from weft.statement.syntax import query_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.engines.spark.text_rows import TextRows
    from weft.statement.sharing import Member
    from weft.statement.spark.tables import Tables

_UNREAD = "weft cannot read it and write it out as it was"
_CASE = "in this session case tells names apart"


@dataclass
class SparkHost:
    """Spark, which takes any statement, and blocks that gain from it as tables of results.

    Blocks of one query share inside what Spark runs for it; those of several queries, which are
    run one after another, share rows that are kept in memory.
    """

    tables: Tables
    texts: Mapping[str, str]  # by name
    _results: dict[str, DataFrame | TextRows] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    @property
    def zone(self) -> str:
        """The zone of the session."""
        return self.tables.zone

    def run(self, planner: str = "auto") -> tuple[SharedResults, Statements]:
        """Return what Spark returns, from shared plans where blocks share."""
        # Where case tells columns apart, texts would have to be compared in another way.
        told_apart = self.tables.session.conf.get("spark.sql.caseSensitive") == "true"
        texts = {} if told_apart else self.texts
        trees = {name: tree for name, text in texts.items() if (tree := _shareable(text))}
        stock = {name: self._stock(text, trees.get(name)) for name, text in self.texts.items()}
        taken = [frame for frame in stock.values() if not isinstance(frame, PySparkException)]
        streaming = any(frame.isStreaming for frame in taken)
        statements = Statements(self, planner, self._take_over, streaming)
        for name, text in self.texts.items():
            if name not in trees:
                statements.leave_unread(text, _UNREAD if not told_apart else _CASE)
        made = statements.with_results(trees)
        changed = {
            name: self._rewritten(statements, tree, stock[name])
            for name, tree in made.items()
            if any(table.name in self._results for table in tree.find_all(exp.Table))
        }
        for name, frame in stock.items():
            if isinstance(frame, PySparkException) and name not in changed:
                raise frame
        known = {n: f for n, f in stock.items() if not isinstance(f, PySparkException)}
        return SharedResults({**known, **changed}, self._kept), statements

    def _stock(self, text: str, tree: exp.Query | None) -> DataFrame | PySparkException:
        """Return what Spark makes of a statement; its refusal, where a frame may be the reason."""
        try:
            frame = self.tables.run(text)
            _ = frame.schema  # refuses what Spark does
        except PySparkException as refusal:
            if tree is None or tree.find(exp.Window) is None:
                raise
            return refusal
        return frame

    def _take_over(
        self, select: exp.Select, columns_of: Callable[[exp.Select], frozenset[str]]
    ) -> tuple[TakenOver | None, Mapping[int, str]]:
        """Compile functions OVER frames; rows with their results wait under a name."""
        around = Around(lambda tree: self.tables.run(tree, self._results), columns_of, self.zone)
        found, reasons = rolled(select, around)
        if found is None:
            return None, reasons
        place = place_of(len(self._results))
        self._results[place] = found.frame
        return TakenOver(found.select(place), found.plans, found.text), reasons

    def _rewritten(
        self, statements: Statements, tree: exp.Expr, stock: DataFrame | PySparkException
    ) -> DataFrame:
        """Return the statement over tables of results; as Spark has it if the two differ."""
        if isinstance(stock, PySparkException):
            try:
                return self.tables.run(tree, self._results)
            except PySparkException:
                raise stock from None
        try:
            frame = self.tables.run(tree, self._results)
            if same_types(frame, stock.schema):
                return with_nullability(frame, stock.schema)
            reason = "its columns would be of other types"
        except PySparkException as error:
            reason = _in_parts(error)
        statements.leave_all(reason)
        return stock

    def columns(self, query: exp.Select) -> list[str]:
        """Ask Spark for the columns of a query."""
        try:
            return self.tables.run(query, self._results).columns
        except PySparkException as error:
            raise Obstacle(_in_parts(error)) from error

    def gaining(self, members: Sequence[Member]) -> list[Member]:
        """Return the blocks that Spark computes at a greater price than weft."""
        return worthwhile(members)

    def share(self, group: Group, planner: str) -> Shared:
        """Compile a group, and have tables of its results; nothing is computed yet."""
        members = group.members
        try:
            answers = self.tables.run(group.answers(), self._results).schema
            events = self.events_of(group)
        except PySparkException as error:
            # One of them may be the reason: each is asked by itself.
            unable = [m for m in members if len(members) == 1 or not self._is_able(m)]
            raise Unshareable(
                {member.number: _in_parts(error) for member in unable or members}
            ) from error
        except Obstacle as obstacle:
            raise Unshareable({member.number: str(obstacle) for member in members}) from obstacle
        found = {member.number: obstacle_of(group, member, events) for member in members}
        problems = {number: problem for number, problem in found.items() if problem}
        if problems:
            raise Unshareable(problems)
        return self._place(group, events, answers, planner)

    def _is_able(self, member: Member) -> bool:
        try:
            self.tables.run(Group([member]).answers(), self._results)
        except PySparkException:
            return False
        return True

    def events_of(self, group: Group) -> DataFrame:
        """Return the events of a group, with a time that is a timestamp."""
        events = self.tables.run(group.events(), self._results)
        kind = events.schema[TIME].dataType
        if isinstance(kind, TIMES):
            return events
        if isinstance(kind, T.StructType):
            time: exp.Expr = exp.Anonymous(this="window_time", expressions=[group.time])
        elif isinstance(kind, T.StringType | T.DateType):
            time = exp.Anonymous(this="timestamp", expressions=[group.time])
        else:
            raise Obstacle(f"its event time is of type {kind.simpleString()}")
        return self.tables.run(group.events(time), self._results)

    def _place(
        self, group: Group, events: DataFrame, answers: T.StructType, planner: str
    ) -> Shared:
        """Plan and compile a group; its results wait under the names of their places."""
        keep = IN_ONE_STATEMENT if len(self.texts) == 1 else IN_MEMORY
        # In Catalyst alone: types, order and NULL are Spark's, and no executor needs weft.
        engine: SparkEngine | SparkStreamEngine = SparkEngine(NATIVE, keep)
        if events.isStreaming:
            engine = SparkStreamEngine(NATIVE)
        sources = {EVENTS: events}
        found: Mapping[str, DataFrame | TextRows]
        kept: list[DataFrame] = []
        try:
            plan = plan_for(group.workload(), sources, engine, planner, None, strategy=NATIVE)
            if isinstance(engine, SparkEngine):
                found, kept = engine.untaken(plan, sources)
            else:
                found = engine.run(plan, sources)
        except WeftError as error:
            raise Unshareable({m.number: error.message for m in group.members}) from error
        texts = TextTables.of(group, found, answers)
        places: dict[int, str] = {}
        tables: dict[str, DataFrame | TextRows] = {}
        for member in group.members:
            place = places[member.number] = place_of(len(self._results) + len(tables))
            try:
                if member.number in texts.rows:
                    tables[place] = texts.table(member)
                    continue
                own = {query: taken(found[query]) for query in member.queries}
                rows = united(group, member, own, events)
                tables[place] = table_of(group, member, rows, answers)
            except Obstacle as obstacle:
                raise Unshareable({member.number: str(obstacle)}) from obstacle
        self._kept += kept
        self._results |= tables
        return Shared(plan, places)


def _shareable(text: str) -> exp.Query | None:
    """Read a query whose blocks may be shared."""
    tree = query_of(text)
    if tree is None or any(w.args.get("recursive") for w in tree.find_all(exp.With)):
        return None
    return tree


def _in_parts(error: Exception) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    first = next(filter(None, lines), type(error).__name__)
    return f"Spark does not take it in parts: {first}"
