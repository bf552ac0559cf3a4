"""Counts, sums, products and moments."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any, NamedTuple

from weft.aggregates.base import Monoid, register_monoid
from weft.aggregates.laws import Laws
from weft.errors import DataError

_GROUP = Laws(commutative=True, invertible=True)
# Every finite double is a whole number of 2**-1074: sums of such integers never round.
_BINARY_DIGITS = 1074
_WIDE = Context(prec=200)
INT64_MAX = 2**63 - 1


class Sum(NamedTuple):
    """An exact sum: integers and scaled doubles as one integer, decimals and odd values apart."""

    scaled: int = 0
    decimal: Decimal = Decimal(0)
    rounded: bool = False  # a double took part, so the result is a double
    nans: int = 0
    plus_infinities: int = 0
    minus_infinities: int = 0
    decimals: int = 0

    def value(self) -> int | float | Decimal:
        """Round once, at the end; an integer sum beyond 64 bits is an error, never a wrap."""
        if self.nans or (self.plus_infinities and self.minus_infinities):
            return math.nan
        if self.plus_infinities or self.minus_infinities:
            return math.inf if self.plus_infinities else -math.inf
        if self.decimals and not self.rounded:
            return _WIDE.add(self.decimal, Decimal(self.scaled >> _BINARY_DIGITS))
        if self.rounded:
            try:
                binary = self.scaled / (1 << _BINARY_DIGITS)
            except OverflowError:
                binary = math.inf if self.scaled > 0 else -math.inf
            return binary + float(self.decimal) if self.decimals else binary
        total = self.scaled >> _BINARY_DIGITS
        if not -INT64_MAX - 1 <= total <= INT64_MAX:
            raise DataError(
                f"an integer sum of {total} does not fit 64 bits",
                hint="sum a cast to double or decimal instead",
            )
        return total


def _sum_of(value: Any) -> Sum:
    if isinstance(value, Decimal):
        return Sum(decimal=value, decimals=1)
    if isinstance(value, float):
        if math.isnan(value):
            return Sum(rounded=True, nans=1)
        if math.isinf(value):
            return Sum(rounded=True, plus_infinities=value > 0, minus_infinities=value < 0)
        numerator, denominator = value.as_integer_ratio()
        shift = _BINARY_DIGITS - (denominator.bit_length() - 1)
        return Sum(scaled=numerator << shift, rounded=True)
    return Sum(scaled=int(value) << _BINARY_DIGITS)


@register_monoid
class CountRows(Monoid):
    """Counts events, NULL or not."""

    name = "count_rows"
    laws = _GROUP
    identity = 0

    def lift(self, args: tuple[Any, ...], time_us: int) -> int:
        """One event counts one."""
        return 1

    def combine(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    def invert(self, a: int, b: int) -> int:
        """Subtract."""
        return a - b


@register_monoid
class Count(CountRows):
    """Counts the values that are not NULL."""

    name = "count"

    def lift(self, args: tuple[Any, ...], time_us: int) -> int:
        """A value counts one, NULL nothing."""
        return 0 if args[0] is None else 1


@register_monoid
class Total(Monoid):
    """Sums exactly; rounding happens once, when the result is read.

    Doubles are declared not invertible although this representation is exact: engines hold a
    double, and a running subtraction of doubles drifts.
    """

    name = "sum"
    laws = Laws(commutative=True)
    exact_laws = _GROUP
    identity = Sum()

    def lift(self, args: tuple[Any, ...], time_us: int) -> Sum:
        """NULL adds nothing."""
        return self.identity if args[0] is None else _sum_of(args[0])

    def combine(self, a: Sum, b: Sum) -> Sum:
        """Add field by field."""
        return Sum(
            a.scaled + b.scaled,
            _WIDE.add(a.decimal, b.decimal),
            a.rounded or b.rounded,
            a.nans + b.nans,
            a.plus_infinities + b.plus_infinities,
            a.minus_infinities + b.minus_infinities,
            a.decimals + b.decimals,
        )

    def invert(self, a: Sum, b: Sum) -> Sum:
        """Subtract field by field."""
        return Sum(
            a.scaled - b.scaled,
            _WIDE.subtract(a.decimal, b.decimal),
            a.rounded,
            a.nans - b.nans,
            a.plus_infinities - b.plus_infinities,
            a.minus_infinities - b.minus_infinities,
            a.decimals - b.decimals,
        )


class Moments(NamedTuple):
    """Count, mean and sum of squared distances from the mean."""

    n: int = 0
    mean: float = 0.0
    m2: float = 0.0


@register_monoid
class MomentsOf(Monoid):
    """First two moments, merged pairwise (Chan, Golub & LeVeque).

    Not invertible: subtracting m2 cancels digits.

    >>> m = MomentsOf()
    >>> m.combine(m.lift((1.0,), 0), m.lift((3.0,), 0))
    Moments(n=2, mean=2.0, m2=2.0)
    """

    name = "moments"
    laws = Laws(commutative=True)
    identity = Moments()

    def lift(self, args: tuple[Any, ...], time_us: int) -> Moments:
        """One value is its own mean; an infinite one has no distance from itself."""
        if args[0] is None:
            return self.identity
        value = float(args[0])
        return Moments(1, value, value - value)

    def combine(self, a: Moments, b: Moments) -> Moments:
        """Merge two sets of moments."""
        if not a.n or not b.n:
            return a if a.n else b
        count = a.n + b.n
        delta = b.mean - a.mean
        mean = a.mean + delta * b.n / count
        return Moments(count, mean, a.m2 + b.m2 + delta * delta * a.n * b.n / count)


@register_monoid
class Product(Monoid):
    """Multiplies as double; None where no value was seen."""

    name = "product"
    laws = Laws(commutative=True)

    def lift(self, args: tuple[Any, ...], time_us: int) -> float | None:
        """NULL multiplies nothing."""
        return None if args[0] is None else float(args[0])

    def combine(self, a: float | None, b: float | None) -> float | None:
        """Multiply."""
        if a is None or b is None:
            return b if a is None else a
        return a * b
