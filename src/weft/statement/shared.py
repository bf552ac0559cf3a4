"""Statements whose blocks are shared: tables of results stand in their place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.blocks import WINDOWS, Surroundings, block_of, window_selects
from weft.statement.host import Unshareable
from weft.statement.notes import Note, OverNote
from weft.statement.over.rows import OverRows
from weft.statement.projection import Projection, own_name
from weft.statement.relations import Obstacle, Source, definitions_for, select_of_source
from weft.statement.sharing import ALONE, Group, Member, together
from weft.statement.spellings import gather_cumulations
from weft.statement.streams.clauses import stream_obstacle
from weft.statement.syntax import tokens_of, written_of
from weft.statement.told_columns import columns_told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from weft.plan import Plan
    from weft.plan.anchors import FeaturePlan
    from weft.statement.host import Host
    from weft.statement.over.rows import TakenOver

    ColumnsOf = Callable[[exp.Select], frozenset[str]]  # what a SELECT reads, in lower case
    # Takes over frames of a SELECT, and says why others are left, by their place in it.
    TakeOver = Callable[[exp.Select, ColumnsOf], tuple[TakenOver | None, Mapping[int, str]]]


@dataclass
class Statements:
    """Queries of which blocks are shared, whoever runs the rest of them."""

    host: Host
    planner: str = "auto"
    take_over: TakeOver | None = None  # of a host that leaves functions OVER frames to weft
    streaming: bool = False  # rows leave when windows close, and no row waits for all
    plans: list[Plan | FeaturePlan] = field(default_factory=list)
    events: list[str] = field(default_factory=list)  # the SELECT of the events of each plan
    _selects: list[exp.Select] = field(default_factory=list)
    _notes: dict[int, Note] = field(default_factory=dict)
    _columns: dict[str, frozenset[str]] = field(default_factory=dict)
    _over: dict[str, OverNote] = field(default_factory=dict)  # by the text of the function
    _unread: list[Note] = field(default_factory=list)  # of statements that no tree was made of

    @property
    def notes(self) -> tuple[Note | OverNote, ...]:
        """What became of each block, in the order of the text, and of functions OVER frames."""
        read = (note for _, note in sorted(self._notes.items()))
        return (*read, *self._unread, *self._over.values())

    def leave_unread(self, text: str, reason: str) -> None:
        """Say of a whole statement that Spark runs it, if it may have blocks."""
        tokens = tokens_of(text)
        words = {token.text.casefold() for token in tokens or ()}
        if tokens is None or not words.isdisjoint(WINDOWS):
            self._unread.append(Note(0, text, shared=False, reason=reason))

    def leave_all(self, reason: str) -> None:
        """Say that nothing is shared after all."""
        self._notes = {
            at: replace(note, shared=False, reason=note.reason or reason)
            for at, note in self._notes.items()
        }
        self._over = {
            text: replace(note, taken=False, reason=note.reason or reason)
            for text, note in self._over.items()
        }

    def with_results(self, trees: Mapping[str, exp.Query]) -> dict[str, exp.Expr]:
        """Replace blocks by tables of their results, those first that read no other block."""
        # Under a parent, so that a whole statement can be replaced too.
        roots = {name: exp.Paren(this=tree) for name, tree in trees.items()}
        for tree in trees.values():
            gather_cumulations(tree)
        self._selects = [select for tree in trees.values() for select in window_selects(tree)]
        self._take_over(roots.values())
        pending = dict(enumerate(self._selects))
        while pending:
            rest = {id(select) for select in pending.values()}
            ready = {at: s for at, s in pending.items() if not _reads_any(s, rest - {id(s)})}
            for members in self._groups(ready or pending):
                self._share(members)
            pending = {at: s for at, s in pending.items() if ready and at not in ready}
        self._take_over(roots.values())
        return {name: root.this for name, root in roots.items()}

    def _take_over(self, roots: Iterable[exp.Expr]) -> None:
        """Take over functions OVER frames, first of the SELECTs that others read.

        Those that read a block wait until its results are in place.
        """
        if self.take_over is None:
            return
        blocks = {id(select) for root in roots for select in window_selects(root)}
        for select in [s for root in roots for s in reversed(list(root.find_all(exp.Select)))]:
            texts = [written_of(window) for window in OverRows.windows_of(select)]
            if not texts or id(select) in blocks or _reads_any(select, blocks):
                continue
            found, reasons = self.take_over(select, self._columns_of)
            for at, text in enumerate(texts):
                known = self._over.get(text, OverNote(text, taken=True))
                left = at in reasons
                self._over[text] = OverNote(text, False, reasons[at]) if left else known
            if found is not None:
                self.plans += found.plans
                self.events += [found.rows] * len(found.plans)
                select.replace(found.select)

    def _groups(self, selects: Mapping[int, exp.Select]) -> list[list[Member]]:
        """Read blocks, and bring those together that can share events."""
        read: list[Member] = []
        around = Surroundings(self._columns_of, self.host.zone)
        for number, select in selects.items():
            try:
                unable = stream_obstacle(select) if self.streaming else None
                if unable is not None:
                    raise Obstacle(unable)
                block = block_of(select, around)
                if self.streaming and block.sets:
                    raise Obstacle("each of its grouping sets would read the stream")
                member = Member(number, block, Projection(block, self._columns_of))
                member.projection.check_calls()
                read.append(member)
            except Obstacle as obstacle:
                self._leave(number, str(obstacle))
        if self.streaming:
            # A stream is read once for each branch: together they would compute all twice.
            return [[member] for member in read]
        return together(read)

    def _leave(self, number: int, reason: str) -> None:
        self._note(number, shared=False, reason=reason)

    def _note(self, number: int, *, shared: bool, reason: str = "") -> None:
        text = written_of(self._selects[number])
        self._notes[number] = Note(number + 1, text, shared, reason)

    def _columns_of(self, select: exp.Select) -> frozenset[str]:
        """Return the columns that a SELECT reads, in lower case."""
        text = Source.of(select).text
        if text not in self._columns:
            query = select_of_source(select, [exp.Star()])
            # A text that lists its columns itself need not be asked about.
            found = columns_told(query) or self.host.columns(query)
            self._columns[text] = frozenset(name.casefold() for name in found)
        return self._columns[text]

    def _share(self, members: Sequence[Member]) -> None:
        """Share what gains from it and can be; a block that cannot is left, and the rest tried."""
        able = self.host.gaining(members)
        left = {m.number: ALONE for m in members if m not in able}
        if able and not left:
            left = self._attempt(Group(list(able)))
        for number, reason in left.items():
            self._leave(number, reason)
        rest = [member for member in members if member.number not in left]
        if left and rest:
            self._share(rest)

    def _attempt(self, group: Group) -> dict[int, str]:
        """Put a group in place; where that cannot be, do nothing and say which blocks forbid it."""
        names: dict[int, list[str]] = {}
        for member in group.members:
            try:
                member.projection.check()
                names[member.number] = self._names(member)
            except Obstacle as obstacle:
                return {member.number: str(obstacle)}
        try:
            shared = self.host.share(group, self.planner)
        except Unshareable as obstacles:
            return obstacles.reasons
        self.plans.append(shared.plan)
        self.events.append(written_of(group.events()))
        for member in group.members:
            number = member.number
            self._note(number, shared=True)
            member.block.select.replace(
                member.projection.over(shared.places[number], names[number])
            )
        return {}

    def _names(self, member: Member) -> list[str]:
        """Return the names of a block's columns; the host is asked for those that Spark makes."""
        select = member.block.select
        names = [own_name(item) for item in select.expressions]
        if _names_are_free(select):
            return [name or f"weft_column_{at}" for at, name in enumerate(names)]
        known = [name for name in names if name is not None]
        if len(known) == len(names):
            return known
        whole = select_of_source(select, [item.copy() for item in select.expressions])
        for part in ("where", "group"):
            if select.args.get(part):
                whole.set(part, select.args[part].copy())
        return self.host.columns(whole)


def _names_are_free(select: exp.Select) -> bool:
    """Tell whether nobody sees the names of columns: those of another branch are taken."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.SetOperation | exp.Subquery | exp.Paren):
        above = node.parent
        if isinstance(above, exp.SetOperation):
            if above.args.get("by_name"):
                return False
            if above.expression is node:
                return True
        elif above.args.get("alias"):
            return False
        node = above
    return False


def _reads_any(select: exp.Select, others: set[int]) -> bool:
    try:
        definitions = definitions_for(select)
    except Obstacle:
        return False  # and reading it as a block will say why
    trees = [select, *(cte.this for cte in definitions)]
    return any(id(node) in others for tree in trees for node in tree.find_all(exp.Select))
