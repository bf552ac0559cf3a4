"""Rows in the order of key and time, and the positions where windows at anchors begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.kernels.compiled import unlocked
from weft.kernels.parallel import read_only

if TYPE_CHECKING:
    from weft.kernels.partials import Int64s

Codes = npt.NDArray[np.integer]
LEAST, GREATEST = -(2**63), 2**63 - 1


def order_of(keys: Codes, times_us: Int64s) -> Int64s | None:
    """Return the rows by (key, time, place); None where they are in this order already.

    Keys are numbered from 0: rows are counted to their keys, and only keys whose rows are not in
    the order of time are sorted.

    >>> order_of(np.array([1, 0, 1, 0]), np.array([5, 9, 4, 9])).tolist()
    [1, 3, 2, 0]
    >>> order_of(np.array([0, 0, 1]), np.array([1, 2, 0])) is None
    True
    """
    keys, times_us = read_only(keys), read_only(times_us)
    if _is_ordered(keys, times_us):
        return None
    order = np.empty(keys.size, np.int64)
    if keys.size:
        stops = np.zeros(int(keys.max()) + 1, np.int64)
        _place(keys, times_us, stops, order)
    return order


@unlocked
def _is_ordered(keys: Codes, times_us: Int64s) -> bool:
    for i in range(1, keys.size):
        if keys[i] < keys[i - 1] or (keys[i] == keys[i - 1] and times_us[i] < times_us[i - 1]):
            return False
    return True


@unlocked
def _place(keys: Codes, times_us: Int64s, stops: Int64s, order: Int64s) -> None:
    for i in range(keys.size):
        stops[keys[i]] += 1
    total = 0
    for key in range(stops.size):
        total, stops[key] = total + stops[key], total
    for i in range(keys.size):
        order[stops[keys[i]]] = i
        stops[keys[i]] += 1
    start = 0
    for key in range(stops.size):
        stop = stops[key]
        for i in range(start + 1, stop):
            if times_us[order[i]] < times_us[order[i - 1]]:
                own = order[start:stop].copy()
                order[start:stop] = own[np.argsort(times_us[own], kind="mergesort")]
                break
        start = stop


def positions(keys: Codes, times_us: Int64s, anchors: Codes, instants_us: Int64s) -> Int64s:
    """Find, for each anchor, the first row of its key that is not before its instant.

    Rows and anchors are both in the order of (key, instant): two pointers.

    >>> keys, times = np.array([0, 0, 2]), np.array([1, 5, 0])
    >>> positions(keys, times, np.array([0, 1, 2]), np.array([5, 0, 1]))
    array([1, 2, 3])
    """
    out = np.empty(anchors.size, np.int64)
    _positions(
        read_only(keys), read_only(times_us), read_only(anchors), read_only(instants_us), out
    )
    return out


@unlocked
def _positions(
    keys: Codes, times_us: Int64s, anchors: Codes, instants_us: Int64s, out: Int64s
) -> None:
    at = 0
    for i in range(anchors.size):
        key, instant = anchors[i], instants_us[i]
        while at < keys.size and (keys[at] < key or (keys[at] == key and times_us[at] < instant)):
            at += 1
        out[i] = at


def shifted(times_us: Int64s, by_us: int, round_us: int | None = None) -> Int64s:
    """Move instants, and round them down; those that leave 64 bits stay at the end of time.

    >>> shifted(np.array([7, -2**63]), -3, 4).tolist()
    [4, -9223372036854775808]
    """
    with np.errstate(over="ignore"):
        moved: Int64s = times_us + by_us
    if by_us < 0:
        moved[moved > times_us] = LEAST
    else:
        moved[moved < times_us] = GREATEST
    if round_us is not None:
        rest = moved % round_us
        moved = np.where(moved < LEAST + rest, LEAST, moved - rest)
    return moved


def spans(
    keys: Codes, times_us: Int64s, wanted: Codes, first_us: Int64s, rows: int
) -> tuple[Int64s, Int64s]:
    """Find the rows of each wanted key from an instant on, and up to `rows` of those before it.

    Rows are in the order of (key, time); each key is found by bisection.

    >>> keys, times = np.array([0, 0, 0, 2]), np.array([1, 5, 9, 3])
    >>> spans(keys, times, np.array([0, 1]), np.array([6, 0]), 1)
    (array([1, 3]), array([3, 3]))
    """
    starts, stops = np.empty(wanted.size, np.int64), np.empty(wanted.size, np.int64)
    arrays = read_only(keys), read_only(times_us), read_only(wanted), read_only(first_us)
    _spans(*arrays, rows, starts, stops)
    return starts, stops


@unlocked
def _bisect(keys: Codes, times_us: Int64s, key: int, instant_us: int) -> int:
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key or (keys[middle] == key and times_us[middle] < instant_us):
            low = middle + 1
        else:
            high = middle
    return low


@unlocked
def _spans(
    keys: Codes,
    times_us: Int64s,
    wanted: Codes,
    first_us: Int64s,
    rows: int,
    starts: Int64s,
    stops: Int64s,
) -> None:
    for i in range(wanted.size):
        begin = _bisect(keys, times_us, wanted[i], LEAST)
        first = _bisect(keys, times_us, wanted[i], first_us[i])
        starts[i] = max(begin, first - rows)
        stops[i] = _bisect(keys, times_us, wanted[i] + 1, LEAST)
