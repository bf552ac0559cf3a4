"""Rings of a power of two slots, addressed by absolute positions."""

from __future__ import annotations


def power_of_two(capacity: int) -> int:
    """Round up to a power of two, so that a slot is `position & (slots - 1)`.

    >>> [power_of_two(n) for n in (1, 2, 3, 1000)]
    [1, 2, 4, 1024]
    """
    return 1 << max(capacity - 1, 0).bit_length()
