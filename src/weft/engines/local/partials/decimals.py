"""Exact sums back to integers and decimals: limbs of 32 bits, carried and packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.values.arrow import pc
from weft.errors import DataError
from weft.kernels.ranges.prefix_sums import join_halves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.partials.columns import LimbSums
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools, Int64s

_LIMB = 0xFFFFFFFF


def integers_of(sums: LimbSums) -> Int64s:
    """Return sums of integers; one beyond 64 bits is refused.

    >>> from weft.engines.local.partials.columns import LimbSums
    >>> integers_of(LimbSums((np.array([5]), np.array([1])))).tolist()
    [4294967301]
    """
    if len(sums.limbs) == 1:
        return sums.limbs[0]
    low, high = sums.limbs
    return join_halves(high, low)


def carried_limbs(sums: LimbSums) -> list[Int64s]:
    """Bring all limbs but the highest into 32 bits."""
    limbs, carry = [], np.zeros(len(sums), np.int64)
    for limb in sums.limbs[:-1]:
        total = limb + carry
        limbs.append(total & _LIMB)
        carry = total >> 32
    return [*limbs, sums.limbs[-1] + carry]


def decimals_of(sums: LimbSums, some: Bools, type: pa.DataType) -> Array:
    """Return sums of decimals; NULL where there was no value, an error where digits are missing."""
    assert sums.scale is not None
    limbs = carried_limbs(sums)
    if np.any((limbs[-1] < -(2**31)) | (limbs[-1] >= 2**31)):
        raise _too_large(type)
    return _packed(limbs, some, sums.scale, type)


def _packed(limbs: Sequence[Any], some: Bools, scale: int, type: pa.DataType) -> Array:
    """Make decimals of the 32-bit words of their unscaled integers."""
    words = np.empty((some.size, len(limbs)), np.uint32)
    for at, limb in enumerate(limbs):
        words[:, at] = (limb & _LIMB).astype(np.uint32)
    wide = pa.decimal128(38, scale) if len(limbs) == 4 else pa.decimal256(76, scale)
    made = pa.Array.from_buffers(wide, some.size, [None, pa.py_buffer(words.tobytes())])
    masked = pc.if_else(pa.array(some), made, pa.scalar(None, wide))
    if pa.types.is_null(type):
        return masked
    try:
        # Of a number of the same width no digits are counted, and 128 bits hold some of 39.
        return masked.cast(pa.decimal256(76, scale)).cast(type)
    except pa.ArrowInvalid:
        raise _too_large(type) from None


def _too_large(type: pa.DataType) -> DataError:
    return DataError(f"a sum of decimals does not fit {type}", hint="sum a cast to double instead")


def averaged_decimals(sums: LimbSums, counts: Int64s, type: pa.Decimal128Type[Any, Any]) -> Array:
    """Divide exact sums by counts, rounded as Spark does: half up, away from zero.

    In arrays of Python's integers: no fixed width holds all digits of the quotient.
    """
    assert sums.scale is not None
    some = counts > 0
    divisors = np.where(some, counts, 1).astype(object)
    totals = sum(limb.astype(object) << (32 * at) for at, limb in enumerate(sums.limbs))
    scaled = totals * 10 ** (type.scale - sums.scale)
    quotients = scaled // divisors
    rests = (scaled - quotients * divisors) * 2
    up = (rests > divisors) | ((rests == divisors) & (scaled >= 0))
    rounded = quotients + up.astype(object)
    if np.any(abs(rounded) >= 10**type.precision):
        raise _too_large(type)
    limbs = [rounded >> (32 * at) for at in range(len(sums.limbs))]
    return _packed(limbs, some, type.scale, type)
