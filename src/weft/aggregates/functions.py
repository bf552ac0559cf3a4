"""The aggregate functions of the public list: which partials each needs, and its result."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from weft.aggregates.base import AggregateFunction, register_function
from weft.aggregates.sketches import (
    HLL_RELATIVE_ERROR,
    QUANTILE_RELATIVE_ERROR,
    hll_estimate,
    quantile_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.aggregates.sums import Moments, Sum

    Values = tuple[Any, ...]
    Ranks = tuple[float, ...]

_WIDE = Context(prec=60)


def _sum(partials: Values, ranks: Ranks) -> Any:
    """Round once; the count tells a sum of nothing from a sum of zero."""
    total: Sum = partials[0]
    return total.value() if partials[1] else None


def average(partials: Values, ranks: Ranks) -> Any:
    """Divide the exact sum; an average of integers is a double."""
    total, count = partials
    if not count:
        return None
    if total.decimals and not total.rounded:
        return _WIDE.divide(total.value(), Decimal(count))
    if total.rounded:
        return total.value() / count
    return (total.scaled >> 1074) / count


def _spread(*, sample: bool, root: bool) -> Callable[[Values, Ranks], float | None]:
    """Read a variance, or its root, off the moments; NULL where too few values leave none."""

    def lower(partials: Values, ranks: Ranks) -> float | None:
        moments: Moments = partials[0]
        freedom = moments.n - sample
        if freedom <= 0:
            return None
        variance = moments.m2 / freedom
        return math.sqrt(variance) if root and variance >= 0 else variance

    return lower


def _of_event(partials: Values, ranks: Ranks) -> Any:
    return None if partials[0] is None else partials[0][-1]


def _if_any(partials: Values, ranks: Ranks) -> Any:
    """Return the value; the count tells no value from values that cancel."""
    return partials[0] if partials[1] else None


def interpolate(ordered: tuple[Any, ...], p: float) -> float | None:
    """Return the percentile of sorted values, on the line between the two nearest ranks.

    >>> interpolate((1, 2, 4), 0.75)
    3.0
    """
    if not ordered:
        return None
    at = p * (len(ordered) - 1)
    low = math.floor(at)
    below, above = float(ordered[low]), float(ordered[math.ceil(at)])
    return below if below == above else below + (above - below) * (at - low)


for _function in (
    AggregateFunction(
        "count", (), accepts="anything", result="long", arity=(0, 1), kind_of_rows="count_rows"
    ),
    AggregateFunction("sum", ("sum", "count"), _sum, "numbers", "sum"),
    AggregateFunction("avg", ("sum", "count"), average, "numbers", "average"),
    *(
        AggregateFunction(
            name, ("moments",), _spread(sample=sample, root=root), "numbers", "double"
        )
        for name, sample, root in (
            ("var", True, False),
            ("var_pop", False, False),
            ("stddev", True, True),
            ("stddev_pop", False, True),
        )
    ),
    AggregateFunction("min"),
    AggregateFunction("max"),
    AggregateFunction("first", (), _of_event),
    AggregateFunction("last", (), _of_event),
    AggregateFunction("min_by", (), _of_event, arity=(2,)),
    AggregateFunction("max_by", (), _of_event, arity=(2,)),
    AggregateFunction("product", accepts="numbers", result="double"),
    AggregateFunction("bool_and", accepts="booleans", result="boolean"),
    AggregateFunction("bool_or", accepts="booleans", result="boolean"),
    AggregateFunction("bit_and", accepts="integers"),
    AggregateFunction("bit_or", accepts="integers"),
    AggregateFunction("bit_xor", ("bit_xor", "count"), _if_any, "integers"),
    AggregateFunction(
        "count_distinct", ("distinct",), lambda partials, ranks: len(partials[0]), result="long"
    ),
    AggregateFunction(
        "approx_count_distinct",
        ("hll",),
        lambda partials, ranks: hll_estimate(partials[0]),
        result="long",
        relative_error=HLL_RELATIVE_ERROR,
    ),
    AggregateFunction(
        "approx_percentile",
        ("quantiles",),
        lambda partials, ranks: quantile_of(partials[0], ranks[0]),
        "numbers",
        "double",
        parameters=1,
        relative_error=QUANTILE_RELATIVE_ERROR,
    ),
    AggregateFunction(
        "percentile",
        ("values",),
        lambda partials, ranks: interpolate(partials[0], ranks[0]),
        "numbers",
        "double",
        parameters=1,
    ),
    AggregateFunction(
        "median",
        ("values",),
        lambda partials, ranks: interpolate(partials[0], 0.5),
        "numbers",
        "double",
    ),
):
    register_function(_function)
