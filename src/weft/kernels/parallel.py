"""Kernels that run beside each other: compiled without the interpreter lock, over chunks of rows.

Ordinary threads on ordinary kernels, rather than numba's own parallel loops: those bring a thread
pool that does not survive the fork of a Spark worker, and a second compilation of every kernel.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    import numpy.typing as npt

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Given = TypeVar("Given")
Scalar = TypeVar("Scalar", bound="np.generic")

THREADS = min(os.cpu_count() or 1, 4)
ROWS_PER_THREAD = 1 << 17  # fewer are done before a thread has started


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """View an array that kernels read, so that they are compiled once and not twice.

    To numba an array that can be written is of another type. Columns of Arrow cannot, and the
    same columns after a filter can.

    >>> import numpy as np
    >>> read_only(np.array([1])).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def threads_for(rows: int) -> int:
    """Return how many threads so many rows are worth.

    >>> threads_for(1000)
    1
    """
    return max(1, min(THREADS, rows // ROWS_PER_THREAD))


def over_chunks(work: Callable[[int, int], Result], rows: int, threads: int) -> list[Result]:
    """Run `work(start, stop)` on equal chunks of the rows, one thread each; results in order.

    >>> over_chunks(lambda start, stop: (start, stop), 10, 2)
    [(0, 5), (5, 10)]
    >>> over_chunks(lambda start, stop: (start, stop), 0, 2)
    [(0, 0)]
    """
    threads = max(1, min(threads, rows))
    cuts = [rows * i // threads for i in range(threads + 1)]
    if threads == 1:
        return [work(0, rows)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))


def over_parts(work: Callable[[Given], Result], parts: Iterable[Given], rows: int) -> list[Result]:
    """Run `work` on each part, on several threads where the parts have many rows; in order.

    >>> over_parts(len, ["a", "bcd"], rows=4)
    [1, 3]
    """
    if THREADS == 1 or rows < ROWS_PER_THREAD:
        return list(map(work, parts))
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, parts))
