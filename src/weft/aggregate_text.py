"""Aggregates written as SQL: `avg(temp)`, `count(DISTINCT user)`, `sum(x) FILTER (WHERE x > 0)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from weft.aggregates.base import AggregateCall, aggregate_function
from weft.aggregates.names import aggregate_name
from weft.errors import QueryError
from weft.expression import SCALAR_FUNCTIONS, dialect, is_number, spelled, stripped

if TYPE_CHECKING:
    from collections.abc import Callable

SCALAR_NAMES = frozenset(name.upper() for name in SCALAR_FUNCTIONS)
# The name weft knows, the arguments, and the numbers behind them.
Signature = tuple[str, list[exp.Expr], tuple[float, ...]]
_AROUND = (exp.Paren, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def call_of(text: str) -> AggregateCall:
    """Read one aggregate.

    >>> str(call_of("avg(temp)")), str(call_of("COUNT(DISTINCT user)"))
    ('avg(temp)', 'count_distinct(user)')
    >>> call_of("temp + 1")
    Traceback (most recent call last):
    weft.errors.QueryError: 'temp + 1' is not an aggregate
    hint: write one by itself, such as 'avg(temp)', or weft.agg.avg('temp')
    """
    node = _tree(text)
    call = None if node is None else aggregate_call(node)
    if node is None or call is None:
        if isinstance(node, exp.Anonymous):
            aggregate_function(node.name)
        raise QueryError(
            f"{text!r} is not an aggregate",
            hint="write one by itself, such as 'avg(temp)', or weft.agg.avg('temp')",
        )

    def fault(message: str, *, hint: str, at: exp.Expr) -> QueryError:
        return QueryError(f"cannot read {text!r}: {message}", hint=hint)

    reader = CallReader(fault)
    return filtered(reader.signature(call), reader.condition(node))


def aggregate_call(node: exp.Expr) -> exp.Anonymous | None:
    """Return the call of an aggregate under FILTER and the like, if there is one."""
    while isinstance(node, _AROUND):
        node = node.this
    if isinstance(node, exp.Anonymous) and aggregate_name(node.name) is not None:
        return node
    return None


def filtered(signature: Signature, condition: exp.Expr | None) -> AggregateCall:
    """Make a call that takes only the events for which a condition holds."""
    name, arguments, parameters = signature
    if condition is not None:
        arguments = [only_if(condition, a) for a in arguments or [exp.Literal.number(1)]]
    return AggregateCall(name, tuple(map(spelled, arguments)), parameters)


def _tree(text: str) -> exp.Expr | None:
    try:
        found = CallParser(dialect=dialect()).parse(dialect().tokenize(text), text)
    except SqlglotError:
        return None
    return found[0] if len(found) == 1 else None


class CallParser(SparkParser):
    """Spark's parser, which leaves all calls but those of our scalar functions by their names."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: build for name, build in SparkParser.FUNCTIONS.items() if name in SCALAR_NAMES
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: read for name, read in SparkParser.FUNCTION_PARSERS.items() if name in SCALAR_NAMES
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
    }


@dataclass(frozen=True, slots=True)
class CallReader:
    """Reads calls off a tree; `fault` makes an error of a message, a hint and a place."""

    fault: Callable[..., QueryError]

    def condition(self, node: exp.Expr) -> exp.Expr | None:
        """Return the condition of FILTER; refuse NULLs that a call would have to respect."""
        condition: exp.Expr | None = None
        while isinstance(node, _AROUND):
            if isinstance(node, exp.Filter):
                condition = stripped(node.expression.this)
            elif isinstance(node, exp.RespectNulls):
                raise self._respects_nulls(node)
            node = node.this
        return condition

    def _respects_nulls(self, node: exp.Expr) -> Exception:
        return self.fault(
            "aggregates skip NULL values; they cannot respect them",
            hint="remove RESPECT NULLS, or replace NULL with COALESCE first",
            at=node,
        )

    def signature(self, call: exp.Anonymous) -> Signature:
        """Split a call into the name weft knows, arguments and numeric parameters."""
        name = aggregate_name(call.name) or call.name
        arguments = [stripped(argument) for argument in call.expressions]
        if name == "count":
            return self._count(call, arguments)
        if name in ("first", "last"):
            arguments = self._without_null_flag(arguments)
        if any(isinstance(argument, exp.Distinct) for argument in arguments):
            return self._distinct(call, name, arguments)
        wanted = aggregate_function(name).parameters
        if not wanted:
            return name, arguments, ()
        if len(arguments) != 1 + wanted:
            raise self.fault(
                f"{call.name} takes a column and a rank, not {len(arguments)} argument(s)",
                hint=f"write {call.name}(temp, 0.95)",
                at=call,
            )
        return name, arguments[:-wanted], tuple(map(self._number, arguments[-wanted:]))

    def _distinct(self, call: exp.Anonymous, name: str, arguments: list[exp.Expr]) -> Signature:
        """Read SUM(DISTINCT x) and AVG(DISTINCT x), which have functions of their own."""
        values = [value for argument in arguments for value in argument.expressions]
        if name not in ("sum", "avg") or len(arguments) != 1 or len(values) != 1:
            raise self.fault(
                f"{call.name}(DISTINCT ...) is not supported",
                hint="DISTINCT stands in COUNT, SUM and AVG of one column",
                at=call,
            )
        return f"{name}_distinct", values, ()

    def _count(self, call: exp.Anonymous, arguments: list[exp.Expr]) -> Signature:
        first = arguments[0] if arguments else None
        if call.name.casefold() == "count_if" and first is not None:
            return "count", [only_if(first, exp.Literal.number(1)), *arguments[1:]], ()
        if isinstance(first, exp.Distinct):
            if len(arguments) > 1 or len(first.expressions) != 1:
                raise self.fault(
                    "COUNT(DISTINCT ...) takes one expression",
                    hint="join several columns into one, such as CONCAT(a, '-', b)",
                    at=call,
                )
            return "count_distinct", list(first.expressions), ()
        if first is None:
            raise self.fault(
                f"{call.name} needs an argument", hint="write COUNT(*) to count events", at=call
            )
        # COUNT(1) counts rows: a literal is never NULL.
        if len(arguments) == 1 and isinstance(first, exp.Star | exp.Literal):
            return "count", [], ()
        return "count", arguments, ()

    def _without_null_flag(self, arguments: list[exp.Expr]) -> list[exp.Expr]:
        """Accept FIRST(x, true) and FIRST(x IGNORE NULLS), which is what FIRST always does."""
        for argument in arguments:
            if isinstance(argument, exp.RespectNulls):
                raise self._respects_nulls(argument)
        arguments = [a.this if isinstance(a, exp.IgnoreNulls) else a for a in arguments]
        if len(arguments) == 2 and isinstance(arguments[1], exp.Boolean):
            if not arguments[1].this:
                raise self._respects_nulls(arguments[1])
            return arguments[:1]
        return arguments

    def _number(self, node: exp.Expr) -> float:
        negative = isinstance(node, exp.Neg)
        literal = node.this if negative else node
        if not isinstance(literal, exp.Literal) or not is_number(literal):
            raise self.fault(
                "the rank of a percentile must be a number",
                hint="write it out, such as PERCENTILE(temp, 0.95)",
                at=node,
            )
        return float(literal.name) * (-1 if negative else 1)


def only_if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return `CASE WHEN condition THEN value END`: NULL, which aggregates skip, elsewhere."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
