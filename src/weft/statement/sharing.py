"""Sharing: blocks over the same events become one workload, and their results tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.aggregates import AggregateCall
from weft.query import Query, Workload
from weft.statement.calls import SharedCall, all_of, where_holds
from weft.statement.projection import Projection, call_column, key_column
from weft.statement.relations import select_of_source
from weft.window import SessionWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft.statement.blocks import Block

TIME = "weft_time"
EVENTS = "weft_events"
WINDOW_COLUMNS = ("weft_window", "weft_start", "weft_end")
PRESENT = "weft_present"  # counts the events that a block keeps, where others keep more


@dataclass(frozen=True)
class Member:
    """A block of a group, and the SELECT over its results."""

    number: int  # of the block in the statement
    block: Block
    projection: Projection
    name: str = ""  # of the statement, where a block is all of it

    @property
    def query(self) -> str:
        """The name of its query in the workload."""
        return self.name or f"block {self.number + 1}"

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of its queries: of several grouping sets each has one."""
        if not self.block.sets:
            return (self.query,)
        return tuple(f"{self.query} set {at}" for at, _ in enumerate(self.block.sets, 1))

    @property
    def conditions(self) -> dict[str, exp.Expr]:
        """What events have to meet, by texts that are equal when they are."""
        source = self.block.source
        return {source.same_text(one): source.bare(one) for one in self.block.conditions}

    @property
    def grouping_bits(self) -> tuple[tuple[int, ...], ...]:
        """Tell for each set what it leaves out of all that is grouped by, in Spark's order."""
        block = self.block
        texts = [block.source.same_text(key) for key in block.keys]
        kept = [{texts[at] for at in places} for places in block.sets]
        return tuple(
            tuple(int(text in texts and text not in own) for text in block.numbered) for own in kept
        )


@dataclass
class Group:
    """Blocks over the same events by the same time: one SELECT of events, one workload."""

    members: list[Member]
    source: str = EVENTS
    _columns: dict[str, str] = field(default_factory=dict)  # text of an expression -> column
    _trees: dict[str, exp.Expr] = field(default_factory=dict)

    @cached_property
    def _kept_by_all(self) -> dict[str, exp.Expr]:
        """Conditions that every block has, by their text."""
        first, *others = self.members
        common = first.conditions
        for other in others:
            own = other.conditions
            common = {text: node for text, node in common.items() if text in own}
        return common

    def own_conditions(self, member: Member) -> list[exp.Expr]:
        """Return the conditions of a block that not all of the others have."""
        own = member.conditions
        return [node for text, node in own.items() if text not in self._kept_by_all]

    def events(self, time: exp.Expr | None = None) -> exp.Select:
        """Return the SELECT of what the blocks read: time, keys and arguments, computed once."""
        for member in self.members:
            self.queries(member)  # names the columns
        items = [exp.alias_(time or self.time, TIME)]
        for text, name in self._columns.items():
            items.append(exp.alias_(self._trees[text].copy(), name))
        select = select_of_source(self.members[0].block.select, items)
        condition = self._condition()
        if condition is not None:
            select.set("where", exp.Where(this=condition))
        return select

    @property
    def time(self) -> exp.Expr:
        """The event time of all blocks."""
        block = self.members[0].block
        return block.source.bare(block.window.time)

    def _condition(self) -> exp.Expr | None:
        wanted = list(self._kept_by_all.values())
        own = [self.own_conditions(member) for member in self.members]
        if all(own):
            either: exp.Expr = exp.Paren(this=all_of(own[0]))
            for conditions in own[1:]:
                either = exp.Or(this=either, expression=exp.Paren(this=all_of(conditions)))
            wanted.append(exp.Paren(this=either))
        return all_of(wanted) if wanted else None

    def _column(self, member: Member, node: exp.Expr) -> str:
        text = member.block.source.same_text(node)
        self._trees.setdefault(text, member.block.source.bare(node))
        return self._columns.setdefault(text, f"weft_c{len(self._columns)}")

    def call(self, member: Member, call: SharedCall) -> AggregateCall:
        """Return a call over columns of the events that this block keeps."""
        own = self.own_conditions(member)
        arguments = call.arguments
        if own and not arguments:
            arguments = (exp.Literal.number(1),)
        columns = tuple(self._column(member, where_holds(a, own)) for a in arguments)
        return AggregateCall(call.function, (*columns, *call.numbers))

    def queries(self, member: Member) -> tuple[Query, ...]:
        """Return the queries of a block over the events: one for each set that it groups by."""
        own = self.own_conditions(member)
        aggs = {
            call_column(i): self.call(member, call)
            for i, call in enumerate(member.projection.calls.values())
        }
        if own or not aggs:
            aggs[PRESENT] = self.call(member, SharedCall("count", ()))
        keys = [self._column(member, key) for key in member.block.keys]
        return tuple(
            Query(
                name,
                source=self.source,
                time=TIME,
                keys={key_column(i): keys[i] for i in places},
                windows={"w": member.block.window.kind},
                aggs=aggs,
                window_columns=WINDOW_COLUMNS,
            )
            for name, places in zip(member.queries, member.block.key_sets, strict=True)
        )

    def key_names(self, member: Member) -> dict[str, str]:
        """Return the column of events of each key, by its column of results."""
        return {key_column(i): self._column(member, k) for i, k in enumerate(member.block.keys)}

    def workload(self) -> Workload:
        """Return the queries of all blocks."""
        return Workload(query for member in self.members for query in self.queries(member))

    def answers(self) -> exp.Select:
        """Return a SELECT of all aggregates as Spark computes them, for their types alone.

        Everything that is computed stands in an aggregate, where Spark takes nothing that differs
        from call to call.
        """
        select = self.events()
        computed = [item.unalias() for item in select.expressions]
        computed += [
            exp.Paren(this=condition)
            for member in self.members
            for condition in member.conditions.values()
        ]
        # Spark takes no subquery in an aggregate either.
        plain = [value for value in computed if value.find(exp.Query) is None]
        counted = [exp.Anonymous(this="count", expressions=[value]) for value in plain]
        listed = [
            exp.alias_(member.block.source.bare(node), self.answer(member, number))
            for member in self.members
            for number, node in enumerate(member.projection.nodes)
        ]
        select.set("expressions", [*listed, *counted])
        select.set("where", None)
        return select

    @staticmethod
    def answer(member: Member, number: int) -> str:
        """Name the column of an aggregate among those of all blocks."""
        return f"{call_column(number)}_{member.number}"


def together(members: Iterable[Member]) -> list[list[Member]]:
    """Bring blocks together that can share events.

    A filter decides which sessions there are, so a block of sessions is only with blocks that keep
    the same events.
    """
    groups: dict[tuple[str, str], list[Member]] = {}
    for member in members:
        groups.setdefault(member.block.events, []).append(member)
    return [part for own in groups.values() for part in _parts(own)]


def _parts(members: list[Member]) -> Iterable[list[Member]]:
    if len({frozenset(member.conditions) for member in members}) == 1:
        return [members]
    parts: dict[frozenset[str] | None, list[Member]] = {}
    for member in members:
        by_events = isinstance(member.block.window.kind, SessionWindow)
        parts.setdefault(frozenset(member.conditions) if by_events else None, []).append(member)
    return parts.values()


def worthwhile(members: Sequence[Member]) -> list[Member]:
    """Return the blocks that gain from sharing.

    A block gains when another one has the same events and keys, when it has several grouping sets,
    for which Spark copies each event, or when its own windows overlap, where Spark does so too.
    """
    scopes = Counter(texts for member in members for texts in set(member.block.key_texts))
    return [
        m
        for m in members
        if m.block.window.overlaps
        or len(m.block.sets) > 1
        or any(scopes[texts] > 1 for texts in m.block.key_texts)
    ]


ALONE = "no other block has its events and keys, and its windows do not overlap"
