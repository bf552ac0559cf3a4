"""Minima and maxima in all their forms: by value, by time, by another column, of bits.

Ties are decided by the values themselves, never by the order of arrival, so that every engine
picks the same event: `first` is the least (time, value), `max_by` the greatest (by, time, value).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from weft.aggregates.base import Monoid, register_monoid
from weft.aggregates.laws import Laws

if TYPE_CHECKING:
    from collections.abc import Callable

_LATTICE = Laws(commutative=True, idempotent=True, selective=True)


def order_key(value: Any) -> Any:
    """Order values as Spark does: NULL below everything, NaN above every number.

    >>> sorted([2.0, math.nan, None, -math.inf], key=order_key)
    [None, -inf, 2.0, nan]
    """
    if value is None:
        return (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    if isinstance(value, tuple):
        return (1, tuple(order_key(v) for v in value))
    return (1, value)


class _Pick(Monoid):
    """Keeps the least or the greatest of what was lifted; None where nothing was."""

    laws = _LATTICE
    greatest: ClassVar[bool] = False

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        pick = max if self.greatest else min
        return pick(a, b, key=order_key)


@register_monoid
class Minimum(_Pick):
    """The least value."""

    name = "min"

    def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
        """NULL is skipped."""
        return args[0]


@register_monoid
class Maximum(Minimum):
    """The greatest value; NaN is greater than any number."""

    name = "max"
    greatest = True


@register_monoid
class First(_Pick):
    """The earliest value that is not NULL, as (time, value)."""

    name = "first"
    asks_time = True

    def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
        """NULL is skipped."""
        return None if args[0] is None else (time_us, args[0])


@register_monoid
class Last(First):
    """The latest value that is not NULL, as (time, value)."""

    name = "last"
    greatest = True


@register_monoid
class MinBy(_Pick):
    """The event with the least `by`, as (by, time, value); the value may be NULL."""

    name = "min_by"

    def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
        """An event whose `by` is NULL is skipped."""
        value, by = args
        return None if by is None else (by, time_us, value)


@register_monoid
class MaxBy(MinBy):
    """The event with the greatest `by`, as (by, time, value)."""

    name = "max_by"
    greatest = True


class _Bits(Monoid):
    laws = Laws(commutative=True, idempotent=True)
    operator: ClassVar[Callable[[int, int], int]]

    def lift(self, args: tuple[Any, ...], time_us: int) -> int | None:
        """NULL is skipped."""
        return args[0]  # type: ignore[no-any-return]

    def combine(self, a: int | None, b: int | None) -> int | None:
        if a is None or b is None:
            return b if a is None else a
        return type(self).operator(a, b)


@register_monoid
class BitAnd(_Bits):
    """Bits set in every value."""

    name = "bit_and"
    operator = int.__and__


@register_monoid
class BitOr(_Bits):
    """Bits set in any value."""

    name = "bit_or"
    operator = int.__or__


@register_monoid
class BitXor(_Bits):
    """Bits set in an odd number of values; 0 is the identity, so it can be inverted."""

    name = "bit_xor"
    laws = Laws(commutative=True, invertible=True)
    identity = 0
    operator = int.__xor__

    def lift(self, args: tuple[Any, ...], time_us: int) -> int:
        """NULL is skipped."""
        return args[0] or 0

    def invert(self, a: int, b: int) -> int:
        """Xor is its own inverse."""
        return a ^ b


@register_monoid
class BoolAnd(_Pick):
    """True while every value is true: the least boolean."""

    name = "bool_and"

    def lift(self, args: tuple[Any, ...], time_us: int) -> bool | None:
        """NULL is skipped."""
        return None if args[0] is None else bool(args[0])


@register_monoid
class BoolOr(BoolAnd):
    """True once any value is true: the greatest boolean."""

    name = "bool_or"
    greatest = True
