"""The aggregates, as users write them: `weft.agg.min("temp")`.

Each argument is a column or a SQL expression over the columns of the source.

>>> str(avg("price * quantity")), str(count()), str(percentile("temp", 0.95))
('avg(price * quantity)', 'count(*)', 'percentile(temp, 0.95)')
"""

from __future__ import annotations

from weft.aggregates import AggregateCall
from weft.aggregates.custom import custom as custom


def count(c: str | None = None) -> AggregateCall:
    """Count events, or the values of `c` that are not NULL."""
    return AggregateCall("count", () if c is None or c == "*" else (c,))


def sum(c: str) -> AggregateCall:
    """Sum the values."""
    return AggregateCall("sum", (c,))


def min(c: str) -> AggregateCall:
    """Return the least value."""
    return AggregateCall("min", (c,))


def max(c: str) -> AggregateCall:
    """Return the greatest value; NaN is greater than any number."""
    return AggregateCall("max", (c,))


def avg(c: str) -> AggregateCall:
    """Average the values."""
    return AggregateCall("avg", (c,))


def var(c: str) -> AggregateCall:
    """Return the sample variance."""
    return AggregateCall("var", (c,))


def var_pop(c: str) -> AggregateCall:
    """Return the population variance."""
    return AggregateCall("var_pop", (c,))


def stddev(c: str) -> AggregateCall:
    """Return the sample standard deviation."""
    return AggregateCall("stddev", (c,))


def stddev_pop(c: str) -> AggregateCall:
    """Return the population standard deviation."""
    return AggregateCall("stddev_pop", (c,))


def first(c: str) -> AggregateCall:
    """Return the earliest value that is not NULL; of equal times, the least value."""
    return AggregateCall("first", (c,))


def last(c: str) -> AggregateCall:
    """Return the latest value that is not NULL; of equal times, the greatest value."""
    return AggregateCall("last", (c,))


def min_by(c: str, by: str) -> AggregateCall:
    """Return `c` of the event with the least `by`; of ties, the earliest."""
    return AggregateCall("min_by", (c, by))


def max_by(c: str, by: str) -> AggregateCall:
    """Return `c` of the event with the greatest `by`; of ties, the latest."""
    return AggregateCall("max_by", (c, by))


def product(c: str) -> AggregateCall:
    """Multiply the values, as double."""
    return AggregateCall("product", (c,))


def bool_and(c: str) -> AggregateCall:
    """Tell whether every value is true."""
    return AggregateCall("bool_and", (c,))


def bool_or(c: str) -> AggregateCall:
    """Tell whether any value is true."""
    return AggregateCall("bool_or", (c,))


def bit_and(c: str) -> AggregateCall:
    """Return the bits set in every value."""
    return AggregateCall("bit_and", (c,))


def bit_or(c: str) -> AggregateCall:
    """Return the bits set in any value."""
    return AggregateCall("bit_or", (c,))


def bit_xor(c: str) -> AggregateCall:
    """Return the bits set in an odd number of values."""
    return AggregateCall("bit_xor", (c,))


def count_distinct(c: str) -> AggregateCall:
    """Count the distinct values, exactly."""
    return AggregateCall("count_distinct", (c,))


def sum_distinct(c: str) -> AggregateCall:
    """Sum the distinct values."""
    return AggregateCall("sum_distinct", (c,))


def avg_distinct(c: str) -> AggregateCall:
    """Average the distinct values."""
    return AggregateCall("avg_distinct", (c,))


def collect_list(c: str) -> AggregateCall:
    """Gather the values that are not NULL, in their own order."""
    return AggregateCall("collect_list", (c,))


def collect_set(c: str) -> AggregateCall:
    """Gather the distinct values that are not NULL, in their own order."""
    return AggregateCall("collect_set", (c,))


def mode(c: str) -> AggregateCall:
    """Return the most frequent value; of several, the least."""
    return AggregateCall("mode", (c,))


def corr(y: str, x: str) -> AggregateCall:
    """Return the correlation of two columns."""
    return AggregateCall("corr", (y, x))


def covar_pop(y: str, x: str) -> AggregateCall:
    """Return the population covariance of two columns."""
    return AggregateCall("covar_pop", (y, x))


def covar_samp(y: str, x: str) -> AggregateCall:
    """Return the sample covariance of two columns."""
    return AggregateCall("covar_samp", (y, x))


def regr_slope(y: str, x: str) -> AggregateCall:
    """Return the slope of the line that explains `y` by `x` best."""
    return AggregateCall("regr_slope", (y, x))


def regr_intercept(y: str, x: str) -> AggregateCall:
    """Return `y` where the line that explains it by `x` best meets `x = 0`."""
    return AggregateCall("regr_intercept", (y, x))


def regr_r2(y: str, x: str) -> AggregateCall:
    """Return how much of `y` the best line through `x` explains, from 0 to 1."""
    return AggregateCall("regr_r2", (y, x))


def skewness(c: str) -> AggregateCall:
    """Return the skewness of the values: 0 where they are symmetric."""
    return AggregateCall("skewness", (c,))


def kurtosis(c: str) -> AggregateCall:
    """Return the excess kurtosis of the values: 0 where they are normal."""
    return AggregateCall("kurtosis", (c,))


def approx_count_distinct(c: str) -> AggregateCall:
    """Count the distinct values from a small sketch, shared like a sum."""
    return AggregateCall("approx_count_distinct", (c,))


def approx_percentile(c: str, p: float) -> AggregateCall:
    """Return the value at rank `p`, within 1 %, from a small sketch, shared like a sum."""
    return AggregateCall("approx_percentile", (c,), (float(p),))


def median(c: str) -> AggregateCall:
    """Return the exact median; it is not shared between windows."""
    return AggregateCall("median", (c,))


def percentile(c: str, p: float) -> AggregateCall:
    """Return the exact percentile, interpolated; it is not shared between windows."""
    return AggregateCall("percentile", (c,), (float(p),))
