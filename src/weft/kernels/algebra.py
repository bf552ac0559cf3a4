"""The monoids that kernels are compiled for: identity, combine, and inverse where there is one.

Each is a named tuple whose type tells numba which combine to inline; its fields (the identity, a
modulus) travel as plain arguments. In every method `a` is older than `b`, and order matters.

`inverse(a, b)` removes `b`, the oldest part, from `a`. `extend` and `between` are combine and
inverse for prefixes that grow as long as the stream: prefixes of an integer sum have 128 bits, so
that a stream may pass what fits in 64 as long as each window does not.

`beats(a, b)`, where there is it, may tell cheaply that combine keeps `a`; an identity never beats.
"""

# ruff: noqa: D102 - the contract of each method is stated once, above
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload_method

if TYPE_CHECKING:
    from weft.kernels.columns import Columns, Compiled, Partial

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class SumFloat64(NamedTuple):
    """Add; rounding makes it associative only to the last bits, and never exactly invertible."""

    identity: float = 0.0

    def combine(op, a: float, b: float) -> float:
        return a + b

    def same(op, a: float, b: float) -> bool:
        return a == b or (a != a and b != b)


class ProductFloat64(NamedTuple):
    """Multiply; a zero cannot be divided out again, so there is no inverse."""

    identity: float = 1.0

    def combine(op, a: float, b: float) -> float:
        return a * b

    def same(op, a: float, b: float) -> bool:
        return a == b or (a != a and b != b)


class SumInt64(NamedTuple):
    """Add exactly; a sum of partials that leaves 64 bits raises `OverflowError`."""

    identity: int = 0

    def combine(op, a: int, b: int) -> int:
        total = a + b
        if ((total ^ a) & (total ^ b)) < 0:
            raise OverflowError("sum leaves 64 bits")
        return total

    def inverse(op, a: int, b: int) -> int:
        rest = a - b
        if ((a ^ b) & (a ^ rest)) < 0:
            raise OverflowError("sum leaves 64 bits")
        return rest

    def same(op, a: int, b: int) -> bool:
        return a == b


class PrefixSumInt64(NamedTuple):
    """Sum a whole stream of int64 into 128 bits, (high, low) in two's complement."""

    identity: tuple[int, int] = (0, 0)

    def extend(op, a: tuple[int, int], b: int) -> tuple[int, int]:
        low = a[1] + b
        carry = (((a[1] & b) | ((a[1] | b) & ~low)) >> 63) & 1
        return a[0] + (b >> 63) + carry, low

    def between(op, a: tuple[int, int], b: tuple[int, int]) -> int:
        low = a[1] - b[1]
        borrow = (((~a[1] & b[1]) | ((~a[1] | b[1]) & low)) >> 63) & 1
        if a[0] - b[0] - borrow != low >> 63:
            raise OverflowError("sum leaves 64 bits")
        return low


class Count(NamedTuple):
    """Add counts; 2**63 events do not happen, so nothing is checked."""

    identity: int = 0

    def combine(op, a: int, b: int) -> int:
        return a + b

    def inverse(op, a: int, b: int) -> int:
        return a - b

    def extend(op, a: int, b: int) -> int:
        return a + b

    def between(op, a: int, b: int) -> int:
        return a - b

    def same(op, a: int, b: int) -> bool:
        return a == b


class MaxFloat64(NamedTuple):
    """Keep the larger; NaN is larger than any number, as in Spark."""

    identity: float = -np.inf

    def combine(op, a: float, b: float) -> float:
        return b if b >= a or b != b else a

    def beats(op, a: float, b: float) -> bool:
        return b < a

    def same(op, a: float, b: float) -> bool:
        return a == b or (a != a and b != b)


class MinFloat64(NamedTuple):
    """Keep the smaller; NaN is larger than any number, which makes NaN the identity."""

    identity: float = np.nan

    def combine(op, a: float, b: float) -> float:
        return b if b <= a or a != a else a

    def beats(op, a: float, b: float) -> bool:
        return b > a

    def same(op, a: float, b: float) -> bool:
        return a == b or (a != a and b != b)


class MaxInt64(NamedTuple):
    """Keep the larger of two integers."""

    identity: int = _INT64_MIN

    def combine(op, a: int, b: int) -> int:
        return b if b >= a else a

    def beats(op, a: int, b: int) -> bool:
        return b < a

    def same(op, a: int, b: int) -> bool:
        return a == b


class MinInt64(NamedTuple):
    """Keep the smaller of two integers."""

    identity: int = _INT64_MAX

    def combine(op, a: int, b: int) -> int:
        return b if b <= a else a

    def beats(op, a: int, b: int) -> bool:
        return b > a

    def same(op, a: int, b: int) -> bool:
        return a == b


class BitAnd(NamedTuple):
    """Keep the bits that are set in both."""

    identity: int = -1

    def combine(op, a: int, b: int) -> int:
        return a & b

    def same(op, a: int, b: int) -> bool:
        return a == b


class BitOr(NamedTuple):
    """Keep the bits that are set in one or both."""

    identity: int = 0

    def combine(op, a: int, b: int) -> int:
        return a | b

    def same(op, a: int, b: int) -> bool:
        return a == b


class BitXor(NamedTuple):
    """Keep the bits that are set in exactly one; every value is its own inverse."""

    identity: int = 0

    def combine(op, a: int, b: int) -> int:
        return a ^ b

    def inverse(op, a: int, b: int) -> int:
        return a ^ b

    def extend(op, a: int, b: int) -> int:
        return a ^ b

    def between(op, a: int, b: int) -> int:
        return a ^ b

    def same(op, a: int, b: int) -> bool:
        return a == b


class Moments(NamedTuple):
    """Merge (count, mean, sum of squared deviations) as Chan, Golub and LeVeque do."""

    identity: tuple[int, float, float] = (0, 0.0, 0.0)

    def combine(
        op, a: tuple[int, float, float], b: tuple[int, float, float]
    ) -> tuple[int, float, float]:
        count = a[0] + b[0]
        if count == 0:
            return a
        shift = b[1] - a[1]
        share = b[0] / count
        return count, a[1] + shift * share, a[2] + b[2] + shift * shift * a[0] * share

    def same(op, a: tuple[int, float, float], b: tuple[int, float, float]) -> bool:
        return a[0] == b[0] and a[1] == b[1] and a[2] == b[2]


class Comoments(NamedTuple):
    """Merge (count, means, central sums) of pairs; fields as in `weft.aggregates.moments`."""

    identity: Any = (0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def combine(op, a: Any, b: Any) -> Any:
        if a[0] == 0:
            return b
        if b[0] == 0:
            return a
        count = a[0] + b[0]
        dy, dx, share = b[1] - a[1], b[2] - a[2], b[0] / count
        weight = a[0] * share
        return (
            count,
            a[1] + dy * share,
            a[2] + dx * share,
            a[3] + b[3] + dy * dx * weight,
            a[4] + b[4] + dy * dy * weight,
            a[5] + b[5] + dx * dx * weight,
        )

    def same(op, a: Any, b: Any) -> bool:
        return bool(a == b)


class ShapeMoments(NamedTuple):
    """Merge (count, mean, central sums of powers 2 to 4); as in `weft.aggregates.moments`."""

    identity: Any = (0, 0.0, 0.0, 0.0, 0.0)

    def combine(op, a: Any, b: Any) -> Any:
        if a[0] == 0:
            return b
        if b[0] == 0:
            return a
        count = a[0] + b[0]
        d, p, q = b[1] - a[1], a[0] / count, b[0] / count
        weight = d * d * p * b[0]
        return (
            count,
            a[1] + d * q,
            a[2] + b[2] + weight,
            a[3] + b[3] + weight * d * (p - q) + 3 * d * (p * b[2] - q * a[2]),
            a[4]
            + b[4]
            + weight * d * d * (p * p - p * q + q * q)
            + 6 * d * d * (p * p * b[2] + q * q * a[2])
            + 4 * d * (p * b[3] - q * a[3]),
        )

    def same(op, a: Any, b: Any) -> bool:
        return bool(a == b)


class AffineModulo(NamedTuple):
    """Compose the maps x -> (scale * x + shift) mod a prime below 2**31; the older one acts first.

    The smallest monoid that catches every mistake of order: it does not commute, and because no
    scale is 0 it still has an inverse.
    """

    identity: tuple[int, int] = (1, 0)
    modulus: int = 2**31 - 1

    def combine(op, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] * b[0] % op.modulus, (a[1] * b[0] + b[1]) % op.modulus

    def inverse(op, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        # Fermat: scale ** (modulus - 2) is 1 / scale.
        scale, power, exponent = a[0], b[0], op.modulus - 2
        while exponent:
            if exponent & 1:
                scale = scale * power % op.modulus
            power = power * power % op.modulus
            exponent >>= 1
        return scale, (a[1] - b[1] * scale) % op.modulus

    def extend(op, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return op.combine(a, b)

    def between(op, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return op.inverse(a, b)

    def same(op, a: tuple[int, int], b: tuple[int, int]) -> bool:
        return a[0] == b[0] and a[1] == b[1]


class Counting(NamedTuple):
    """Count in `calls[0]` the combines and inverses of `inner` whose operands are both real.

    A call with an identity does nothing and costs nothing; the formulas do not count it.
    """

    identity: Partial
    inner: Any
    calls: Columns

    def combine(op, a: Partial, b: Partial) -> Partial:
        if not op.inner.same(a, op.identity) and not op.inner.same(b, op.identity):
            op.calls[0] += 1
        return op.inner.combine(a, b)

    def inverse(op, a: Partial, b: Partial) -> Partial:
        if not op.inner.same(b, op.identity):
            op.calls[0] += 1
        return op.inner.inverse(a, b)

    def extend(op, a: Partial, b: Partial) -> Partial:
        if not op.inner.same(a, op.identity) and not op.inner.same(b, op.identity):
            op.calls[0] += 1
        return op.inner.extend(a, b)

    def between(op, a: Partial, b: Partial) -> Partial:
        if not op.inner.same(b, op.identity):
            op.calls[0] += 1
        return op.inner.between(a, b)

    def same(op, a: Partial, b: Partial) -> bool:
        return bool(op.inner.same(a, b))


def _compile_method(name: str) -> None:
    """Let kernels call `op.<name>(a, b)` on any named tuple that has such a method."""

    def find(op: Any, a: types.Type, b: types.Type) -> Compiled:
        return getattr(op.instance_class, name, None)

    options: dict[str, Any] = {"strict": False}  # the parameters' annotations may differ
    for kind in (types.NamedTuple, types.NamedUniTuple):
        overload_method(kind, name, **options)(find)


for _name in ("combine", "inverse", "extend", "between", "same", "beats"):
    _compile_method(_name)
