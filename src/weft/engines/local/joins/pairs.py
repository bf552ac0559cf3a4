"""Rows that agree: codes of several columns packed into one, and the pairs of equal codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.kernels.partials import Int64s

Codes = npt.NDArray[Any]
_MOST_NUMBERS = 2**63


class TooManyRows(Exception):
    """Signals that fewer instants should be evaluated at once."""


def packed(sizes: Sequence[int], *tables: Sequence[Codes]) -> list[Int64s]:
    """Number the rows of tables of codes, each column's below its size; equal rows get one number.

    >>> [n.tolist() for n in packed([2, 3], [np.array([0, 1]), np.array([2, 0])], [[1], [2]])]
    [[2, 3], [5]]
    """
    rows = [len(table[0]) for table in tables]
    numbers, room = np.zeros(sum(rows), np.int64), 1
    for column, size in zip(zip(*tables, strict=True), sizes, strict=True):
        if room * max(size, 1) > _MOST_NUMBERS:
            # There are never more numbers than rows, once those that nobody has are left out.
            numbers = np.unique(numbers, return_inverse=True)[1]
            room = numbers.size
        numbers = numbers * max(size, 1) + np.concatenate(column)
        room *= max(size, 1)
    return np.split(numbers, np.cumsum(rows)[:-1])


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
