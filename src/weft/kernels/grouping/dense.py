"""Group numbers by position: key and slice address an accumulator directly.

For a product of keys and slices that is not much larger than the number of events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.compiled import unlocked
from weft.kernels.parallel import over_chunks, read_only, threads_for

Int64s = npt.NDArray[np.int64]
Groups = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


DENSE_ALWAYS = 1 << 16  # accumulators that are cheap to clear and scan, however few the rows
DENSE_PER_ROW = 4  # beyond, as many per row as still beat hashing it


def bounds_of(values: npt.NDArray[np.integer]) -> tuple[int, int]:
    """Return the least and the greatest of the values, of which there must be some, in one pass.

    >>> bounds_of(np.array([3, 1, 2]))
    (1, 3)
    """
    known, threads = read_only(values), threads_for(values.size)
    found = over_chunks(lambda a, b: _least_and_greatest(known[a:b]), values.size, threads)
    return min(least for least, _ in found), max(greatest for _, greatest in found)


@unlocked
def _least_and_greatest(values: npt.NDArray[np.integer]) -> tuple[int, int]:
    least, greatest = values[0], values[0]
    for i in range(values.size):
        least, greatest = min(least, values[i]), max(greatest, values[i])
    return int(least), int(greatest)


class Box(NamedTuple):
    """The keys and slices of a batch, all pairs of which have a number: slices of a key in a row.

    >>> Box.around((3, 4), (8, 17))
    Box(first_key=3, first_slice=8, keys=2, slices=10)
    """

    first_key: int
    first_slice: int
    keys: int
    slices: int

    @classmethod
    def around(cls, keys: tuple[int, int], ordinals: tuple[int, int]) -> Box:
        """Enclose everything between the least and the greatest key, and likewise slice."""
        return cls(keys[0], ordinals[0], keys[1] - keys[0] + 1, ordinals[1] - ordinals[0] + 1)

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.keys * self.slices

    def affordable(self, rows: int) -> bool:
        """Tell whether an accumulator for every pair costs less than hashing these rows."""
        return self.size <= max(DENSE_ALWAYS, DENSE_PER_ROW * rows)


def groups_of_ordinals(
    keys: npt.NDArray[np.integer], ordinals: Int64s, box: Box, threads: int = 1
) -> tuple[Groups, Bools]:
    """Number the (key, slice) of each row; tell which of the numbers occur.

    >>> box = Box.around((3, 4), (8, 9))
    >>> groups, used = groups_of_ordinals(np.array([3, 4, 4]), np.array([9, 9, 8]), box)
    >>> groups.tolist(), used.tolist()
    ([1, 3, 2], [False, True, True, True])
    """
    groups, used = np.empty(keys.size, np.int32), np.zeros(box.size, np.bool_)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _number(box, keys[rows], ordinals[rows], groups[rows], used)

    over_chunks(work, keys.size, threads)
    return groups, used


@unlocked
def _number(
    box: Box, keys: npt.NDArray[np.integer], ordinals: Int64s, groups: Groups, used: Bools
) -> None:
    for i in range(keys.size):
        group = np.uint64((keys[i] - box.first_key) * box.slices + (ordinals[i] - box.first_slice))
        groups[i] = group
        if not used[group]:  # a write takes the flags from the other threads' caches
            used[group] = True


def groups_of_times(
    keys: npt.NDArray[np.integer],
    times: Int64s,
    box: Box,
    origin_us: int,
    width_us: int,
    threads: int = 1,
) -> tuple[Groups, Bools]:
    """Number the (key, slice) of each event for slices of one width, the first from `origin_us`.

    >>> box = Box.around((0, 1), (1, 2))
    >>> groups, used = groups_of_times(np.array([0, 1]), np.array([12, 5]), box, 5, 5)
    >>> groups.tolist(), used.tolist()
    ([1, 2], [False, True, True, False])
    """
    groups, used = np.empty(keys.size, np.int32), np.zeros(box.size, np.bool_)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _number_even(box, keys[rows], times[rows], origin_us, width_us, groups[rows], used)

    over_chunks(work, keys.size, threads)
    return groups, used


@unlocked
def _number_even(
    box: Box,
    keys: npt.NDArray[np.integer],
    times: Int64s,
    origin: int,
    width: int,
    groups: Groups,
    used: Bools,
) -> None:
    # Most events lie in the slice of the one before. For the others a product with the reciprocal
    # is several times faster than a division; it may miss by one, and the rest says so. Numbers
    # without a sign spare every access the question whether it counts from the end.
    reciprocal = 1.0 / width
    number, start = np.int64(0), np.int64(origin)
    for i in range(keys.size):
        if np.uint64(times[i] - start) >= np.uint64(width):  # before the slice, or after it
            since = times[i] - origin
            number = np.int64(since * reciprocal)
            rest = since - number * width
            if rest < 0:
                number -= 1
            elif rest >= width:
                number += 1
            start = origin + number * width
        group = np.uint64((keys[i] - box.first_key) * box.slices + number)
        groups[i] = group
        if not used[group]:  # a write takes the flags from the other threads' caches
            used[group] = True
