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
    rule = _RULES.get(parts.call.function)
    return parts.partials[0] if rule is None else rule(parts)


def _average(parts: Lowered) -> str:
    total, count = parts.partials
    if isinstance(parts.argument, DecimalType):
        kind = average_type(parts.argument).simpleString()
        return f"cast({total} / nullif(cast({count} AS decimal(20, 0)), 0) AS {kind})"
    return f"cast({total} AS double) / nullif({count}, 0)"


def _variance(*, sample: bool, root: bool) -> Callable[[Lowered], str]:
    def rule(parts: Lowered) -> str:
        moments = parts.partials[0]
        freedom = f"{moments}.n - 1" if sample else f"{moments}.n"
        variance = f"{moments}.m2 / CASE WHEN {freedom} > 0 THEN {freedom} END"
        return f"sqrt({variance})" if root else variance

    return rule


def _value(parts: Lowered) -> str:
    return f"{parts.partials[0]}.value"


def _approximate(parts: Lowered) -> str:
    return quantile_at(parts.partials[0], parts.call.parameters[0])


def rank_of(call: AggregateCall) -> float:
    """Return the rank an exact percentile looks at."""
    return float(call.parameters[0]) if call.parameters else 0.5


def _exact(parts: Lowered) -> str:
    return f"{parts.partials[0]}[{list(parts.ranks).index(rank_of(parts.call))}]"


_RULES: Mapping[str, Callable[[Lowered], str]] = {
    "avg": _average,
    "var": _variance(sample=True, root=False),
    "var_pop": _variance(sample=False, root=False),
    "stddev": _variance(sample=True, root=True),
    "stddev_pop": _variance(sample=False, root=True),
    "first": _value,
    "last": _value,
    "min_by": _value,
    "max_by": _value,
    "approx_percentile": _approximate,
    "percentile": _exact,
    "median": _exact,
}
