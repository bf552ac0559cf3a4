"""A SELECT with frames in two: the rows that Spark computes, and what is made of them after."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from weft.statement.calls import is_aggregate
from weft.statement.over.frames import Over, over_of
from weft.statement.over.functions import TakenCall, taken_call
from weft.statement.relations import Obstacle, Source, select_of_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from weft.plan.anchors import FeaturePlan

    Clause = Literal["select", "where", "order"]

_PARTS = frozenset(
    {
        *("with_", "expressions", "from_", "joins", "laterals", "where", "group", "having"),
        *("order", "limit", "offset", "distinct", "qualify", "windows", "hint"),
    }
)
_AFTER = ("with_", "distinct", "limit", "offset")


@dataclass(frozen=True)
class TakenOver:
    """A SELECT whose frames were taken over: the one in its place, and the plans that run them."""

    select: exp.Select
    plans: tuple[FeaturePlan, ...]
    rows: str  # the SELECT of the rows that the plans read


@dataclass(frozen=True)
class Taken:
    """One aggregate OVER a frame that weft takes over, and the columns that it reads."""

    node: exp.Window
    over: Over
    call: TakenCall
    column: str  # of its results
    keys: tuple[str, ...]
    order: str
    arguments: tuple[str, ...]


@dataclass
class OverRows:
    """The rows of a SELECT, in columns of our own, and the SELECT that is made of them.

    What has no frame of ours in it is computed with the rows, as it stands; of an item that has
    one, every column is, and the item itself after.
    """

    select: exp.Select
    columns_of: Callable[[exp.Select], frozenset[str]]  # what a SELECT reads, in lower case
    source: Source = field(init=False)
    taken: list[Taken] = field(default_factory=list)
    carried: set[str] = field(default_factory=set)  # columns of the rows that it is made of
    _columns: dict[str, tuple[str, exp.Expr]] = field(default_factory=dict)  # by text

    def __post_init__(self) -> None:
        for part, value in self.select.args.items():
            if value and part not in _PARTS:
                raise Obstacle(f"{part.rstrip('_').upper()} is Spark's")
        group = self.select.args.get("group")
        if group is not None and (
            group.args.get("all") or any(isinstance(g, exp.Literal) for g in group.expressions)
        ):
            raise Obstacle("GROUP BY counts the columns of its SELECT")
        self.source = Source.of(self.select)

    @staticmethod
    def windows_of(select: exp.Select) -> Iterator[exp.Window]:
        """Yield the functions OVER frames of a SELECT, those of its subqueries apart."""
        places = list(select.expressions)
        places += [select.args[p] for p in ("order", "qualify") if select.args.get(p)]
        for place in places:
            yield from _windows(place)

    def take(self, node: exp.Window) -> None:
        """Take over one function, or raise the obstacle that there is."""
        named = {w.this.name.casefold(): w for w in self.select.args.get("windows") or ()}
        call = taken_call(node.this)
        over = over_of(node, named)
        keys, order = tuple(map(self.column, over.keys)), self.column(over.order.this)
        arguments = tuple(map(self.column, call.arguments))
        name = f"weft_a{len(self.taken)}"
        self.taken.append(Taken(node, over, call, name, keys, order, arguments))

    def column(self, value: exp.Expr) -> str:
        """Name the column of the rows that holds a value."""
        text = self.source.same_text(value)
        if text not in self._columns:
            self._columns[text] = (f"weft_c{len(self._columns)}", value.copy())
        return self._columns[text][0]

    @property
    def stars(self) -> list[exp.Expr]:
        """The items that stand for any number of columns."""
        return [item for item in self.select.expressions if _is_star(item)]

    def rows(self, starred: Mapping[str, str]) -> exp.Select:
        """Return the SELECT of the rows: columns of stars first, then those that were named."""
        items = [star.copy() for star in self.stars]
        columns = (c for c in self._columns.values() if c[0] not in starred)
        return self.select_of(
            [*items, *(exp.alias_(value.copy(), name) for name, value in columns)]
        )

    def select_of(self, items: list[exp.Expr]) -> exp.Select:
        """Return a SELECT of other items from the same rows."""
        made = select_of_source(self.select, items)
        for part in ("where", "group", "having"):
            if self.select.args.get(part):
                made.set(part, self.select.args[part].copy())
        if self.select.args.get("windows"):
            made.set("windows", [w.copy() for w in self.select.args["windows"]])
        return made

    def starred(self, names: Sequence[str]) -> dict[str, str]:
        """Return the columns that stars bring along, by the text of what they hold.

        A value that is a column of them need not be computed beside them.
        """
        if len(self.stars) != 1 or not isinstance(self.stars[0], exp.Star):
            return {}
        folded = [name.casefold() for name in names]
        once = {name: at for at, name in enumerate(folded) if folded.count(name) == 1}
        found: dict[str, str] = {}
        for name, value in self._columns.values():
            plain = isinstance(value, exp.Column) and len(value.parts) == 1
            if plain and value.name.casefold() in once:
                found[name] = star_column(once[value.name.casefold()])
        return found

    def prepare(self) -> None:
        """Name the columns that the SELECT after needs, before the rows are computed."""
        stars = [[""] for _ in self.stars]
        self.after("rows", stars, [""] * len(self.select.expressions), {})

    def after(
        self,
        table: str,
        stars: Sequence[Sequence[str]],
        names: Sequence[str],
        starred: Mapping[str, str],
    ) -> exp.Select:
        """Return the SELECT over a table of rows with results; `stars` are names of columns."""
        old, made = self.select, exp.Select()
        for part in _AFTER:
            if old.args.get(part):
                made.set(part, old.args[part].copy())
        rewriting = _Rewriting(self, starred)
        items: list[exp.Expr] = []
        waiting, at = list(stars), 0
        for item, name in zip(old.expressions, names, strict=True):
            if _is_star(item):
                own = waiting.pop(0)
                places = [star_column(at + i) for i in range(len(own))]
                items += [_named(exp.column(p), n) for p, n in zip(places, own, strict=True)]
                at += len(own)
            else:
                items.append(_named(rewriting.item(item), name))
        made.set("expressions", items)
        made.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(table))))
        if old.args.get("qualify"):
            # No function OVER rows is left here, and without one Spark takes no QUALIFY.
            condition = rewriting.rewritten(old.args["qualify"].this, "where")
            made.set("where", exp.Where(this=condition))
        if old.args.get("order"):
            made.set("order", rewriting.rewritten(old.args["order"], "order"))
        return made

    def lateral(self, column: exp.Column) -> exp.Expr | None:
        """Return the item of SELECT that a name stands for where it is no column."""
        if len(column.parts) != 1:
            return None
        name = column.name.casefold()
        items = (i for i in self.select.expressions if isinstance(i, exp.Alias))
        found = next((i for i in items if i.alias.casefold() == name), None)
        if found is None or name in self.columns_of(self.select):
            return None
        return found.unalias()


def star_column(number: int) -> str:
    """Name a column that a star brings along."""
    return f"weft_s{number}"


def _is_star(item: exp.Expr) -> bool:
    return item.is_star and not isinstance(item, exp.Alias | exp.Anonymous)


def _named(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _windows(node: exp.Expr) -> Iterator[exp.Window]:
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        yield node
        return
    for child in node.iter_expressions():
        yield from _windows(child)


@dataclass
class _Rewriting:
    """Puts columns of the rows in place of what was computed with them."""

    rows: OverRows
    starred: Mapping[str, str]

    def item(self, item: exp.Expr) -> exp.Expr:
        value = item.unalias()
        return self.rewritten(value, "select") if self._is_after(value) else self._computed(value)

    def rewritten(self, old: exp.Expr, clause: Clause) -> exp.Expr:
        return self._after(old.copy(), old, clause)

    @cached_property
    def _outputs(self) -> frozenset[str]:
        items = self.rows.select.expressions
        return frozenset(i.alias_or_name.casefold() for i in items if not _is_star(i))

    def _is_after(self, value: exp.Expr) -> bool:
        own = {id(taken.node) for taken in self.rows.taken}
        if any(id(node) in own for node in _windows(value)):
            return True
        columns = (c for c in value.find_all(exp.Column) if not _in_query(c, value))
        return any(self.rows.lateral(column) is not None for column in columns)

    def _after(self, made: exp.Expr, old: exp.Expr, clause: Clause) -> exp.Expr:
        """Rewrite a copy along with the tree that it was copied from."""
        taken = next((t for t in self.rows.taken if t.node is old), None)
        if taken is not None:
            return exp.column(taken.column)
        if isinstance(old, exp.Column):
            if clause == "order" and len(old.parts) == 1 and old.name.casefold() in self._outputs:
                return made  # what is selected comes first
            item = self.rows.lateral(old)
            if item is None:
                return self._computed(old)
            return exp.Paren(this=self.rewritten(item, clause)) if clause == "where" else made
        apart = isinstance(old, exp.Window | exp.Query | exp.Subquery | exp.Exists)
        if apart or is_aggregate(old) or _has_lambda(old):
            if self._is_after(old):
                raise Obstacle(f"{old.sql()} is computed with what is computed after it")
            return self._computed(old)
        if isinstance(old, exp.Star):
            raise Obstacle("a star stands in an expression")
        pairs = zip(list(made.iter_expressions()), list(old.iter_expressions()), strict=True)
        for child, own in pairs:
            if not isinstance(own, exp.Identifier | exp.DataType):
                found = self._after(child, own, clause)
                if found is not child:
                    child.replace(found)
        return made

    def _computed(self, value: exp.Expr) -> exp.Expr:
        name = self.rows.column(value)
        self.rows.carried.add(name)
        return exp.column(self.starred.get(name, name))


def _has_lambda(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and any(
        isinstance(argument, exp.Lambda) for argument in node.expressions
    )


def _in_query(node: exp.Expr, top: exp.Expr) -> bool:
    above: exp.Expr | None = node
    while above is not None and above is not top:
        if isinstance(above, exp.Query):
            return True
        above = above.parent
    return isinstance(top, exp.Query)
