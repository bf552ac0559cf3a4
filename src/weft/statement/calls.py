"""Aggregate calls in a statement: which there are, and what weft makes of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.statement.names import AGGREGATES, INDIFFERENT, SHARED
from weft.statement.relations import Obstacle
from weft.statement.syntax import is_call

if TYPE_CHECKING:
    from collections.abc import Sequence

_ONE = exp.Literal.number(1)
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


@dataclass(frozen=True)
class SharedCall:
    """A call as weft computes it: its function, and arguments that Spark computes before."""

    function: str
    arguments: tuple[exp.Expr, ...]


def is_aggregate(node: exp.Expr) -> bool:
    """Tell whether a node is an aggregate, with all that belongs to it: FILTER, WITHIN GROUP."""
    if isinstance(node, _AROUND):
        return is_aggregate(node.this)
    return is_call(node, *AGGREGATES) and not _is_windowed(node)


def _is_windowed(node: exp.Expr) -> bool:
    """Tell whether a call is computed OVER rows of the result, and not over events."""
    while isinstance(node.parent, _AROUND):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.parent.this is node


def aggregates_in(tree: exp.Expr) -> list[exp.Expr]:
    """Return the aggregates of an expression, those of its subqueries apart."""
    if is_aggregate(tree):
        return [tree]
    if isinstance(tree, exp.Query):
        return []
    return [call for child in tree.iter_expressions() for call in aggregates_in(child)]


def shared_call(node: exp.Expr) -> SharedCall:
    """Return an aggregate as weft computes it, or raise the obstacle that there is."""
    conditions: list[exp.Expr] = []
    call = node
    if isinstance(call, exp.Filter):
        conditions.append(call.expression.this)
        call = call.this
    name = str(call.this).casefold() if isinstance(call, exp.Anonymous) else ""
    if name not in SHARED:
        raise Obstacle(f"{name or type(node).__name__} is not shared")
    arguments: list[exp.Expr] = list(call.expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _distinct(name, arguments[0].expressions, conditions)
    if name == "count":
        # Rows count for which no argument is NULL; a literal or a star is never NULL.
        values = [a for a in arguments if not isinstance(a, exp.Star | exp.Literal)]
        if len(values) > 1:
            conditions += [_is_known(value) for value in values]
        if len(values) != 1:
            values = [_ONE] if conditions else []
        return SharedCall("count", _kept(values, conditions))
    if name == "count_if":
        return SharedCall("count", _kept([_ONE], [*conditions, *arguments]))
    return SharedCall(SHARED[name], _kept(arguments, conditions))


def _distinct(name: str, values: Sequence[exp.Expr], conditions: Sequence[exp.Expr]) -> SharedCall:
    if name == "count" and len(values) == 1 and not isinstance(values[0], exp.Star):
        return SharedCall("count_distinct", _kept(values, conditions))
    if SHARED[name] in INDIFFERENT:
        return SharedCall(SHARED[name], _kept(values, conditions))
    raise Obstacle(f"{name}(DISTINCT ...) is not shared")


def _kept(values: Sequence[exp.Expr], conditions: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
    """Return arguments that are NULL where a condition does not hold, and not computed there."""
    return tuple(where_holds(value, conditions) for value in values)


def where_holds(value: exp.Expr, conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Return a value that is NULL where a condition does not hold, and not computed there."""
    if not conditions:
        return value
    branch = exp.If(this=all_of(conditions), true=value.copy())
    return exp.Case(ifs=[branch])


def all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Return the condition that all of these hold."""
    first, *others = (_enclosed(condition) for condition in conditions)
    for other in others:
        first = exp.And(this=first, expression=other)
    return first


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=_enclosed(value), expression=exp.Null(), negate=True)


def _enclosed(node: exp.Expr) -> exp.Expr:
    plain = isinstance(node, exp.Column | exp.Paren | exp.Anonymous | exp.Literal)
    return node.copy() if plain else exp.Paren(this=node.copy())
