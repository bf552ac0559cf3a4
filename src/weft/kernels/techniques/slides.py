"""What techniques do alike: rings of a power of two slots, and loops compiled into each of them.

`technique` stands here for the module that a function is compiled for: one with `insert`, `evict`
and `query`, and with `query_range` or `query_last` where it answers shorter ranges too.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import TYPE_CHECKING, Any

from weft.kernels.columns import Columns, Partial, length, load, mask, store
from weft.kernels.compiled import kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    import numpy.typing as npt

    Int64s = npt.NDArray[np.int64]

technique: Any = None
FRONT = 0  # in `at`, of every technique with a ring: the absolute position of the oldest partial


def compiled_for(module: str, *shared: str) -> Iterator[Callable[..., Any]]:
    """Compile functions of this file for the technique in that module, each to its own kernel.

    A copy with other globals, not a closure: numba keeps no closure over kernels on disk.
    """
    for name in shared:
        function = globals()[name]
        copy = FunctionType(function.__code__, {**globals(), "technique": sys.modules[module]})
        copy.__qualname__ = f"{module.rpartition('.')[2]}_{name}"
        copy.__doc__ = function.__doc__
        yield kernel(copy)


def size(state: Any, key: int) -> int:
    """Count the partials in the window of `key`."""
    return int(state.at[key, technique.END] - state.at[key, technique.FRONT])


def query(op: Any, state: Any, key: int) -> Partial:
    """Combine the whole window, oldest first."""
    return technique.query_range(op, state, key, 0, technique.size(state, key))


def query_last(op: Any, state: Any, key: int, count: int) -> Partial:
    """Combine the newest `count` partials, or all when there are fewer."""
    held = technique.size(state, key)
    return technique.query_range(op, state, key, max(held - count, 0), held)


def slide_one(op: Any, state: Any, key: int, value: Partial, n: int) -> Partial:
    """Insert one value, evict first if n are held, and answer."""
    if technique.size(state, key) >= n:
        technique.evict(op, state, key)
    technique.insert(op, state, key, value)
    return technique.query(op, state, key)


def slide(op: Any, state: Any, key: int, values: Columns, n: int, out: Columns) -> None:
    """Store in `out[i]` the combine of the last n values up to `values[i]`."""
    for i in range(length(values)):
        store(out, i, technique.slide_one(op, state, key, load(values, i), n))


def slide_keyed(op: Any, state: Any, keys: Int64s, values: Columns, n: int, out: Columns) -> None:
    """Slide the window of `keys[i]` by `values[i]`."""
    for i in range(len(keys)):
        store(out, i, technique.slide_one(op, state, keys[i], load(values, i), n))


def slide_ranges(
    op: Any, state: Any, key: int, values: Columns, counts: Int64s, out: Columns
) -> None:
    """Answer several ranges after each value; `counts` descend, so the first is the longest."""
    place = 0
    for i in range(length(values)):
        if technique.size(state, key) >= counts[0]:
            technique.evict(op, state, key)
        technique.insert(op, state, key, load(values, i))
        for count in counts:
            store(out, place, technique.query_last(op, state, key, count))
            place += 1


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
