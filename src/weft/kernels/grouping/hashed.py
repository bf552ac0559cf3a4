"""Group numbers by hashing: open addressing on the pair (key, slice), in order of appearance.

For keys and slices whose product is far larger than the number of events.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.compiled import unlocked

Int64s = npt.NDArray[np.int64]
Groups = npt.NDArray[np.int32]

_FIRST_SLOTS = 1 << 10
_TAG_AT, _GROUP = 32, 2**32 - 1  # in an entry of the table


def groups_of_pairs(
    keys: npt.NDArray[np.integer], ordinals: Int64s
) -> tuple[Groups, Int64s, Int64s]:
    """Number the (key, slice) of each row; return the key and the slice of each number too.

    >>> groups, keys, slices = groups_of_pairs(np.array([7, 5, 7]), np.array([10**12, 3, 10**12]))
    >>> groups.tolist(), keys.tolist(), slices.tolist()
    ([0, 1, 0], [7, 5], [1000000000000, 3])
    """
    groups = np.empty(keys.size, np.int32)
    group_keys, group_ordinals = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
    found = _number(keys, ordinals, groups, group_keys, group_ordinals)
    return groups, group_keys[:found], group_ordinals[:found]


@unlocked
def _tag(key: np.int64, ordinal: np.int64) -> np.int64:
    # Factors of 31 bits keep the products inside 64, with or without compilation.
    mixed = (key ^ (key >> 31)) & 0x7FFFFFFF
    other = (ordinal ^ (ordinal >> 31)) & 0x7FFFFFFF
    product = mixed * 0x2C1B3C6D + other * 0x297A2D39
    return (product ^ (product >> 27)) & 0x7FFFFFFF


@unlocked
def _number(
    keys: npt.NDArray[np.integer],
    ordinals: Int64s,
    groups: Groups,
    group_keys: Int64s,
    group_ordinals: Int64s,
) -> int:
    # An entry is the tag of a pair above the number of its group. The tag tells most other pairs
    # apart, and a larger table is filled from tags alone, without a look at the pairs.
    table = np.full(_FIRST_SLOTS, -1, np.int64)
    mask, found, last = _FIRST_SLOTS - 1, 0, np.int64(0)
    for i in range(keys.size):
        key, ordinal = np.int64(keys[i]), ordinals[i]
        if found == 0 or group_keys[last] != key or group_ordinals[last] != ordinal:
            tag = _tag(key, ordinal)
            slot = tag & mask
            while table[slot] >= 0:
                last = table[slot] & _GROUP
                if (
                    table[slot] >> _TAG_AT == tag
                    and group_keys[last] == key
                    and group_ordinals[last] == ordinal
                ):
                    break
                slot = (slot + 1) & mask
            else:
                last = np.int64(found)
                table[slot] = (tag << _TAG_AT) | last
                group_keys[found], group_ordinals[found] = key, ordinal
                found += 1
                if 2 * found > mask:
                    mask = 2 * mask + 1
                    table = _spread(table, mask)
        groups[i] = last
    return found


@unlocked
def _spread(table: Int64s, mask: int) -> Int64s:
    """Enter what a table holds into one of twice the size."""
    larger = np.full(mask + 1, -1, np.int64)
    for entry in table:
        if entry >= 0:
            slot = (entry >> _TAG_AT) & mask
            while larger[slot] >= 0:
                slot = (slot + 1) & mask
            larger[slot] = entry
    return larger
