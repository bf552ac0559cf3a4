"""Statements over streams: one block each, its windows in a state, the rest as rows leave it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from sqlglot import exp

from weft.engines.spark.streaming.sinks import ToldSink
from weft.errors import UnsupportedError
from weft.query import Query, Workload
from weft.statement.blocks import Surroundings, block_of, window_selects
from weft.statement.projection import Projection
from weft.statement.relations import Obstacle
from weft.statement.shared import Statements
from weft.statement.sharing import EVENTS, Group, Member, together
from weft.statement.spark.results import obstacle_of, table_of
from weft.statement.spark.schema import with_nullability
from weft.statement.spark.tables import Tables, place_of
from weft.statement.streams.clauses import waiting_clause
from weft.statement.syntax import query_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as T

    from weft.engines.spark.streaming.sinks import Origin, Sink
    from weft.statement.spark import SparkHost
    from weft.targets import RowIdentity


@dataclass(frozen=True)
class StreamedStatement:
    """A statement of one block: what is made of rows of its windows when these have closed."""

    group: Group
    member: Member
    answers: T.StructType
    schema: T.StructType

    def of(self, rows: DataFrame) -> DataFrame:
        """Return rows with the columns that Spark gives for the statement."""
        place = place_of(self.member.number)
        results = {place: table_of(self.group, self.member, rows, self.answers)}
        select = self.member.projection.over(place, self.schema.names)
        made = Tables(rows.sparkSession, {}).run(select, results)
        return with_nullability(made, self.schema)


@dataclass(frozen=True)
class StatementSink:
    """A sink that takes the rows of a statement, not those of its windows."""

    sink: Sink | ToldSink
    statement: StreamedStatement
    query: str | None  # where the sink serves several

    def check(self, query: str, identity: RowIdentity | None) -> None:
        """Refuse a sink that has to know which columns tell the rows of a statement apart."""
        if isinstance(self.sink, ToldSink):
            self.sink.check(query, None)

    def write_from(self, rows: DataFrame, batch_id: int, origin: Origin) -> None:
        """Hand over what the statement makes of rows that a micro-batch closed."""
        made = self.statement.of(rows)
        if isinstance(self.sink, ToldSink):
            shared = self.query is not None
            self.sink.write_from(made, batch_id, replace(origin, shared=shared, identity=None))
        else:
            self.sink.write(made, batch_id, self.query)


@dataclass
class StreamStatements(Statements):
    """Statements over streams as a workload, to be started as one streaming query.

    Each is one block; blocks over the same events share a source and a plan. HAVING and the SELECT
    list are no part of the state: they may be others when the stream is started again.
    """

    host: SparkHost

    def parts(
        self,
    ) -> tuple[Workload, dict[str, DataFrame], dict[str, StreamedStatement]]:
        """Return the queries, the events that they read by name, and what is made of each."""
        texts = self.host.texts
        schemas = {name: self.host.tables.run(text).schema for name, text in texts.items()}
        read = [self._member(at, name, text) for at, (name, text) in enumerate(texts.items())]
        groups = [
            Group(members, source=f"{EVENTS}_{number}")
            for number, members in enumerate(together(read))
        ]
        queries: list[Query] = []
        sources: dict[str, DataFrame] = {}
        made: dict[str, StreamedStatement] = {}
        for group in groups:
            try:
                answers = self.host.tables.run(group.answers()).schema
                sources[group.source] = events = self.host.events_of(group)
            except (PySparkException, Obstacle) as error:
                names = ", ".join(member.query for member in group.members)
                raise UnsupportedError(
                    f"the events of {names} cannot be computed by themselves: {error}",
                    hint="run the statements with weft.sql, one by one",
                ) from error
            for member in group.members:
                problem = obstacle_of(group, member, events)
                if problem is not None:
                    raise _unable(member.query, problem)
                queries += group.queries(member)
                made[member.query] = StreamedStatement(
                    group, member, answers, schemas[member.query]
                )
        return Workload(queries), sources, made

    def _member(self, number: int, name: str, text: str) -> Member:
        tree = query_of(text)
        if not isinstance(tree, exp.Select) or window_selects(tree) != [tree]:
            raise _unable(name, "it is not one SELECT that groups by a window")
        waiting = waiting_clause(tree)
        if waiting is not None:
            clause, reason = waiting
            raise UnsupportedError(
                f"{name} has {clause}, and runs as a stream: {reason}",
                hint=f"leave {clause} out, and ask for it where the rows are read",
            )
        zone = self.host.zone
        self._selects.append(tree)
        try:
            block = block_of(tree, Surroundings(self._columns_of, zone))
            if block.sets:
                raise Obstacle("its grouping sets are several results")
            member = Member(number, block, Projection(block, self._columns_of), name)
            member.projection.check_calls()
            member.projection.check()
        except Obstacle as obstacle:
            raise _unable(name, str(obstacle)) from obstacle
        return member


def _unable(name: str, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} cannot be started as a shared stream: {reason}",
        hint="run it with weft.sql over streaming DataFrames, which leaves to Spark what is not "
        "shared",
    )
