"""Names in a statement: what a table stands for, and when two texts mean the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.syntax import written_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Obstacle(Exception):
    """Why a block is left to Spark."""


class UnknownColumns(Obstacle):
    """Nobody knows which columns there are."""


def common_table(table: exp.Table) -> exp.CTE | None:
    """Return the common table expression that a name stands for, where it stands for one."""
    name = table.name.casefold()
    below: exp.Expr = table
    above = table.parent
    while above is not None:
        known = above.args.get("with_")
        defined: list[exp.CTE] = []
        if isinstance(known, exp.With) and below is not known:
            defined = known.expressions
        if isinstance(above, exp.With):
            # A definition sees those before it, and the query of the WITH is not one of them.
            place = next(i for i, cte in enumerate(above.expressions) if cte is below)
            defined = above.expressions[:place]
        for cte in reversed(defined):
            if cte.alias.casefold() == name:
                return cte
        below, above = above, above.parent
    return None


def tables_in(node: exp.Expr) -> Iterator[exp.Table]:
    """Yield the plain names of tables that a tree reads, those of its subqueries too."""
    for table in node.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.args.get("db"):
            yield table


def definitions_for(node: exp.Expr) -> list[exp.CTE]:
    """Return the common table expressions around a node that it reads, definitions first."""
    needed: dict[str, exp.CTE] = {}

    def gather(tree: exp.Expr) -> None:
        own = tree.args.get("with_")
        parts = [part for part in tree.iter_expressions() if tree is not node or part is not own]
        # What is defined further inside comes along with it.
        inside = {id(cte) for part in parts for cte in part.find_all(exp.CTE)}
        for table in (table for part in parts for table in tables_in(part)):
            cte = common_table(table)
            if cte is None or id(cte) in inside:
                continue
            name = table.name.casefold()
            if needed.get(name, cte) is not cte:
                raise Obstacle(f"{table.name} means two things in it")
            if name not in needed:
                gather(cte.this)
                if needed.setdefault(name, cte) is not cte:
                    raise Obstacle(f"{table.name} means two things in it")

    gather(node)
    return list(needed.values())


def select_of_source(select: exp.Select, items: Sequence[exp.Expr]) -> exp.Select:
    """Return a SELECT of other items from what a SELECT reads, a statement by itself."""
    made = exp.Select(expressions=list(items))
    definitions = [cte.copy() for cte in definitions_for(select)]
    if definitions:
        made.set("with_", exp.With(expressions=definitions))
    for part in ("from_", "joins", "laterals", "hint"):
        value = select.args.get(part)
        if value:
            copies = [v.copy() for v in value] if isinstance(value, list) else value.copy()
            made.set(part, copies)
    return made


@dataclass(frozen=True)
class Source:
    """What a block reads: FROM with its joins and lateral views, and a text that says the same."""

    select: exp.Select
    text: str
    alias: str | None  # of the only table, which its columns may be written with

    @staticmethod
    def of(select: exp.Select) -> Source:
        """Read what a block reads; tables that stand for equal queries are equal."""
        source = select.args.get("from_")
        if source is None:
            raise Obstacle("it reads no table")
        parts = [source, *(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]
        only = len(parts) == 1 and isinstance(source.this, exp.Table | exp.Subquery)
        alias = source.this.alias_or_name.casefold() if only else None
        text = " ".join(_expanded(part, alone=only) for part in parts)
        return Source(select, text, alias)

    def bare(self, node: exp.Expr) -> exp.Expr:
        """Return an expression without the alias of the only table, which others may not have.

        In a subquery the alias stays: there a bare name may mean another column.
        """
        made = node.copy()
        inner = {id(n) for query in made.find_all(exp.Query) for n in query.find_all(exp.Column)}
        for column in list(made.find_all(exp.Column)):
            if id(column) not in inner:
                _drop_alias(column, self.alias)
        return made

    def same_text(self, node: exp.Expr) -> str:
        """Write an expression so that equal ones are equal texts: case and qualifiers aside."""
        return written_of(_folded(node.copy(), self.alias))


def _expanded(part: exp.Expr, *, alone: bool = False) -> str:
    """Write a tree with the definition in place of every name that has one."""
    tree = _folded(part.copy(), None)
    named = tree.this.args.get("alias") if alone else None
    if isinstance(named, exp.TableAlias) and not named.args.get("columns"):
        tree.this.set("alias", None)
    for table, copied in list(zip(tables_in(part), tables_in(tree), strict=True)):
        cte = common_table(table)
        if cte is not None:
            columns = cte.args["alias"].args.get("columns") or ()
            renamed = ", ".join(column.name.casefold() for column in columns)
            spelled = f"({_expanded(cte.this)}) ({renamed})"
            copied.set("this", exp.Identifier(this=spelled, quoted=False))
    return written_of(tree)


def _folded(tree: exp.Expr, alias: str | None) -> exp.Expr:
    """Fold the case of names in a tree of our own; drop a qualifier that says nothing."""
    for node in list(tree.walk()):
        if isinstance(node, exp.Column):
            _drop_alias(node, alias)
        if isinstance(node, exp.Identifier):
            node.set("this", node.this.casefold())
            node.set("quoted", False)
        elif isinstance(node, exp.Anonymous) and isinstance(node.this, str):
            node.set("this", node.this.casefold())
    return tree


def _drop_alias(column: exp.Column, alias: str | None) -> None:
    parts = column.parts
    if alias is not None and len(parts) > 1 and parts[0].name.casefold() == alias:
        column.set(("table", "db", "catalog")[len(parts) - 2], None)
