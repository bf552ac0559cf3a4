"""Statements in the hands of Spark, their window aggregates shared where that pays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import types as T
from sqlglot import exp

from weft.engines.spark.engine import SparkEngine
from weft.engines.spark.shared_rows import SharedResults, in_memory, in_one_statement
from weft.errors import WeftError
from weft.plan.body import NATIVE
from weft.query import Workload
from weft.running import plan_for
from weft.statement.blocks import Surroundings, block_of, window_selects
from weft.statement.projection import Projection, own_name
from weft.statement.relations import Obstacle, Source, definitions_for, select_of_source
from weft.statement.results import TIMES, obstacle_of, table_of
from weft.statement.schema import same_types, with_nullability
from weft.statement.sharing import ALONE, EVENTS, TIME, Group, Member, worthwhile
from weft.statement.syntax import query_of, written_of
from weft.statement.tables import place_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.plan import Plan
    from weft.statement.tables import Tables


@dataclass(frozen=True)
class Note:
    """What became of one block of a statement.

    >>> print(Note(2, "SELECT ... GROUP BY site", shared=False, reason="mode is not shared"))
    block 2 runs as Spark runs it: mode is not shared
    """

    number: int  # from 1, in the order of the text
    text: str
    shared: bool
    reason: str = ""

    def __str__(self) -> str:
        if self.shared:
            return f"block {self.number} is shared"
        return f"block {self.number} runs as Spark runs it: {self.reason}"


@dataclass
class Statements:
    """Queries in the hands of Spark, their shared blocks as tables of results.

    Blocks of one query share inside what Spark runs for it; those of several queries, which are
    run one after another, share rows that are kept in memory.
    """

    tables: Tables
    texts: Mapping[str, str]  # by name
    planner: str = "auto"
    plans: list[Plan] = field(default_factory=list)
    events: list[str] = field(default_factory=list)  # the SELECT of the events of each plan
    _selects: list[exp.Select] = field(default_factory=list)
    _notes: dict[int, Note] = field(default_factory=dict)
    _results: dict[str, DataFrame] = field(default_factory=dict)
    _columns: dict[str, frozenset[str]] = field(default_factory=dict)
    _kept: list[DataFrame] = field(default_factory=list)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What became of each block, in the order of the text."""
        return tuple(note for _, note in sorted(self._notes.items()))

    def run(self) -> SharedResults:
        """Return what Spark returns, from shared plans where blocks share."""
        stock = {name: self.tables.run(text) for name, text in self.texts.items()}
        schemas = {name: frame.schema for name, frame in stock.items()}  # refuses what Spark does
        # Where case tells columns apart, texts would have to be compared in another way.
        told_apart = self.tables.session.conf.get("spark.sql.caseSensitive") == "true"
        texts = {} if told_apart else self.texts
        trees = {name: tree for name, text in texts.items() if (tree := _shareable(text))}
        made = self._with_results(trees)
        changed = {
            name: self._rewritten(tree, stock[name], schemas[name])
            for name, tree in made.items()
            if any(table.name in self._results for table in tree.find_all(exp.Table))
        }
        return SharedResults({**stock, **changed}, self._kept)

    def _rewritten(self, tree: exp.Expr, stock: DataFrame, schema: T.StructType) -> DataFrame:
        """Return the statement over tables of results; as Spark has it if the two differ."""
        try:
            frame = self.tables.run(tree, self._results)
            if same_types(frame, schema):
                return with_nullability(frame, schema)
            reason = "its columns would be of other types"
        except PySparkException as error:
            reason = _in_parts(error)
        self._notes = {
            at: replace(note, shared=False, reason=note.reason or reason)
            for at, note in self._notes.items()
        }
        return stock

    def _with_results(self, trees: Mapping[str, exp.Query]) -> dict[str, exp.Expr]:
        """Replace blocks by tables of their results, those first that read no other block."""
        # Under a parent, so that a whole statement can be replaced too.
        roots = {name: exp.Paren(this=tree) for name, tree in trees.items()}
        self._selects = [select for tree in trees.values() for select in window_selects(tree)]
        pending = dict(enumerate(self._selects))
        while pending:
            rest = {id(select) for select in pending.values()}
            ready = {at: s for at, s in pending.items() if not _reads_any(s, rest - {id(s)})}
            for members in self._groups(ready or pending):
                self._share(members)
            pending = {at: s for at, s in pending.items() if ready and at not in ready}
        return {name: root.this for name, root in roots.items()}

    def _groups(self, selects: Mapping[int, exp.Select]) -> list[list[Member]]:
        """Read blocks, and bring those together that read the same events."""
        groups: dict[tuple[str, str], list[Member]] = {}
        zone = self.tables.session.conf.get("spark.sql.session.timeZone") or ""
        around = Surroundings(self._columns_of, zone)
        for number, select in selects.items():
            try:
                block = block_of(select, around)
                member = Member(number, block, Projection(block, self._columns_of))
                member.projection.check_calls()
                groups.setdefault(block.events, []).append(member)
            except Obstacle as obstacle:
                self._leave(number, str(obstacle))
        return list(groups.values())

    def _leave(self, number: int, reason: str) -> None:
        self._note(number, shared=False, reason=reason)

    def _note(self, number: int, *, shared: bool, reason: str = "") -> None:
        text = written_of(self._selects[number])
        self._notes[number] = Note(number + 1, text, shared, reason)

    def _columns_of(self, select: exp.Select) -> frozenset[str]:
        """Return the columns that a SELECT reads, in lower case."""
        text = Source.of(select).text
        if text not in self._columns:
            try:
                every = select_of_source(select, [exp.Star()])
                found = self.tables.run(every, self._results).columns
            except PySparkException as error:
                raise Obstacle(_in_parts(error)) from error
            self._columns[text] = frozenset(name.casefold() for name in found)
        return self._columns[text]

    def _share(self, members: Sequence[Member]) -> None:
        """Share what gains from it and can be; a block that cannot is left, and the rest tried."""
        able = worthwhile(members)
        left = {m.number: ALONE for m in members if m not in able}
        if able and not left:
            group = Group(list(able))
            left = self._attempt(group)
        for number, reason in left.items():
            self._leave(number, reason)
        rest = [member for member in members if member.number not in left]
        if left and rest:
            self._share(rest)

    def _attempt(self, group: Group) -> dict[int, str]:
        """Put a group in place; where that cannot be, do nothing and say which blocks forbid it."""
        members = group.members
        for member in members:
            try:
                member.projection.check()
            except Obstacle as obstacle:
                return {member.number: str(obstacle)}
        try:
            answers = self.tables.run(group.answers(), self._results).schema
            events = self._events(group)
        except PySparkException as error:
            # One of them may be the reason: each is asked by itself.
            unable = [m for m in members if len(members) == 1 or not self._is_able(m)]
            return {member.number: _in_parts(error) for member in unable or members}
        except Obstacle as obstacle:
            return {member.number: str(obstacle) for member in members}
        problems = {m.number: obstacle_of(group, m, events) for m in members}
        if any(problems.values()):
            return {number: problem for number, problem in problems.items() if problem}
        return self._place(group, events, answers)

    def _is_able(self, member: Member) -> bool:
        try:
            self.tables.run(Group([member]).answers(), self._results)
        except PySparkException:
            return False
        return True

    def _events(self, group: Group) -> DataFrame:
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

    def _place(self, group: Group, events: DataFrame, answers: T.StructType) -> dict[int, str]:
        """Plan and compile a group, and put tables of results in place of its blocks."""
        keep = in_one_statement if len(self.texts) == 1 else in_memory
        # In Catalyst alone: types, order and NULL are Spark's, and no executor needs weft.
        engine = SparkEngine(NATIVE, keep)
        sources = {EVENTS: events}
        try:
            workload = Workload(group.query(member) for member in group.members)
            plan = plan_for(workload, sources, engine, self.planner, None, strategy=NATIVE)
            results = engine.run(plan, sources)
        except WeftError as error:
            return {member.number: error.message for member in group.members}
        made: dict[int, tuple[str, DataFrame, exp.Select]] = {}
        for member in group.members:
            place = place_of(len(self._results) + len(made))
            try:
                table = table_of(group, member, results[member.query], answers)
                select = member.projection.over(place, self._names(member))
            except Obstacle as obstacle:
                return {member.number: str(obstacle)}
            made[member.number] = (place, table, select)
        self.plans.append(plan)
        self.events.append(written_of(group.events()))
        self._kept += results.taken()
        for member in group.members:
            place, table, select = made[member.number]
            self._results[place] = table
            self._note(member.number, shared=True)
            member.block.select.replace(select)
        return {}

    def _names(self, member: Member) -> list[str]:
        """Return the names of a block's columns; Spark is asked for those that it makes."""
        select = member.block.select
        names = [own_name(item) for item in select.expressions]
        known = [name for name in names if name is not None]
        if len(known) == len(names):
            return known
        whole = select_of_source(select, [item.copy() for item in select.expressions])
        for part in ("where", "group"):
            if select.args.get(part):
                whole.set(part, select.args[part].copy())
        return self.tables.run(whole, self._results).columns


def _shareable(text: str) -> exp.Query | None:
    """Read a query whose blocks may be shared."""
    tree = query_of(text)
    if tree is None or any(w.args.get("recursive") for w in tree.find_all(exp.With)):
        return None
    return tree


def _reads_any(select: exp.Select, others: set[int]) -> bool:
    try:
        definitions = definitions_for(select)
    except Obstacle:
        return False  # and reading it as a block will say why
    trees = [select, *(cte.this for cte in definitions)]
    return any(id(node) in others for tree in trees for node in tree.find_all(exp.Select))


def _in_parts(error: Exception) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    first = next(filter(None, lines), type(error).__name__)
    return f"Spark does not take it in parts: {first}"
