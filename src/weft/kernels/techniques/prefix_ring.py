"""Prefix ring: keep the combine of the whole stream so far, at each place a range may begin.

One combine per partial and one inverse per answer, for any number of ranges; n + 1 partials; needs
an exact inverse, so integers and not floats: a prefix that once held 1e16 forgets every 0.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.columns import Columns, Partial, get, mask, put
from weft.kernels.compiled import kernel
from weft.kernels.techniques import slides

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

FRONT, END = 0, 1  # in `at`, absolute positions; prefix p covers the values 0 .. p-1


class State(NamedTuple):
    prefixes: Columns  # [key, slot]
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    slots = slides.power_of_two(capacity + 1)
    return State(operation.prefix_columns(keys, slots), np.zeros((keys, 2), np.int64))


def capacity(state: State) -> int:
    return mask(state.prefixes)


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    prefixes, slots, end = state.prefixes, mask(state.prefixes), state.at[key, END]
    put(prefixes, key, (end + 1) & slots, op.extend(get(prefixes, key, end & slots), value))
    state.at[key, END] = end + 1


@kernel
def query_range(op: Any, state: State, key: int, first: int, stop: int) -> Partial:
    prefixes, slots, front = state.prefixes, mask(state.prefixes), state.at[key, FRONT]
    newer = get(prefixes, key, (front + stop) & slots)
    return op.between(newer, get(prefixes, key, (front + first) & slots))


size, query, query_last, slide_one, slide, slide_ranges = slides.compiled_for(
    __name__, "size", "query", "query_last", "slide_one", "slide", "slide_ranges"
)
evict, bulk_evict = slides.evict, slides.bulk_evict
