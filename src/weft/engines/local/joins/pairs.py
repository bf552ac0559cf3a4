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
_DENSE = 4  # places of a table that a row may take


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
    first, counts = _found(left, right, order)
    total = int(counts.sum())
    if total > most:
        raise TooManyRows
    return np.repeat(np.arange(left.size), counts), order[expanded(first, counts)]


def _found(left: Int64s, right: Int64s, order: Int64s) -> tuple[Int64s, Int64s]:
    """Find each number of the left among the ordered ones of the right: the first, how many."""
    least, greatest = int(right.min(initial=0)), int(right.max(initial=0))
    if greatest - least > _DENSE * (left.size + right.size):
        ordered = right[order]
        first = np.searchsorted(ordered, left, "left")
        return first, np.searchsorted(ordered, left, "right") - first
    # Numbers close together are places of a table: no search that jumps through memory.
    often = np.bincount(right - least, minlength=greatest - least + 1)
    inside = (left >= least) & (left <= greatest)
    places = np.where(inside, left - least, 0)
    return (np.cumsum(often) - often)[places], np.where(inside, often[places], 0)


def expanded(firsts: Int64s, counts: Int64s) -> Int64s:
    """List the positions of ranges one after the other.

    >>> expanded(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    return np.repeat(firsts - (ends - counts), counts) + np.arange(total)
