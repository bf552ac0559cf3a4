"""Functions OVER frames: which aggregates weft takes over, and what it makes of each."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from weft.aggregates.base import is_built_in
from weft.aggregates.names import aggregate_name
from weft.statement.calls import SharedCall, shared_call, where_holds
from weft.statement.names import AGGREGATES
from weft.statement.relations import Obstacle
from weft.statement.syntax import written_of

# Spark takes the last row of those with the least value, weft the first.
_OTHERWISE = frozenset({"min_by"})


@dataclass(frozen=True)
class TakenCall:
    """An aggregate as weft computes it, and whether Spark computes it OVER a frame too."""

    function: str
    arguments: tuple[exp.Expr, ...]
    parameters: tuple[float, ...] = ()
    known_to_spark: bool = True


def taken_call(node: exp.Expr) -> TakenCall:
    """Return the aggregate before OVER as weft computes it, or raise the obstacle."""
    call, conditions = node, []
    if isinstance(call, exp.Filter):
        conditions.append(call.expression.this)
        call = call.this
    if isinstance(call, exp.WithinGroup):
        return _percentile_cont(call, conditions)
    if not isinstance(call, exp.Anonymous):
        raise Obstacle(f"{written_of(node)} is Spark's")
    name = str(call.this).casefold()
    if name in _OTHERWISE:
        raise Obstacle(f"{name} takes the last of equal rows in Spark")
    distinct = len(call.expressions) == 1 and isinstance(call.expressions[0], exp.Distinct)
    if name in ("median", "percentile") and not distinct:
        return _percentile(name, call, conditions)
    custom = aggregate_name(name)
    if name not in AGGREGATES and custom is not None and not is_built_in(custom):
        return _taken(SharedCall(custom, tuple(call.expressions)), conditions, known=False)
    if name not in AGGREGATES:
        raise Obstacle(f"{name} is no aggregate")
    found = shared_call(node)
    return TakenCall(found.function, found.arguments, known_to_spark=not distinct)


def _taken(call: SharedCall, conditions: list[exp.Expr], *, known: bool) -> TakenCall:
    arguments = tuple(where_holds(argument, conditions) for argument in call.arguments)
    return TakenCall(call.function, arguments, known_to_spark=known)


def _percentile(name: str, call: exp.Anonymous, conditions: list[exp.Expr]) -> TakenCall:
    value, *ranks = call.expressions
    if len(ranks) != (name == "percentile"):
        raise Obstacle(f"{written_of(call)} is Spark's")
    argument = where_holds(value, conditions)
    parameters = tuple(map(_rank, ranks))
    return TakenCall(name, (argument,), parameters, known_to_spark=name == "percentile")


def _percentile_cont(call: exp.WithinGroup, conditions: list[exp.Expr]) -> TakenCall:
    inner, order = call.this, call.expression
    name = str(inner.this).casefold() if isinstance(inner, exp.Anonymous) else ""
    if name != "percentile_cont" or len(order.expressions) != 1 or len(inner.expressions) != 1:
        raise Obstacle(f"{written_of(call)} is Spark's")
    (by,) = order.expressions
    if by.args.get("desc"):
        raise Obstacle(f"{written_of(call)} counts from the greatest")
    argument = where_holds(by.this, conditions)
    return TakenCall("percentile", (argument,), (_rank(inner.expressions[0]),), False)


def _rank(node: exp.Expr) -> float:
    try:
        rank = float(written_of(node))
    except ValueError:
        raise Obstacle(f"the rank {written_of(node)} is not written out") from None
    if not 0 <= rank <= 1:
        raise Obstacle(f"the rank {written_of(node)} is Spark's")
    return rank
