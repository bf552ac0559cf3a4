"""Nobody runs a statement that is written out: steps of one WITH stand for results of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from weft.errors import WeftError
from weft.plain_sql.partials import lowered, plain_of
from weft.plain_sql.scopes import PlainScopes, check_window
from weft.plan.body import NATIVE
from weft.planners.portfolio import optimize
from weft.statement.blocks import TRUNCATED
from weft.statement.host import Shared, Unshareable
from weft.statement.projection import GROUPING_ID, call_column, grouping_column, key_column
from weft.statement.relations import Obstacle, UnknownColumns, tables_in
from weft.statement.sharing import EVENTS, PRESENT, TIME, WINDOW_COLUMNS, worthwhile
from weft.statement.syntax import written_of
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from weft.plain_sql.partials import Dialect, Types
    from weft.plain_sql.scopes import Step
    from weft.statement.sharing import Group, Member

Planning = Statistics | Mapping[str, Statistics] | None


class KnownTables(Protocol):
    """Tables of a session of Spark, which is asked what a text means."""

    def run(self, statement: str | exp.Expr) -> DataFrame:
        """Hand a query to Spark, which computes nothing yet."""

    @property
    def zone(self) -> str:
        """The zone of the session."""


def _place(number: int) -> str:
    return f"weft_block_{number}"


@dataclass
class PlainHost:
    """The text of a statement in a dialect, and what is known of its tables."""

    dialect: Dialect
    statistics: Planning
    tables: KnownTables | None = None
    steps: list[Step] = field(default_factory=list)
    _groups: int = 0
    _blocks: int = 0

    @property
    def zone(self) -> str:
        """The zone of the session, where one is asked."""
        return self.tables.zone if self.tables is not None else ""

    def listed(self) -> str:
        """Return the steps as they stand in a WITH."""
        return ",\n".join(f"{name} AS (\n{sql}\n)" for name, sql in self.steps)

    def columns(self, query: exp.Select) -> list[str]:
        """Name the columns of a query, as Spark tells them."""
        if self.tables is not None:
            return self._asked(query).columns
        raise UnknownColumns(
            "names of columns take the table to know; name them with AS, or give the table"
        )

    def _asked(self, query: str | exp.Expr) -> DataFrame:
        """Ask Spark of a query that may read the steps there are."""
        from pyspark.errors import PySparkException

        assert self.tables is not None
        text = query if isinstance(query, str) else written_of(query)
        try:
            return self.tables.run(f"WITH {self.listed()} (\n{text}\n)" if self.steps else text)
        except PySparkException as error:
            lines = str(error).splitlines() or [type(error).__name__]
            raise Obstacle(f"Spark does not take it in parts: {lines[0]}") from error

    def gaining(self, members: Sequence[Member]) -> list[Member]:
        """Return the blocks that are better shared; an engine without windows has to have all."""
        return worthwhile(members) if self.dialect == "spark" else list(members)

    def share(self, group: Group, planner: str) -> Shared:
        """Add the steps of a group, and name those that stand for its blocks."""
        group.source = f"{EVENTS}_{self._groups}"
        try:
            events = group.events()
            types = None
            if self.tables is not None and self.dialect == "spark":
                events, types = self._typed(group)
            self._refuse(group, types)
            steps = [(group.source, written_of(events))]
            known = _statistics_of(group, self.statistics)
            workload = group.workload()
            plan = optimize(workload, planner, "spark", known, strategy=NATIVE)
            results: dict[str, str] = {}
            for plain in PlainScopes.of(plan, self.dialect, f"weft_{self._groups}_", types):
                made, ends = plain.steps()
                steps += made
                for scope, end in zip(plain.scopes, ends, strict=True):
                    for query in scope.queries:
                        results[query] = plain.result(end, scope.emits_of(query))
        except Obstacle as obstacle:
            raise Unshareable({m.number: str(obstacle) for m in group.members}) from obstacle
        except WeftError as error:
            raise Unshareable({m.number: error.message for m in group.members}) from error
        places: dict[int, str] = {}
        for at, member in enumerate(group.members, self._blocks):
            places[member.number] = _place(at)
            steps.append((_place(at), _table(group, member, results)))
        self.steps += steps
        self._groups += 1
        self._blocks += len(places)
        return Shared(plan, places)

    def _typed(self, group: Group) -> tuple[exp.Select, Types]:
        """Ask for the types of events; refuse those that results are not made of."""
        from weft.statement.spark.results import TIMES, obstacle_of

        select = group.events()
        events = self._asked(select)
        if events.schema[TIME].dataType.typeName() in ("string", "date"):
            time = exp.Anonymous(this="timestamp", expressions=[group.time])
            select = group.events(time)
            events = self._asked(select)
        types = {own.name: own.dataType for own in events.schema.fields}
        if not isinstance(types[TIME], TIMES):
            raise Obstacle(f"its event time is of type {types[TIME].simpleString()}")
        problems = {m.number: obstacle_of(group, m, events) for m in group.members}
        wrong = {number: problem for number, problem in problems.items() if problem}
        if wrong:
            raise Unshareable(wrong)
        return select, types

    def _refuse(self, group: Group, types: Types | None) -> None:
        """Say which blocks have what cannot be written out; others may do without them."""
        found: dict[int, str] = {}
        for member in group.members:
            query, *_ = group.queries(member)
            try:
                check_window(member.block.window.kind, self.dialect)
                for _, call in query.aggs:
                    for partial in call.partials:
                        plain_of(partial, self.dialect, types)
                    lowered(call, tuple("" for _ in call.partials), self.dialect, types)
            except WeftError as error:
                found[member.number] = error.message
        if found:
            raise Unshareable(found)

    def difference(self, made: str, text: str) -> str | None:
        """Say why a statement is not what it was, as far as Spark can tell before it runs."""
        if self.tables is None:
            return None
        from weft.statement.spark.schema import same_types

        try:
            steps, self.steps = self.steps, []
            same = same_types(self._asked(made), self._asked(text).schema)
        except Obstacle as obstacle:
            return str(obstacle)
        finally:
            self.steps = steps
        return None if same else "its columns would be of other types"


def _statistics_of(group: Group, known: Planning) -> Statistics | None:
    """Return what is known of the events of a group, by the name of a table that they are of."""
    if not isinstance(known, Mapping):
        return known
    names = {name.casefold(): own for name, own in known.items()}
    read = (table.name.casefold() for table in tables_in(group.events()))
    return next((names[name] for name in read if name in names), None)


def _table(group: Group, member: Member, results: Mapping[str, str]) -> str:
    """Return the results of a block as Spark has them: keys, the window, aggregates."""
    block = member.block
    parts = []
    bits = member.grouping_bits or ((),)
    for query, places, told in zip(member.queries, block.key_sets, bits, strict=True):
        keys = [
            key_column(at) if at in places else f"NULL AS {key_column(at)}"
            for at in range(len(block.keys))
        ]
        sets = [f"CAST({bit} AS TINYINT) AS {grouping_column(i)}" for i, bit in enumerate(told)]
        if told:
            sets.append(f"CAST({int(''.join(map(str, told)), 2)} AS BIGINT) AS {GROUPING_ID}")
        listed = ", ".join([*keys, _window(member), *_calls(member), *sets])
        kept = f" WHERE {PRESENT} > 0" if group.own_conditions(member) else ""
        parts.append(f"SELECT {listed} FROM (\n{results[query]}\n) AS rows_of_all{kept}")
    return "\nUNION ALL\n".join(parts)


def _window(member: Member) -> str:
    _, start, end = WINDOW_COLUMNS
    name = member.block.window.name
    if name == TRUNCATED:
        return start if start == name else f"{start} AS {name}"
    return f"named_struct('start', {start}, 'end', {end}) AS {name}"


def _calls(member: Member) -> list[str]:
    found = []
    for number, call in enumerate(member.projection.calls.values()):
        column = call_column(number)
        plain = call.reading == "{0}"
        found.append(column if plain else f"{call.reading.format(column)} AS {column}")
    return found
