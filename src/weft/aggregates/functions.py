"""The aggregate functions of the public list: which partials each needs, and its result."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from weft.aggregates.base import (
    AggregateCall,
    AggregateFunction,
    Partial,
    ResultType,
    register_function,
)
from weft.aggregates.sketches import (
    HLL_RELATIVE_ERROR,
    QUANTILE_RELATIVE_ERROR,
    hll_estimate,
    quantile_of,
)
from weft.errors import QueryError

if TYPE_CHECKING:
    from weft.aggregates.sums import Moments, Sum

_WIDE = Context(prec=60)


@register_function
class Count(AggregateFunction):
    """COUNT(*) and COUNT(x)."""

    name = "count"
    accepts = "anything"
    arity = (0, 1)
    result = "long"

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """Rows without an argument, values with one."""
        return (Partial("count", args) if args else Partial("count_rows", ()),)


@register_function
class SumOf(AggregateFunction):
    """SUM(x), NULL where there is no value."""

    accepts = "numbers"
    name = "sum"
    result: ClassVar[ResultType] = "sum"

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """The count tells a sum of nothing from a sum of zero."""
        return (Partial("sum", args), Partial("count", args))

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> Any:
        """Round once."""
        total: Sum = partials[0]
        return total.value() if partials[1] else None


@register_function
class Average(SumOf):
    """AVG(x); an average of integers is a double."""

    name = "avg"
    result = "average"

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> Any:
        """Divide the exact sum."""
        total, count = partials
        if not count:
            return None
        if total.decimals and not total.rounded:
            return _WIDE.divide(total.value(), Decimal(count))
        if total.rounded:
            return total.value() / count
        return (total.scaled >> 1074) / count


class _FromMoments(AggregateFunction):
    accepts = "numbers"
    result = "double"
    sample: ClassVar[bool] = True
    root: ClassVar[bool] = False

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        return (Partial("moments", args),)

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> float | None:
        moments: Moments = partials[0]
        freedom = moments.n - self.sample
        if freedom <= 0:
            return None
        variance = moments.m2 / freedom
        return math.sqrt(variance) if self.root and variance >= 0 else variance


@register_function
class Variance(_FromMoments):
    """Sample variance, NULL for fewer than two values."""

    name = "var"


@register_function
class VariancePopulation(_FromMoments):
    """Population variance."""

    name = "var_pop"
    sample = False


@register_function
class Deviation(_FromMoments):
    """Sample standard deviation, NULL for fewer than two values."""

    name = "stddev"
    root = True


@register_function
class DeviationPopulation(_FromMoments):
    """Population standard deviation."""

    name = "stddev_pop"
    sample = False
    root = True


@register_function
class Minimum(AggregateFunction):
    """MIN(x)."""

    name = "min"


@register_function
class Maximum(AggregateFunction):
    """MAX(x)."""

    name = "max"


class _Event(AggregateFunction):
    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> Any:
        return None if partials[0] is None else partials[0][-1]


@register_function
class First(_Event):
    """The earliest value that is not NULL."""

    name = "first"


@register_function
class Last(_Event):
    """The latest value that is not NULL."""

    name = "last"


@register_function
class MinBy(_Event):
    """The value of the event with the least `by`."""

    name = "min_by"
    arity = (2,)


@register_function
class MaxBy(_Event):
    """The value of the event with the greatest `by`."""

    name = "max_by"
    arity = (2,)


@register_function
class Product(AggregateFunction):
    """The product, as double."""

    accepts = "numbers"
    name = "product"
    result = "double"


@register_function
class BoolAnd(AggregateFunction):
    """True if every value is true."""

    accepts = "booleans"
    name = "bool_and"
    result = "boolean"


@register_function
class BoolOr(AggregateFunction):
    """True if any value is true."""

    accepts = "booleans"
    name = "bool_or"
    result = "boolean"


@register_function
class BitAnd(AggregateFunction):
    """Bitwise and of all values."""

    accepts = "integers"
    name = "bit_and"


@register_function
class BitOr(AggregateFunction):
    """Bitwise or of all values."""

    accepts = "integers"
    name = "bit_or"


@register_function
class BitXor(AggregateFunction):
    """Bitwise exclusive or of all values, NULL where there is none."""

    accepts = "integers"
    name = "bit_xor"

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """The count tells no value from values that cancel."""
        return (Partial("bit_xor", args), Partial("count", args))

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> int | None:
        """NULL without a value."""
        return partials[0] if partials[1] else None


@register_function
class CountDistinct(AggregateFunction):
    """The exact number of distinct values."""

    name = "count_distinct"
    result = "long"

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """A set."""
        return (Partial("distinct", args),)

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> int:
        """Its size."""
        return len(partials[0])


@register_function
class ApproxCountDistinct(AggregateFunction):
    """The number of distinct values, estimated from a small sketch."""

    name = "approx_count_distinct"
    result = "long"
    relative_error = HLL_RELATIVE_ERROR

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """A HyperLogLog sketch."""
        return (Partial("hll", args),)

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> int:
        """Its estimate."""
        return hll_estimate(partials[0])


class _AtRank(AggregateFunction):
    accepts = "numbers"
    parameters = 1
    result = "double"

    def check(self, call: AggregateCall) -> None:
        super().check(call)
        if not 0 <= call.parameters[0] <= 1:
            raise QueryError(
                f"{self.name} cannot look at rank {call.parameters[0]:g}",
                hint="give a rank between 0 and 1, such as 0.95",
            )


@register_function
class ApproxPercentile(_AtRank):
    """A percentile within 1 % of its value, from a small sketch."""

    name = "approx_percentile"
    relative_error = QUANTILE_RELATIVE_ERROR

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """Counts per logarithmic bucket."""
        return (Partial("quantiles", args),)

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> float | None:
        """The bucket at the rank."""
        return quantile_of(partials[0], parameters[0])


@register_function
class Percentile(_AtRank):
    """The exact percentile, interpolated between neighbours as Spark does."""

    name = "percentile"

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """All values."""
        return (Partial("values", args),)

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> float | None:
        """Interpolate linearly."""
        return interpolate(partials[0], parameters[0])


@register_function
class Median(AggregateFunction):
    """The exact median."""

    accepts = "numbers"
    name = "median"
    result = "double"

    def partials(self, args: tuple[str, ...]) -> tuple[Partial, ...]:
        """All values."""
        return (Partial("values", args),)

    def lower(self, partials: tuple[Any, ...], parameters: tuple[float, ...]) -> float | None:
        """The percentile at one half."""
        return interpolate(partials[0], 0.5)


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
