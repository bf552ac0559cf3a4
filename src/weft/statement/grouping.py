"""What a block groups by: expressions, and the sets of them that GROUP BY asks for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.calls import aggregates_in
from weft.statement.relations import Obstacle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weft.statement.relations import Source

    Resolve = Callable[[exp.Expr], exp.Expr]  # positions and aliases to what they name
    KeySet = tuple[exp.Expr, ...]

_ANALYTIC = (exp.Rollup, exp.Cube, exp.GroupingSets)
_MOST_SETS = 64


@dataclass(frozen=True)
class Grouping:
    """The expressions of a GROUP BY, each once, in the order in which Spark numbers them."""

    columns: tuple[exp.Expr, ...]
    sets: tuple[frozenset[int], ...]  # places among the columns; a plain GROUP BY has one set
    analytic: bool  # it has ROLLUP, CUBE or GROUPING SETS, and may ask GROUPING()

    @staticmethod
    def of(
        select: exp.Select, source: Source, columns_of: Callable[[exp.Select], frozenset[str]]
    ) -> Grouping:
        """Read GROUP BY; positions and aliases of SELECT are replaced by what they name."""
        group, items = select.args["group"], select.expressions
        if group.args.get("all"):
            return _distinct([tuple(_of_all(items))], source, analytic=False)
        if any(value for part, value in group.args.items() if part != "expressions"):
            raise Obstacle("WITH ROLLUP and WITH CUBE have a group without the window")

        def resolve(element: exp.Expr) -> exp.Expr:
            if isinstance(element, exp.Literal) and element.name.isdigit():
                place = int(element.name)
                if not 1 <= place <= len(items):
                    raise Obstacle(f"SELECT has no item {place} to group by")
                item: exp.Expr = items[place - 1]
                return item.unalias()
            named = _alias_of(element, items)
            if named is None or source.same_text(named) == source.same_text(element):
                return element
            return element if element.name.casefold() in columns_of(select) else named

        sets: list[KeySet] = [()]
        for element in group.expressions:
            if isinstance(element, exp.Tuple):
                raise Obstacle("it groups by a tuple")
            found = _sets_of(element, resolve)
            if len(sets) * len(found) > _MOST_SETS:
                raise Obstacle(f"it has more than {_MOST_SETS} grouping sets")
            sets = [(*before, *after) for before in sets for after in found]
        return _distinct(sets, source, any(isinstance(g, _ANALYTIC) for g in group.expressions))


def grouped_by(group: exp.Group) -> Iterator[exp.Expr]:
    """Yield what a GROUP BY lists, inside ROLLUP, CUBE and GROUPING SETS too."""
    pending = list(reversed(group.expressions))
    while pending:
        element = pending.pop()
        if isinstance(element, (*_ANALYTIC, exp.Tuple)):
            pending += reversed(element.expressions)
        else:
            yield element.unnest()


def _sets_of(element: exp.Expr, resolve: Resolve) -> list[KeySet]:
    """Return the sets that one element of GROUP BY stands for."""
    if isinstance(element, exp.GroupingSets):
        return [one for part in element.expressions for one in _set_or_sets(part, resolve)]
    if isinstance(element, exp.Rollup):
        parts = [_members(part, resolve) for part in element.expressions]
        return [tuple(chain(*parts[:count])) for count in range(len(parts), -1, -1)]
    if isinstance(element, exp.Cube):
        parts = [_members(part, resolve) for part in element.expressions]
        if 2 ** len(parts) > _MOST_SETS:
            raise Obstacle(f"it has more than {_MOST_SETS} grouping sets")
        counts = range(len(parts), -1, -1)
        return [tuple(chain(*some)) for count in counts for some in combinations(parts, count)]
    return [(resolve(element),)]


def _set_or_sets(element: exp.Expr, resolve: Resolve) -> list[KeySet]:
    if isinstance(element, _ANALYTIC):
        return _sets_of(element, resolve)
    return [_members(element, resolve)]


def _members(element: exp.Expr, resolve: Resolve) -> KeySet:
    """Return the expressions that stand in parentheses as one."""
    if isinstance(element, exp.Tuple):
        return tuple(resolve(part) for part in element.expressions)
    return (resolve(element.unnest()),)


def _distinct(sets: list[KeySet], source: Source, analytic: bool) -> Grouping:
    places: dict[str, int] = {}
    columns: list[exp.Expr] = []
    found: list[frozenset[int]] = []
    for one in sets:
        for element in one:
            text = source.same_text(element)
            if text not in places:
                places[text] = len(columns)
                columns.append(element)
        found.append(frozenset(places[source.same_text(element)] for element in one))
    return Grouping(tuple(columns), tuple(found), analytic)


def _alias_of(element: exp.Expr, items: list[exp.Expr]) -> exp.Expr | None:
    if not isinstance(element, exp.Column) or len(element.parts) > 1:
        return None
    name = element.name.casefold()
    return next(
        (i.this for i in items if isinstance(i, exp.Alias) and i.alias.casefold() == name), None
    )


def _of_all(items: list[exp.Expr]) -> list[exp.Expr]:
    """Return what GROUP BY ALL means: what is selected and is no aggregate."""
    found = []
    for item in (i.unalias() for i in items):
        if not aggregates_in(item):
            found.append(item)
        elif any(
            not any(column in call.find_all(exp.Column) for call in aggregates_in(item))
            for column in item.find_all(exp.Column)
        ):
            raise Obstacle("GROUP BY ALL has to look into an expression over aggregates")
    return found
