"""From partials to results: what `AggregateFunction.lower` does, as SQL text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, DecimalType, FractionalType

from weft.engines.spark.sql.partials import average_type, sum_type
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
        return _decimal_average(total, count, parts.argument)
    return f"cast({total} AS double) / nullif({count}, 0)"


_ROOMY = 24  # digits of decimals whose sums leave room for four more after the point


def _decimal_average(total: str, count: str, own: DecimalType) -> str:
    """Divide as AVG does: rounded once, to four more digits after the point than values have.

    Sums of many digits are divided in two steps: what is a whole multiple of the count, exactly,
    and the rest.
    """
    rows = f"nullif(cast({count} AS decimal(20, 0)), 0)"
    kind, scale = average_type(own).simpleString(), own.scale
    if own.precision <= _ROOMY:
        return f"cast({_rounded_once(total, rows, scale)} AS {kind})"
    rest = f"({total} % {rows})"
    whole = f"cast(({total} - {rest}) / {rows} AS {own.simpleString()})"
    part = f"cast({_rounded_once(rest, rows, scale)} AS decimal({scale + 6}, {scale + 4}))"
    return f"cast({whole} + {part} AS {kind})"


def _rounded_once(dividend: str, rows: str, scale: int) -> str:
    """Divide by a count, to four more digits: of a dividend of 34 digits, Spark leaves as many."""
    if scale >= 2:
        return f"cast({dividend} AS decimal(34, {scale})) / {rows}"
    # A quotient never has less than six.
    return f"cast({dividend} * 0.01BD AS decimal(34, {scale + 2})) / {rows} * 100"


def _approximate(parts: Lowered) -> str:
    return quantile_at(parts.partials[0], parts.call.parameters[0])


def rank_of(call: AggregateCall) -> float:
    """Return the rank an exact percentile looks at."""
    return float(call.parameters[0]) if call.parameters else 0.5


def _exact(parts: Lowered) -> str:
    return f"{parts.partials[0]}[{list(parts.ranks).index(rank_of(parts.call))}]"


def _distinct_sum(parts: Lowered) -> str:
    """Add distinct values; those of a double that are zeros of either sign are one value."""
    own, kind = parts.argument, "bigint"
    if isinstance(own, DecimalType):
        kind = sum_type(own).simpleString()
    elif isinstance(own, FractionalType):
        kind = "double"
    return (
        f"aggregate({_distinct_values(parts)}, cast(NULL AS {kind}), "
        f"(a, v) -> cast(coalesce(a + v, v) AS {kind}))"
    )


def _distinct_values(parts: Lowered) -> str:
    values = parts.partials[0]
    if isinstance(parts.argument, FractionalType) and not isinstance(parts.argument, DecimalType):
        return f"array_distinct(transform({values}, v -> cast(v AS double) + 0D))"
    return values


def _distinct_average(parts: Lowered) -> str:
    count = f"cast(size({_distinct_values(parts)}) AS bigint)"
    return _average(replace(parts, partials=(_distinct_sum(parts), count)))


_SAMPLE = "{0}.m2 / CASE WHEN {0}.n - 1 > 0 THEN {0}.n - 1 END"
_POPULATION = "{0}.m2 / CASE WHEN {0}.n > 0 THEN {0}.n END"
_SLOPE = "{0}.c / nullif({0}.m2_x, 0D)"
_IF_ANY = "CASE WHEN {{0}}.n > 0 THEN {{0}}.{} END"
_RULES: Mapping[str, str | Callable[[Lowered], str]] = {
    "avg": _average,
    "var": _SAMPLE,
    "var_pop": _POPULATION,
    "stddev": f"sqrt({_SAMPLE})",
    "stddev_pop": f"sqrt({_POPULATION})",
    "corr": "{0}.c / nullif(sqrt({0}.m2_x) * sqrt({0}.m2_y), 0D)",
    "covar_pop": "{0}.c / nullif({0}.n, 0)",
    "covar_samp": "{0}.c / CASE WHEN {0}.n > 1 THEN {0}.n - 1 END",
    "regr_avgx": _IF_ANY.format("mean_x"),
    "regr_avgy": _IF_ANY.format("mean_y"),
    "regr_count": "{0}.n",
    "regr_intercept": f"{{0}}.mean_y - {_SLOPE} * {{0}}.mean_x",
    "regr_r2": "CASE WHEN {0}.m2_x = 0 THEN NULL WHEN {0}.m2_x * {0}.m2_y = 0 THEN 1D "
    "ELSE {0}.c * {0}.c / ({0}.m2_x * {0}.m2_y) END",
    "regr_slope": _SLOPE,
    "regr_sxx": _IF_ANY.format("m2_x"),
    "regr_sxy": _IF_ANY.format("c"),
    "regr_syy": _IF_ANY.format("m2_y"),
    "skewness": "sqrt({0}.n) * {0}.m3 / nullif({0}.m2 * sqrt({0}.m2), 0D)",
    "kurtosis": "{0}.n * {0}.m4 / nullif({0}.m2 * {0}.m2, 0D) - 3",
    "collect_list": "sort_array({0})",
    "collect_set": "sort_array({0})",
    "sum_distinct": _distinct_sum,
    "avg_distinct": _distinct_average,
    **dict.fromkeys(("first", "last", "min_by", "max_by"), "{0}.value"),
    "approx_percentile": _approximate,
    "percentile": _exact,
    "median": _exact,
}
