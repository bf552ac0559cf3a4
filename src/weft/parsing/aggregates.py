"""Aggregate calls of SQL, over the sources of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from weft.aggregate_text import CallReader, filtered
from weft.aggregates.names import aggregate_name
from weft.expression import spelled
from weft.query import check_matches_answer

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall
    from weft.parsing.scope import Scope


def holds_aggregate(node: exp.Expr) -> bool:
    """Tell whether an aggregate is called anywhere inside."""
    return any(aggregate_name(call.name) is not None for call in node.find_all(exp.Anonymous))


@dataclass(frozen=True, slots=True)
class AggregateReader:
    """Reads one call after another of the statement with this scope."""

    scope: Scope

    def read(self, node: exp.Expr, call: exp.Anonymous) -> tuple[AggregateCall, str]:
        """Return the call, which stands in `node`, and the name its column has by default."""
        reader = CallReader(self.scope.script.error)
        condition = reader.condition(node)
        if condition is not None:
            self.scope.scalar(condition, "filter")
        signature = reader.signature(call)
        for argument in signature[1]:
            self.scope.scalar(argument, "argument")
        with self.scope.script.located(call):
            plain, found = filtered(signature, None), filtered(signature, condition)
            check_matches_answer(found)
        if condition is None:
            return found, str(plain)
        return found, f"{plain} FILTER (WHERE {spelled(condition)})"
