"""Rings of a power of two slots, addressed by absolute positions."""

from __future__ import annotations

from typing import Any

from weft.kernels.columns import mask
from weft.kernels.compiled import kernel

FRONT = 0  # in `at`: the position of the oldest partial of a key


def power_of_two(capacity: int) -> int:
    """Round up to a power of two, so that a slot is `position & (slots - 1)`.

    >>> [power_of_two(n) for n in (1, 2, 3, 1000)]
    [1, 2, 4, 1024]
    """
    return 1 << max(capacity - 1, 0).bit_length()


def capacity(state: Any) -> int:
    """Count the partials that fit for each key; the ring comes first in a state."""
    return mask(state[0]) + 1


@kernel
def evict(op: Any, state: Any, key: int) -> None:
    """Remove the oldest partial, where no aggregate has to forget it."""
    state.at[key, FRONT] += 1


@kernel
def bulk_evict(op: Any, state: Any, key: int, count: int) -> None:
    """Remove the oldest `count` partials."""
    state.at[key, FRONT] += count
