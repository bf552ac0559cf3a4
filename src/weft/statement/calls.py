"""Aggregate calls in a statement: which there are, and what weft makes of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.aggregates.spark_sketches import MERGED_BY
from weft.statement.names import AGGREGATES, DISTINCT, INDIFFERENT, SHARED
from weft.statement.relations import Obstacle
from weft.statement.syntax import is_call, written_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ONE = exp.Literal.number(1)
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


@dataclass(frozen=True)
class SharedCall:
    """A call as weft computes it: its function, and arguments that Spark computes before."""

    function: str
    arguments: tuple[exp.Expr, ...]
    numbers: tuple[str, ...] = ()  # after the arguments, as they are written
    reading: str = "{0}"  # what the statement asks for, of the result of the function
    counts_null: bool = False  # an event that is left out must not be a NULL


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
    order: exp.Expr | None = None
    if isinstance(call, exp.WithinGroup):
        order, call = call.expression, call.this
    name = str(call.this).casefold() if isinstance(call, exp.Anonymous) else ""
    own = _OWN_WAYS.get(name)
    if own is not None:
        if not call.expressions and name != "mode":
            raise Obstacle(f"{name} has no arguments")
        made = own(call, order)
        if made.counts_null and conditions:
            raise Obstacle(f"{name} counts NULL, and its FILTER is Spark's")
        return replace(made, arguments=_kept(made.arguments, conditions))
    if name not in SHARED or order is not None:
        raise Obstacle(f"{name or type(node).__name__} is not shared")
    arguments: list[exp.Expr] = list(call.expressions)
    if name in MERGED_BY:
        return _sketch(name, arguments, conditions)
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
    known = DISTINCT.get(name)
    if known is not None and len(values) == 1 and not isinstance(values[0], exp.Star):
        return SharedCall(known, _kept(values, conditions))
    if SHARED[name] in INDIFFERENT:
        return SharedCall(SHARED[name], _kept(values, conditions))
    raise Obstacle(f"{name}(DISTINCT ...) is not shared")


def _sketch(name: str, given: Sequence[exp.Expr], conditions: Sequence[exp.Expr]) -> SharedCall:
    """Read a sketch of Spark's own; what follows its column is a number that is written out."""
    numbers = tuple(map(written_of, given[1:]))
    counts_null = name.startswith("approx_top_k")
    if not all(number.isdigit() for number in numbers) or (counts_null and conditions):
        raise Obstacle(f"{name} is not shared as it is called here")
    return SharedCall(name, _kept(given[:1], conditions), numbers, counts_null=counts_null)


def _top_k(call: exp.Expr, order: exp.Expr | None) -> SharedCall:
    """Read approx_top_k(x, k, items): the estimate of k from a sketch of so many items."""
    value, *rest = call.expressions
    numbers = [written_of(number) for number in rest]
    if order is not None or not all(number.isdigit() for number in numbers):
        raise Obstacle("approx_top_k is not shared as it is called here")
    k = numbers[0] if numbers else "5"
    return SharedCall(
        "approx_top_k_accumulate",
        (value,),
        tuple(numbers[1:]),
        f"approx_top_k_estimate({{0}}, {k})",
        counts_null=True,
    )


def _mode(call: exp.Expr, order: exp.Expr | None) -> SharedCall:
    """Read mode(x), mode(x, true) and mode() WITHIN GROUP (ORDER BY x): of several, the least."""
    values = list(call.expressions)
    if len(values) == 2 and isinstance(values[1], exp.Boolean):
        values.pop()
    if order is not None:
        ordered = order.expressions[0]
        if values or len(order.expressions) != 1 or ordered.args.get("desc"):
            raise Obstacle("mode is not shared in another order")
        values = [ordered.this]
    if len(values) != 1 or isinstance(values[0], exp.Distinct):
        raise Obstacle("mode is not shared as it is called here")
    return SharedCall("mode", (values[0],))


def _list_of_text(call: exp.Expr, order: exp.Expr | None) -> SharedCall:
    """Read listagg(x, ', '): gathered values in their own order, or the reverse, as one text."""
    value, *rest = call.expressions
    function = "collect_list"
    if isinstance(value, exp.Distinct):
        if not value.expressions:
            raise Obstacle("listagg has no arguments")
        value, *rest = (*value.expressions, *rest)
        function = "collect_set"
    delimiter = written_of(rest[0]) if rest else "''"
    if len(rest) > 1 or delimiter[:1] not in ("'", '"') or "{" in delimiter or "}" in delimiter:
        raise Obstacle("listagg is not shared with a delimiter that is not written out")
    values = "{0}"
    if order is not None:
        ordered = order.expressions[0]
        if len(order.expressions) != 1 or ordered.this != value:
            raise Obstacle("listagg is not shared in the order of another value")
        values = "reverse({0})" if ordered.args.get("desc") else values
    joined = f"CASE WHEN size({{0}}) > 0 THEN array_join({values}, {delimiter}) END"
    return SharedCall(function, (value,), reading=joined)


def _of_pairs(function: str, read: int) -> Callable[[exp.Expr, exp.Expr | None], SharedCall]:
    """Read an aggregate of one side of pairs, which has the type that the aggregate gives it."""

    def own(call: exp.Expr, order: exp.Expr | None) -> SharedCall:
        if order is not None or len(call.expressions) != 2:
            raise Obstacle(f"{call.name} is not shared as it is called here")
        value, other = call.expressions[read], call.expressions[1 - read]
        return SharedCall(function, (where_holds(value, [_is_known(other)]),))

    return own


_OWN_WAYS: Mapping[str, Callable[[exp.Expr, exp.Expr | None], SharedCall]] = {
    "approx_top_k": _top_k,
    "regr_avgx": _of_pairs("avg", 1),
    "regr_avgy": _of_pairs("avg", 0),
    "regr_count": _of_pairs("count", 0),
    "mode": _mode,
    "listagg": _list_of_text,
    "string_agg": _list_of_text,
}


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
