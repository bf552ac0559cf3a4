"""The numbers of buckets, chosen so that Spark deals the buckets of a scope out evenly.

Spark brings a number to the partition that its hash says, and a handful of buckets may all fall to
one, while the other cores wait for it. So a bucket has the first of many numbers that stand for it
whose hash says the partition whose turn it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from weft.errors import UnsupportedError

if TYPE_CHECKING:
    import numpy.typing as npt

BUCKET = "bucket"  # the column that has it
# Numbers that stand for one bucket are this far apart, or so far that as many scopes have a place.
_LEAST_STEP, _MOST_SCOPES = 1 << 20, 1 << 12
_NUMBERS = 1 << 31
_SEED = 42  # of the hash by which Spark partitions rows


@dataclass(frozen=True, slots=True)
class Buckets:
    """How many buckets a scope has, and over how many partitions they are dealt out.

    Streams that were started before they were dealt out have 0 for it, and keep their numbers.

    >>> dealt = Buckets(4, 2)
    >>> numbers = [dealt.number(1, bucket) for bucket in range(4)]
    >>> [int(_partitions(np.array([n]), 2)[0]) for n in numbers]
    [1, 0, 1, 0]
    >>> {dealt.scope_of(number) for number in numbers}, Buckets(4).number(1, 2)
    ({1}, 6)
    """

    each: int
    partitions: int = 0

    def number(self, scope: int, bucket: int) -> int:
        """Return the number of a bucket."""
        plain = scope * self.each + bucket
        if not self.partitions:
            return plain
        if plain >= self._step:
            raise UnsupportedError(
                f"{scope + 1} sets of keys in one stream",
                hint=f"start several streams, of at most {_MOST_SCOPES} each",
            )
        return _dealt(plain, self._step, (scope + bucket) % self.partitions, self.partitions)

    def scope_of(self, number: int) -> int:
        """Return the scope that a bucket is of."""
        return (number % self._step if self.partitions else number) // self.each

    @property
    def _step(self) -> int:
        return max(_LEAST_STEP, self.each * _MOST_SCOPES)


@cache
def _dealt(plain: int, step: int, turn: int, partitions: int) -> int:
    """Return the first number that comes to the partition whose turn it is, if one does."""
    numbers = np.arange(plain, _NUMBERS, step)
    fitting = np.flatnonzero(_partitions(numbers, partitions) == turn)
    return int(numbers[fitting[0]]) if fitting.size else plain


def _partitions(numbers: npt.NDArray[np.int64], partitions: int) -> npt.NDArray[np.int64]:
    """Return where Spark brings rows by an integer: Murmur3 of 32 bits, over the partitions.

    >>> _partitions(np.array([0, 1, 2]), 2**31).tolist()  # hash(0), hash(1), hash(2), less signs
    [933211791, 1587902691, 1765031574]
    """
    with np.errstate(over="ignore"):
        mixed = _rotated(numbers.astype(np.uint32) * np.uint32(0xCC9E2D51), 15)
        hashed = np.uint32(_SEED) ^ (mixed * np.uint32(0x1B873593))
        hashed = _rotated(hashed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        hashed ^= np.uint32(4)  # bytes
        hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        hashed ^= hashed >> np.uint32(16)
    return hashed.view(np.int32).astype(np.int64) % partitions


def _rotated(words: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))
