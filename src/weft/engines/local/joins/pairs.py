"""Rows that agree: codes of several columns packed into one, and the pairs of equal codes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.kernels.partials import Int64s

Codes = npt.NDArray[Any]


class TooManyRows(Exception):
    """Signals that fewer instants should be evaluated at once."""


def packed(columns: Sequence[Codes], sizes: Sequence[int], rows: int) -> Int64s:
    """Number the combinations of codes, each below its size; equal rows get equal numbers.

    >>> packed([np.array([0, 1, 1]), np.array([2, 0, 2])], [2, 3], 3).tolist()
    [2, 3, 5]
    """
    if prod(max(size, 1) for size in sizes) >= 2**63:
        raise OverflowError("too many combinations of codes to number")
    numbers = np.zeros(rows, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        numbers = numbers * max(size, 1) + column
    return numbers


def pairs_of_equals(left: Int64s, right: Int64s, most: int) -> tuple[Int64s, Int64s]:
    """Return the positions of all pairs of equal numbers, those of the left side in order.

    >>> [p.tolist() for p in pairs_of_equals(np.array([7, 8]), np.array([8, 7, 7]), 10)]
    [[0, 0, 1], [1, 2, 0]]
    """
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    first = np.searchsorted(ordered, left, "left")
    counts = np.searchsorted(ordered, left, "right") - first
    total = int(counts.sum())
    if total > most:
        raise TooManyRows
    return np.repeat(np.arange(left.size), counts), order[expanded(first, counts)]


def expanded(firsts: Int64s, counts: Int64s) -> Int64s:
    """List the positions of ranges one after the other.

    >>> expanded(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    return np.repeat(firsts - (ends - counts), counts) + np.arange(total)
