"""Subtract-on-evict: one running aggregate; a partial that leaves is taken out by the inverse.

Exactly 2 combines per slide; n + 1 partials; needs an exact inverse. For a combine that does not
commute the inverse takes the oldest part away from the old end. Over floats every subtraction
leaves its rounding behind for good; `slide_drifting` exists to measure just that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.columns import Columns, Partial, get, length, load, mask, put, store
from weft.kernels.compiled import kernel
from weft.kernels.techniques import slides

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

FRONT, END = 0, 1  # in `at`, absolute positions


class State(NamedTuple):
    ring: Columns  # [key, slot]
    running: Columns  # [key, 1]
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    return State(
        operation.columns(keys, slides.power_of_two(capacity)),
        operation.columns(keys, 1),
        np.zeros((keys, 2), np.int64),
    )


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    put(state.ring, key, state.at[key, END] & mask(state.ring), value)
    put(state.running, key, 0, op.combine(get(state.running, key, 0), value))
    state.at[key, END] += 1


@kernel
def evict(op: Any, state: State, key: int) -> None:
    oldest = get(state.ring, key, state.at[key, FRONT] & mask(state.ring))
    put(state.running, key, 0, op.inverse(get(state.running, key, 0), oldest))
    state.at[key, FRONT] += 1


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    return get(state.running, key, 0)


@kernel
def slide(op: Any, state: State, key: int, values: Columns, n: int, out: Columns) -> None:
    """Store in `out[i]` the combine of the last n values up to `values[i]`."""
    total = length(values)
    for i in range(min(n, total)):
        store(out, i, slide_one(op, state, key, load(values, i), n))
    if total <= n:
        return
    # From here on the value that leaves is in the input, and the ring is written once, at the end.
    running = get(state.running, key, 0)
    for i in range(n, total):
        running = op.combine(op.inverse(running, load(values, i - n)), load(values, i))
        store(out, i, running)
    put(state.running, key, 0, running)
    ring, slots, front = state.ring, mask(state.ring), state.at[key, FRONT]
    for j in range(n):
        put(ring, key, (front + j) & slots, load(values, total - n + j))


@kernel
def slide_drifting(values: npt.NDArray[np.float64], n: int, out: npt.NDArray[np.float64]) -> None:
    """Sum float64 by running subtraction: fast, and wrong after large values; to be measured only.

    The sum is built anew from its window after every n slides, so that an error, an infinity or a
    NaN outlives its window by less than n slides. No technique of the registry leads here.
    """
    total = len(values)
    running = 0.0
    for i in range(min(n, total)):
        running += load(values, i)
        store(out, i, running)
    block = n
    while block + 2 * n <= total:
        # Two blocks at a time: each addition waits for the one before it, so one chain of them
        # leaves half of the machine idle.
        older, newer = _sum(values, block - n, block), _sum(values, block, block + n)
        for i in range(block, block + n):
            middle = load(values, i)
            older += middle - load(values, i - n)
            newer += load(values, i + n) - middle
            store(out, i, older)
            store(out, i + n, newer)
        block += 2 * n
    for start in range(block, total, n):
        running = _sum(values, start - n, start)
        for i in range(start, min(start + n, total)):
            running += load(values, i) - load(values, i - n)
            store(out, i, running)


@kernel
def _sum(values: npt.NDArray[np.float64], start: int, stop: int) -> float:
    """Add in four lanes: one lane would wait for each addition to finish."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = start + (stop - start) // 4 * 4
    for i in range(start, whole, 4):
        first += load(values, i)
        second += load(values, i + 1)
        third += load(values, i + 2)
        fourth += load(values, i + 3)
    for i in range(whole, stop):
        first += load(values, i)
    return (first + second) + (third + fourth)


size, slide_one, slide_keyed = slides.compiled_for(__name__, "size", "slide_one", "slide_keyed")
capacity = slides.capacity
