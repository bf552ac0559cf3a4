"""What a block makes of its groups: its SELECT, read from a table of results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.blocks import WINDOWS
from weft.statement.calls import SharedCall, aggregates_in, is_aggregate, shared_call
from weft.statement.relations import Obstacle, UnknownColumns
from weft.statement.syntax import is_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.statement.blocks import Block

    Reading = Callable[[exp.Column, str | None], exp.Expr]  # a name, and its column of results

# Clauses that are computed from groups, in which aggregates may stand.
_CLAUSES = ("having", "order", "qualify", "windows")


def key_column(number: int) -> str:
    """Name the column of a key in a table of results."""
    return f"weft_k{number}"


def call_column(number: int) -> str:
    """Name the column of an aggregate in a table of results."""
    return f"weft_a{number}"


GROUPING_ID = "weft_grouping_id"  # which set a row is of, as Spark tells it
_TOLD = ("grouping", "grouping_id")  # what a row says of its set, not of its events


def grouping_column(number: int) -> str:
    """Name the column that tells whether rows of a set leave out what is grouped by."""
    return f"weft_g{number}"


@dataclass(frozen=True)
class Projection:
    """The SELECT of a block over the columns of its results."""

    block: Block
    columns_of: Callable[[exp.Select], frozenset[str]]  # what a SELECT reads, in lower case

    @cached_property
    def nodes(self) -> tuple[exp.Expr, ...]:
        """The aggregates of the block, each once."""
        select = self.block.select
        clauses = [select.args.get(clause) for clause in _CLAUSES]
        listed = [n for c in clauses for n in (c if isinstance(c, list) else [c]) if n is not None]
        found: dict[str, exp.Expr] = {}
        for part in (*select.expressions, *listed):
            for node in (n for n in aggregates_in(part) if not is_call(n, *_TOLD)):
                found.setdefault(self.block.source.same_text(node), node)
        return tuple(found.values())

    @cached_property
    def calls(self) -> dict[str, SharedCall]:
        """The aggregates as weft computes them, by their text."""
        return {self.block.source.same_text(node): shared_call(node) for node in self.nodes}

    @cached_property
    def columns(self) -> dict[str, str]:
        """The column of results that stands for each text."""
        text = self.block.source.same_text
        keys = {text(key): key_column(i) for i, key in enumerate(self.block.keys)}
        calls = {call: call_column(i) for i, call in enumerate(self.calls)}
        return {self.block.window.call: self.block.window.name, **keys, **calls}

    @cached_property
    def _aliases(self) -> dict[str, exp.Expr]:
        items = self.block.select.expressions
        return {i.alias.casefold(): i.this for i in items if isinstance(i, exp.Alias)}

    @cached_property
    def _outputs(self) -> frozenset[str]:
        return frozenset(i.alias_or_name.casefold() for i in self.block.select.expressions)

    def check_calls(self) -> None:
        """Raise the obstacle that there is to sharing an aggregate."""
        for node in self.nodes:
            shared_call(node)

    def check(self) -> None:
        """Raise the obstacle that there is to reading from results, before they are computed."""
        self.over("results", [""] * len(self.block.select.expressions))

    def over(self, table: str, names: Sequence[str]) -> exp.Select:
        """Return the SELECT that reads a table of results; `names` are those of its columns."""
        old = self.block.select
        select = exp.Select()
        for part in ("with_", "distinct", "limit", "offset"):
            if old.args.get(part):
                select.set(part, old.args[part].copy())
        select.set("expressions", self._items(names))
        select.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(table))))
        having = old.args.get("having")
        if having is not None:
            condition = self._rewritten(having.this.copy(), self._of_having)
            select.set("where", exp.Where(this=condition))
        if old.args.get("order"):
            select.set("order", self._rewritten(old.args["order"].copy(), self._of_order))
        if old.args.get("qualify"):
            select.set("qualify", self._rewritten(old.args["qualify"].copy(), self._of_select))
        if old.args.get("windows"):
            named = [self._rewritten(w.copy(), self._of_select) for w in old.args["windows"]]
            select.set("windows", named)
        return select

    def _items(self, names: Sequence[str]) -> list[exp.Expr]:
        items: list[exp.Expr] = []
        for item, name in zip(self.block.select.expressions, names, strict=True):
            value = self._rewritten(item.unalias().copy(), self._of_select)
            items.append(exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True)))
        return items

    def _rewritten(self, node: exp.Expr, column: Reading) -> exp.Expr:
        """Put columns of results in place of keys, windows and aggregates; the tree is ours."""
        if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
            return node
        known = self.columns.get(self.block.source.same_text(node))
        if known is not None and not isinstance(node, exp.Column):
            return exp.column(known)
        if isinstance(node, exp.Column):
            return column(node, known)
        if is_call(node, *_TOLD):
            return exp.column(self._told(node))
        if is_aggregate(node) or isinstance(node, exp.Star):
            raise Obstacle(f"{node.sql()} is not among its results")
        if isinstance(node, exp.Alias):
            node.set("this", self._rewritten(node.this, column))
            return node
        if is_call(node, "arrays_zip"):
            raise Obstacle("arrays_zip names fields by what is in it")
        if is_call(node, "struct"):
            self._name_fields(node)
        for child in list(node.iter_expressions()):
            if not isinstance(child, exp.Identifier):
                made = self._rewritten(child, column)
                if made is not child:
                    child.replace(made)
        return node

    @staticmethod
    def _name_fields(call: exp.Expr) -> None:
        """Write the names out that fields of a struct have by what is in it."""
        for at, field in enumerate(call.expressions, 1):
            if not isinstance(field, exp.Alias):
                name = field.name if isinstance(field, exp.Column | exp.Dot) else f"col{at}"
                field.replace(exp.alias_(field.copy(), name, quoted=True))

    def _told(self, call: exp.Expr) -> str:
        """Return the column of results that GROUPING(key) or GROUPING_ID() is."""
        texts = tuple(map(self.block.source.same_text, call.expressions))
        numbered = self.block.numbered
        if is_call(call, "grouping") and len(texts) == 1 and texts[0] in numbered:
            return grouping_column(numbered.index(texts[0]))
        if is_call(call, "grouping_id") and texts in ((), numbered) and numbered:
            return GROUPING_ID
        raise Obstacle(f"{call.sql()} is Spark's")

    def _of_select(self, node: exp.Column, known: str | None) -> exp.Expr:
        if known is not None:
            return exp.column(known)
        if self._names_window(node):
            return node
        if node.parts[0].name.casefold() in self._aliases:
            return node  # of an item before this one
        raise Obstacle(f"{node.sql()} is neither a key nor in an aggregate")

    def _of_order(self, node: exp.Column, known: str | None) -> exp.Expr:
        """Read a name as ORDER BY does: what is selected comes first."""
        if len(node.parts) == 1 and node.name.casefold() in self._outputs:
            return node
        return self._of_select(node, known)

    def _of_having(
        self, node: exp.Column, known: str | None, inside: frozenset[str] = frozenset()
    ) -> exp.Expr:
        """Read a name as HAVING does, where WHERE knows no alias; `inside` are those being read."""
        name = node.name.casefold()
        alias = self._aliases.get(name) if len(node.parts) == 1 else None
        if alias is None:
            return self._of_select(node, known)
        same = self.block.source.same_text
        if known is not None and same(alias) != same(node):
            raise Obstacle(f"{node.sql()} in HAVING is a key and another column at once")
        if any(isinstance(n, exp.Window | exp.Query) for n in alias.walk()):
            raise Obstacle(f"{node.sql()} in HAVING is computed after it")
        if name in inside:
            raise Obstacle(f"{node.sql()} in HAVING is computed from itself")
        reading = partial(self._of_having, inside=inside | {name})
        return exp.Paren(this=self._rewritten(alias.copy(), reading))

    def _names_window(self, node: exp.Column) -> bool:
        name = self.block.window.name
        if node.parts[0].name.casefold() != name:
            return False
        if self._is_column(name):
            raise Obstacle(f"it reads a column {name} beside its own {name}")
        return True

    def _is_column(self, name: str) -> bool:
        try:
            return name in self.columns_of(self.block.select)
        except UnknownColumns:
            # Beside the window it would be no group, and Spark take no such statement.
            return name in map(self.block.source.same_text, self.block.keys)


def own_name(item: exp.Expr) -> str | None:
    """Return the name that a column of SELECT has by itself; None where Spark makes one."""
    if isinstance(item, exp.Alias | exp.Column):
        return item.alias_or_name
    if isinstance(item, exp.Dot) and is_call(item.this, *WINDOWS):
        return f"{str(item.this.this).casefold()}.{item.name}"
    return str(item.this).casefold() if is_call(item, *WINDOWS) else None
