"""SELECT: its list, groups, conditions and order, with names looked up as Spark does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.local.expressions import Expressions
from weft.statement.local.operators import comparable, orderable
from weft.statement.local.queries import Queries, cut, has_aggregates, item_name, position
from weft.statement.local.scope import Column, Rows, Scope
from weft.statement.local.sources import source_of
from weft.statement.relations import Obstacle
from weft.statement.syntax import written_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.statement.local.values import Value


def select_rows(queries: Queries, select: exp.Select, outer: Scope | None) -> Rows:
    """Read one SELECT."""
    source = source_of(queries, select, outer)
    scope = Scope(source.fields if source is not None else (), outer)
    named = {w.this.name.casefold(): w for w in select.args.get("windows") or ()}
    return _Select(queries, select, scope, Expressions(scope, queries.rows, named)).read(
        source.sql if source is not None else None
    )


@dataclass
class _Select:
    queries: Queries
    select: exp.Select
    scope: Scope
    reader: Expressions
    items: list[tuple[str | None, Value]] = field(default_factory=list)  # names, in order
    nodes: list[exp.Expr] = field(default_factory=list)  # the expression of each item

    def read(self, source: str | None) -> Rows:
        """Read the clauses in the order in which Spark looks names up in them."""
        parts = self.select.args
        for name, node, value in self._items():
            self.items.append((name, value))
            self.nodes.append(node)
        listed = ", ".join(f"{value.sql} AS c{i}" for i, (_, value) in enumerate(self.items))
        distinct = parts.get("distinct")
        if distinct is not None:
            if distinct.args.get("on"):
                raise Obstacle("DISTINCT ON is no Spark SQL")
            for _, value in self.items:
                comparable(value.type, "DISTINCT")
        said = f"SELECT {'DISTINCT ' if distinct is not None else ''}{listed}"
        said += f" FROM {source}" if source is not None else ""
        if parts.get("where"):
            said += f" WHERE {self._plain.condition(parts['where'].this)}"
        if parts.get("group"):
            said += self._grouped()
        if parts.get("having"):
            if not parts.get("group") and not has_aggregates(self.nodes):
                raise Obstacle("HAVING without GROUP BY is Spark's")
            said += f" HAVING {self._later('having').condition(parts['having'].this)}"
        if parts.get("qualify"):
            said += f" QUALIFY {self._later('qualify').condition(parts['qualify'].this)}"
        if parts.get("order"):
            keys = parts["order"].expressions
            said += f" ORDER BY {', '.join(self._order_key(key) for key in keys)}"
        columns = (Column(name, value.type) for name, value in self.items)
        return Rows(said + cut(self.select), tuple(columns))

    @property
    def _plain(self) -> Expressions:
        """A reader that knows columns of tables only."""
        return replace(self.reader, scope=Scope(self.scope.fields, self.scope.outer))

    def _items(self) -> Iterator[tuple[str | None, exp.Expr, Value]]:
        for item in self.select.expressions:
            star = item if isinstance(item, exp.Star) else item.args.get("this")
            if isinstance(star, exp.Star) and isinstance(item, exp.Star | exp.Column):
                yield from self._of_star(item, star)
                continue
            value = self.reader.value(item.unalias())
            name = item_name(item, value)
            yield name, item.unalias(), value
            if isinstance(item, exp.Alias):
                # A later item may read it, if no table has a column of this name.
                self.scope.aliases.setdefault(item.alias.casefold(), value)

    def _of_star(
        self, item: exp.Expr, star: exp.Expr
    ) -> Iterator[tuple[str | None, exp.Expr, Value]]:
        table = item.args.get("table") if item is not star else None
        if star.args.get("replace") or star.args.get("rename"):
            raise Obstacle(f"{written_of(item)} is Spark's")
        left_out = {column.name.casefold() for column in star.args.get("except_") or ()}
        fields = [f for f in self.scope.fields if not f.hidden]
        if table is not None:
            fields = [f for f in self.scope.fields if f.table == table.name.casefold()]
            if not fields:
                raise Obstacle(f"{written_of(item)} names no table")
        for one in fields:
            if one.name is None or one.name.casefold() not in left_out:
                yield one.name, item, one.value

    def _grouped(self) -> str:
        group = self.select.args["group"]
        if group.args.get("all"):
            keys = [
                value
                for node, (_, value) in zip(self.nodes, self.items, strict=True)
                if not has_aggregates([node])
            ]
        elif any(value for part, value in group.args.items() if part != "expressions"):
            raise Obstacle("ROLLUP, CUBE and GROUPING SETS are not read here")
        else:
            keys = [self._group_key(element) for element in group.expressions]
        for key in keys:
            comparable(key.type, "GROUP BY")
        return f" GROUP BY {', '.join(key.sql for key in keys)}" if keys else ""

    def _group_key(self, element: exp.Expr) -> Value:
        if isinstance(element, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            raise Obstacle("ROLLUP, CUBE and GROUPING SETS are not read here")
        place = position(element, len(self.items))
        if place is not None:
            return self.items[place][1]
        if isinstance(element, exp.Column):
            return self.reader.value(element)  # a name that no table has is that of an item
        return self._plain.value(element)

    def _later(self, clause: str) -> Expressions:
        """Return a reader for a clause behind SELECT, where names of its items go first."""
        node = self.select.args[clause]
        for column in node.find_all(exp.Column):
            name = column.name.casefold()
            both = len(column.parts) == 1 and self.scope.knows(name)
            alias = self.scope.aliases.get(name)
            if both and alias is not None and alias.sql != self.scope.lookup([name]).sql:
                raise Obstacle(
                    f"{column.name} in {clause.upper()} is a column and an alias at once"
                )
        return self.reader

    def _order_key(self, key: exp.Expr) -> str:
        """Write a key of ORDER BY: a place, a name of an item, or an expression."""
        place = position(key.this, len(self.items))
        if place is None and isinstance(key.this, exp.Column) and len(key.this.parts) == 1:
            name = key.this.name.casefold()
            found = [i for i, (own, _) in enumerate(self.items) if own and own.casefold() == name]
            if len(found) > 1 and len({self.items[i][1].sql for i in found}) > 1:
                raise Obstacle(f"{key.this.name} in ORDER BY may mean several columns")
            place = found[0] if found else None
        if place is not None:
            orderable(self.items[place][1].type, "ORDER BY")
            return self.reader.ordered(key, sql=str(place + 1))
        if self.select.args.get("distinct"):
            raise Obstacle("ORDER BY of what DISTINCT does not select is Spark's")
        return self._ordering().ordered(key)

    def _ordering(self) -> Expressions:
        """Return a reader in which names of items go before columns of tables."""
        outputs = {own.casefold(): value for own, value in self.items if own is not None}
        fields = tuple(
            f for f in self.scope.fields if f.name is None or f.name.casefold() not in outputs
        )
        hidden = [f for f in self.scope.fields if f not in fields]
        # Under the alias of its table a column can still be named.
        kept = tuple(replace(f, hidden=True) for f in hidden)
        scope = Scope(fields + kept, self.scope.outer, outputs)
        return replace(self.reader, scope=scope)
