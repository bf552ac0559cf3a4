"""Mergeable sketches: small partials for approximate answers, shared like sums.

Both sketches are deterministic: the same set of values gives the same sketch, whatever the order
and however it was split, so every engine gives the same approximate answer.
"""

from __future__ import annotations

import math
import struct
import sys
from decimal import Decimal
from typing import Any

from weft.aggregates.base import Monoid, register_monoid
from weft.aggregates.laws import Laws

HLL_BITS = 12
HLL_REGISTERS = 1 << HLL_BITS
# Three standard errors of 1.04 / sqrt(registers).
HLL_RELATIVE_ERROR = 3 * 1.04 / math.sqrt(HLL_REGISTERS)

QUANTILE_RELATIVE_ERROR = 0.01
_GAMMA = (1 + QUANTILE_RELATIVE_ERROR) / (1 - QUANTILE_RELATIVE_ERROR)
_LOG_GAMMA = math.log(_GAMMA)
_MASK = (1 << 64) - 1


def mix64(x: int) -> int:
    """Scramble 64 bits (the finalizer of SplitMix64).

    >>> hex(mix64(1))
    '0x5692161d100b05e5'
    """
    x &= _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def hash64(value: Any) -> int:
    """Hash a value to 64 bits, the same in every process and on every engine.

    Integers and booleans hash by value, doubles by their bits, everything else by its text.
    """
    if isinstance(value, float):
        bits = (
            0x7FF8000000000000
            if math.isnan(value)
            else struct.unpack("<Q", struct.pack("<d", value + 0.0))[0]
        )
        return mix64(bits)
    if isinstance(value, int):
        return mix64(value)
    h = 0xCBF29CE484222325  # FNV-1a
    for byte in value if isinstance(value, bytes) else str(value).encode():
        h = ((h ^ byte) * 0x100000001B3) & _MASK
    return mix64(h)


def hll_estimate(registers: bytes) -> int:
    """Estimate the number of distinct values from HyperLogLog registers."""
    m = HLL_REGISTERS
    raw = 0.7213 / (1 + 1.079 / m) * m * m / math.fsum(2.0**-r for r in registers)
    empty = registers.count(0)
    if raw <= 2.5 * m and empty:
        return round(m * math.log(m / empty))
    return round(raw)


@register_monoid
class HyperLogLog(Monoid):
    """Registers of HyperLogLog (Flajolet et al., 2007), one byte each."""

    name = "hll"
    laws = Laws(commutative=True, idempotent=True)
    grows = True
    identity = bytes(HLL_REGISTERS)

    def lift(self, args: tuple[Any, ...], time_us: int) -> bytes:
        """NULL is skipped."""
        if args[0] is None:
            return self.identity
        h = hash64(args[0])
        rest = h & ((1 << (64 - HLL_BITS)) - 1)
        rank = 64 - HLL_BITS - rest.bit_length() + 1
        at = h >> (64 - HLL_BITS)
        return bytes(at) + bytes((rank,)) + bytes(HLL_REGISTERS - at - 1)

    def combine(self, a: bytes, b: bytes) -> bytes:
        """Keep the greater rank of each register."""
        if a == self.identity or b == self.identity:
            return a if b == self.identity else b
        return bytes(map(max, a, b))


def quantile_bucket(value: float) -> tuple[int, int]:
    """Place a value in a bucket (sign class, exponent); buckets sort as their values do.

    A bucket spans a factor of 1.01 / 0.99, so its middle is within 1 % of all it holds
    (Masson, Rim & Lee, "DDSketch", VLDB 2019).

    >>> quantile_bucket(0.0), quantile_bucket(1.0), quantile_bucket(-100.0)
    ((0, 0), (1, 0), (-1, -231))
    """
    if math.isnan(value):
        return (3, 0)
    if math.isinf(value):
        return (2, 0) if value > 0 else (-2, 0)
    if value == 0:
        return (0, 0)
    exponent = math.ceil(math.log(abs(value)) / _LOG_GAMMA)
    return (1, exponent) if value > 0 else (-1, -exponent)


def bucket_value(bucket: tuple[int, int]) -> float:
    """Return the middle of a bucket."""
    sign, exponent = bucket
    if sign in (-1, 1):
        # The middle of the topmost bucket lies beyond the greatest double.
        middle = math.exp(min(sign * exponent * _LOG_GAMMA, 709.78)) * 2 / (_GAMMA + 1)
        return sign * min(middle, sys.float_info.max)
    return {0: 0.0, 2: math.inf, -2: -math.inf, 3: math.nan}[sign]


@register_monoid
class Quantiles(Monoid):
    """Counts per logarithmic bucket, as sorted (bucket, count) pairs."""

    name = "quantiles"
    laws = Laws(commutative=True)
    grows = True
    identity: tuple[tuple[tuple[int, int], int], ...] = ()

    def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
        """NULL is skipped."""
        if args[0] is None:
            return ()
        value = float(args[0]) if isinstance(args[0], Decimal) else args[0]
        return ((quantile_bucket(value), 1),)

    def combine(self, a: Any, b: Any) -> Any:
        """Add the counts of equal buckets."""
        counts = dict(a)
        for bucket, n in b:
            counts[bucket] = counts.get(bucket, 0) + n
        return tuple(sorted(counts.items()))


def quantile_of(buckets: Any, p: float) -> float | None:
    """Return the value at rank `floor(p * (n - 1))`, within 1 % of it; None without values."""
    total = sum(n for _, n in buckets)
    rank = math.floor(p * (total - 1))
    for bucket, n in buckets:
        if rank < n:
            return bucket_value(bucket)
        rank -= n
    return None
