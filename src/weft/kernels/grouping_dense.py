"""Group numbers by position: key and slice address an accumulator directly.

For a product of keys and slices that is not much larger than the number of events.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.parallel import over_chunks, unlocked

Int64s = npt.NDArray[np.int64]
Groups = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@unlocked
def extent(values: npt.NDArray[np.integer]) -> tuple[int, int]:
    """Return the least and the greatest of the values, of which there must be some, in one pass.

    >>> extent(np.array([3, 1, 2]))
    (1, 3)
    """
    least, greatest = np.int64(values[0]), np.int64(values[0])
    for i in range(values.size):
        least, greatest = min(least, np.int64(values[i])), max(greatest, np.int64(values[i]))
    return least, greatest


def groups_of_ordinals(
    keys: npt.NDArray[np.integer],
    ordinals: Int64s,
    first_key: int,
    first_slice: int,
    shape: tuple[int, int],
    threads: int = 1,
) -> tuple[Groups, Bools]:
    """Number the (key, slice) of each row; tell which of the keys x slices numbers occur.

    >>> groups, used = groups_of_ordinals(np.array([3, 4, 4]), np.array([9, 9, 8]), 3, 8, (2, 2))
    >>> groups.tolist(), used.tolist()
    ([1, 3, 2], [False, True, True, True])
    """
    groups, used = np.empty(keys.size, np.int32), np.zeros(shape[0] * shape[1], np.bool_)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _number(keys[rows], ordinals[rows], first_key, first_slice, shape[1], groups[rows], used)

    over_chunks(work, keys.size, threads)
    return groups, used


@unlocked
def _number(
    keys: npt.NDArray[np.integer],
    ordinals: Int64s,
    first_key: int,
    first_slice: int,
    slices: int,
    groups: Groups,
    used: Bools,
) -> None:
    for i in range(keys.size):
        group = (keys[i] - first_key) * slices + (ordinals[i] - first_slice)
        groups[i] = group
        used[group] = True


def groups_of_times(
    keys: npt.NDArray[np.integer],
    times: Int64s,
    first_key: int,
    first_start_us: int,
    width_us: int,
    shape: tuple[int, int],
    threads: int = 1,
) -> tuple[Groups, Bools]:
    """Number the (key, slice) of each event for slices of one width, in a single pass.

    >>> groups, used = groups_of_times(np.array([0, 1]), np.array([12, 5]), 0, 5, 5, (2, 2))
    >>> groups.tolist(), used.tolist()
    ([1, 2], [False, True, True, False])
    """
    groups, used = np.empty(keys.size, np.int32), np.zeros(shape[0] * shape[1], np.bool_)

    def work(start: int, stop: int) -> None:
        rows = slice(start, stop)
        _number_even(
            keys[rows],
            times[rows],
            first_key,
            first_start_us,
            width_us,
            shape[1],
            groups[rows],
            used,
        )

    over_chunks(work, keys.size, threads)
    return groups, used


@unlocked
def _number_even(
    keys: npt.NDArray[np.integer],
    times: Int64s,
    first_key: int,
    origin: int,
    width: int,
    slices: int,
    groups: Groups,
    used: Bools,
) -> None:
    # Most events lie in the slice of the one before. For the others a product with the reciprocal
    # is several times faster than a division; it may miss by one, and the rest says so.
    reciprocal = 1.0 / width
    number, start = np.int64(0), np.int64(origin)
    for i in range(keys.size):
        since = times[i] - start
        if since < 0 or since >= width:
            since = times[i] - origin
            number = np.int64(since * reciprocal)
            rest = since - number * width
            if rest < 0:
                number -= 1
            elif rest >= width:
                number += 1
            start = origin + number * width
        group = (keys[i] - first_key) * slices + number
        groups[i] = group
        used[group] = True
