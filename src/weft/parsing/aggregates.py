"""Aggregate calls of SQL: synonyms, COUNT(DISTINCT x), parameters and FILTER."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.aggregates.base import AggregateCall, aggregate_function
from weft.parsing.names import aggregate_name
from weft.parsing.scope import stripped
from weft.parsing.script import spelled
from weft.query import check_matches_answer

if TYPE_CHECKING:
    from weft.parsing.scope import Scope


_AROUND = (exp.Paren, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def aggregate_call(node: exp.Expr) -> exp.Anonymous | None:
    """Return the call of an aggregate under FILTER and the like, if there is one."""
    while isinstance(node, _AROUND):
        node = node.this
    if isinstance(node, exp.Anonymous) and aggregate_name(node.name) is not None:
        return node
    return None


def holds_aggregate(node: exp.Expr) -> bool:
    """Tell whether an aggregate is called anywhere inside."""
    return any(aggregate_name(call.name) is not None for call in node.find_all(exp.Anonymous))


@dataclass(frozen=True, slots=True)
class AggregateReader:
    """Reads one call after another of the statement with this scope."""

    scope: Scope

    def read(self, node: exp.Expr, call: exp.Anonymous) -> tuple[AggregateCall, str]:
        """Return the call, which stands in `node`, and the name its column has by default."""
        condition = self._condition(node)
        name, arguments, parameters = self._signature(call)
        for argument in arguments:
            self.scope.scalar(argument, "argument")
        with self.scope.script.located(call):
            plain = AggregateCall(name, tuple(map(spelled, arguments)), parameters)
            if condition is None:
                check_matches_answer(plain)
                return plain, str(plain)
            filtered = [_only_if(condition, argument) for argument in arguments]
            if not filtered:
                filtered = [_only_if(condition, exp.Literal.number(1))]
            label = f"{plain} FILTER (WHERE {spelled(condition)})"
            found = AggregateCall(name, tuple(map(spelled, filtered)), parameters)
            check_matches_answer(found)
            return found, label

    def _condition(self, node: exp.Expr) -> exp.Expr | None:
        """Return the condition of FILTER; refuse NULLs that a call would have to respect."""
        condition: exp.Expr | None = None
        while isinstance(node, _AROUND):
            if isinstance(node, exp.Filter):
                condition = stripped(node.expression.this)
                self.scope.scalar(condition, "filter")
            elif isinstance(node, exp.RespectNulls):
                raise self._respects_nulls(node)
            node = node.this
        return condition

    def _respects_nulls(self, node: exp.Expr) -> Exception:
        return self.scope.script.error(
            "aggregates skip NULL values; they cannot respect them",
            hint="remove RESPECT NULLS, or replace NULL with COALESCE first",
            at=node,
        )

    def _signature(self, call: exp.Anonymous) -> tuple[str, list[exp.Expr], tuple[float, ...]]:
        """Split a call into the name weft knows, arguments and numeric parameters."""
        name = aggregate_name(call.name) or call.name
        arguments = [stripped(argument) for argument in call.expressions]
        if name == "count":
            return self._count(call, arguments)
        if name in ("first", "last"):
            arguments = self._without_null_flag(arguments)
        if any(isinstance(argument, exp.Distinct) for argument in arguments):
            raise self.scope.script.error(
                f"{call.name}(DISTINCT ...) is not supported",
                hint="DISTINCT stands only in COUNT(DISTINCT column)",
                at=call,
            )
        wanted = aggregate_function(name).parameters
        if not wanted:
            return name, arguments, ()
        if len(arguments) != 1 + wanted:
            raise self.scope.script.error(
                f"{call.name} takes a column and a rank, not {len(arguments)} argument(s)",
                hint=f"write {call.name}(temp, 0.95)",
                at=call,
            )
        return name, arguments[:-wanted], tuple(map(self._number, arguments[-wanted:]))

    def _count(
        self, call: exp.Anonymous, arguments: list[exp.Expr]
    ) -> tuple[str, list[exp.Expr], tuple[float, ...]]:
        first = arguments[0] if arguments else None
        if call.name.casefold() == "count_if" and first is not None:
            return "count", [_only_if(first, exp.Literal.number(1)), *arguments[1:]], ()
        if isinstance(first, exp.Distinct):
            if len(arguments) > 1 or len(first.expressions) != 1:
                raise self.scope.script.error(
                    "COUNT(DISTINCT ...) takes one expression",
                    hint="join several columns into one, such as CONCAT(a, '-', b)",
                    at=call,
                )
            return "count_distinct", list(first.expressions), ()
        if first is None:
            raise self.scope.script.error(
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
        if not isinstance(literal, exp.Literal) or literal.is_string:
            raise self.scope.script.error(
                "the rank of a percentile must be a number",
                hint="write it out, such as PERCENTILE(temp, 0.95)",
                at=node,
            )
        return float(literal.name) * (-1 if negative else 1)


def _only_if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return `CASE WHEN condition THEN value END`: NULL, which aggregates skip, elsewhere."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
