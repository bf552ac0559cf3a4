"""Kernels that run beside each other: compiled without the interpreter lock, over chunks of rows.

Ordinary threads on ordinary kernels, begun anew after a fork, rather than numba's own parallel
loops: those bring threads that do not survive the fork of a Spark worker, and a second compilation
of every kernel.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Given = TypeVar("Given")
Scalar = TypeVar("Scalar", bound="np.generic")

THREADS = min(os.cpu_count() or 1, 4)
ROWS_PER_THREAD = 1 << 17  # fewer are done before a thread has begun with them


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


@lru_cache(maxsize=1)
def _helpers() -> ThreadPoolExecutor:
    """Return the threads beside the one that asks, which are started once."""
    return ThreadPoolExecutor(max(THREADS - 1, 1), thread_name_prefix="weft")


if hasattr(os, "register_at_fork"):  # threads do not survive the fork of a Spark worker
    os.register_at_fork(after_in_child=_helpers.cache_clear)


def _spread(work: Callable[[Given], Result], parts: Sequence[Given]) -> list[Result]:
    """Run `work` on each part, here and on the threads beside; whoever is free takes the next.

    If those are busy with other work, as they are if it is from there that somebody asks, all is
    done here.
    """
    if len(parts) < 2:
        return list(map(work, parts))
    found: dict[int, Result] = {}
    left = iter(range(len(parts)))  # to take the next one of a range is one step

    def take() -> None:
        for at in left:
            found[at] = work(parts[at])

    helpers = [_helpers().submit(take) for _ in range(min(THREADS, len(parts)) - 1)]
    try:
        take()
    finally:
        wait([helper for helper in helpers if not helper.cancel()])
    for helper in helpers:
        if not helper.cancelled():
            helper.result()
    return [found[at] for at in range(len(parts))]


def over_chunks(work: Callable[[int, int], Result], rows: int, threads: int) -> list[Result]:
    """Run `work(start, stop)` on equal chunks of the rows, one thread each; results in order.

    >>> over_chunks(lambda start, stop: (start, stop), 10, 2)
    [(0, 5), (5, 10)]
    >>> over_chunks(lambda start, stop: (start, stop), 0, 2)
    [(0, 0)]
    """
    threads = max(1, min(threads, rows))
    cuts = [rows * i // threads for i in range(threads + 1)]
    return _spread(lambda chunk: work(*chunk), list(pairwise(cuts)))


def over_parts(work: Callable[[Given], Result], parts: Iterable[Given], rows: int) -> list[Result]:
    """Run `work` on each part, on several threads where the parts have many rows; in order.

    >>> over_parts(len, ["a", "bcd"], rows=4)
    [1, 3]
    """
    if THREADS == 1 or rows < ROWS_PER_THREAD:
        return list(map(work, parts))
    return _spread(work, list(parts))
