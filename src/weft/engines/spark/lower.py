"""From partials to results: what `AggregateFunction.lower` does, as Catalyst expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType

from weft.engines.spark.partials import average_type
from weft.engines.spark.spread import quantile_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column

    from weft.aggregates import AggregateCall


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a result is made of: its partials' columns, its rank, the type of its argument."""

    partials: tuple[Column, ...]
    call: AggregateCall
    argument: DataType | None
    ranks: Sequence[float]  # those that the partial of an exact percentile holds


def lower(parts: Lowered) -> Column:
    """Return the result of an aggregate call as a column."""
    rule = _RULES.get(parts.call.function)
    return parts.partials[0] if rule is None else rule(parts)


def _average(parts: Lowered) -> Column:
    total, count = parts.partials
    if isinstance(parts.argument, DecimalType):
        return (total / count.cast("decimal(20, 0)")).cast(average_type(parts.argument))
    return total.cast("double") / F.when(count > 0, count)


def _variance(*, sample: bool, root: bool) -> Callable[[Lowered], Column]:
    def rule(parts: Lowered) -> Column:
        moments = parts.partials[0]
        freedom = moments["n"] - (1 if sample else 0)
        variance = moments["m2"] / F.when(freedom > 0, freedom)
        return F.sqrt(variance) if root else variance

    return rule


def _value(parts: Lowered) -> Column:
    return parts.partials[0]["value"]


def _approximate(parts: Lowered) -> Column:
    return quantile_at(parts.partials[0], parts.call.parameters[0])


def rank_of(call: AggregateCall) -> float:
    """Return the rank an exact percentile looks at."""
    return call.parameters[0] if call.parameters else 0.5


def _exact(parts: Lowered) -> Column:
    return F.get(parts.partials[0], F.lit(list(parts.ranks).index(rank_of(parts.call))))


_RULES: Mapping[str, Callable[[Lowered], Column]] = {
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
