"""From partials to results: what `AggregateFunction.lower` does, as SQL text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, DecimalType

from weft.engines.spark.sql.partials import average_type
from weft.engines.spark.sql.spread_partials import quantile_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.aggregates import AggregateCall


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a result is made of: its partials' columns, its rank, the type of its argument."""

    partials: tuple[str, ...]
    call: AggregateCall
    argument: DataType | None
    ranks: Sequence[float]  # those that the partial of an exact percentile holds


def lower(parts: Lowered) -> str:
    """Return the result of an aggregate call as an expression."""
    rule = _RULES.get(parts.call.function, "{0}")
    return rule.format(*parts.partials) if isinstance(rule, str) else rule(parts)


def _average(parts: Lowered) -> str:
    total, count = parts.partials
    if isinstance(parts.argument, DecimalType):
        kind = average_type(parts.argument).simpleString()
        return f"cast({total} / nullif(cast({count} AS decimal(20, 0)), 0) AS {kind})"
    return f"cast({total} AS double) / nullif({count}, 0)"


def _approximate(parts: Lowered) -> str:
    return quantile_at(parts.partials[0], parts.call.parameters[0])


def rank_of(call: AggregateCall) -> float:
    """Return the rank an exact percentile looks at."""
    return float(call.parameters[0]) if call.parameters else 0.5


def _exact(parts: Lowered) -> str:
    return f"{parts.partials[0]}[{list(parts.ranks).index(rank_of(parts.call))}]"


_SAMPLE = "{0}.m2 / CASE WHEN {0}.n - 1 > 0 THEN {0}.n - 1 END"
_POPULATION = "{0}.m2 / CASE WHEN {0}.n > 0 THEN {0}.n END"
_RULES: Mapping[str, str | Callable[[Lowered], str]] = {
    "avg": _average,
    "var": _SAMPLE,
    "var_pop": _POPULATION,
    "stddev": f"sqrt({_SAMPLE})",
    "stddev_pop": f"sqrt({_POPULATION})",
    **dict.fromkeys(("first", "last", "min_by", "max_by"), "{0}.value"),
    "approx_percentile": _approximate,
    "percentile": _exact,
    "median": _exact,
}
