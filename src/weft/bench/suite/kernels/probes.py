"""Compiled loops that look at every slide of a technique: how long it took, how much it combined.

A clock that is read from Python takes longer than a slide; these loops read the system's clock
from compiled code, in about 25 ns.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numba import njit

from weft.kernels.columns import store
from weft.kernels.operations import counting
from weft.kernels.registry import IMPLEMENTATIONS, technique

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft.kernels.operations import Operation

    Int64s = npt.NDArray[np.int64]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_CLOCK = time.CLOCK_MONOTONIC
_clock_gettime = ctypes.CDLL(None).clock_gettime
_clock_gettime.argtypes = [ctypes.c_int, ctypes.c_void_p]
_clock_gettime.restype = ctypes.c_int


def _compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    compiled: Callable[Parameters, Result] = njit()(function)
    return compiled


@_compiled
def _nanoseconds(reading: Int64s) -> int:
    """Read the clock; `reading` is a buffer for its two words."""
    _clock_gettime(_CLOCK, reading.ctypes)
    return int(reading[0] * 1_000_000_000 + reading[1])


@cache
def _timed_loop(name: str) -> Callable[..., None]:
    slide = IMPLEMENTATIONS[name].slide

    @_compiled
    def loop(op: Any, state: Any, values: Any, n: int, stretch: int, out: Any, took: Any) -> None:
        reading = np.zeros(2, np.int64)
        for s in range(len(took)):
            first, stop = s * stretch, (s + 1) * stretch
            start = _nanoseconds(reading)
            slide(op, state, 0, values[first:stop], n, out[first:stop])
            took[s] = _nanoseconds(reading) - start

    return loop


@cache
def _timed_answers(name: str) -> Callable[..., None]:
    slide_one = IMPLEMENTATIONS[name].slide_one

    @_compiled
    def loop(op: Any, state: Any, values: Any, n: int, stretch: int, out: Any, took: Any) -> None:
        reading = np.zeros(2, np.int64)
        for i in range(len(values)):
            start = _nanoseconds(reading)
            store(out, i, slide_one(op, state, 0, values[i], n))
            took[i] = _nanoseconds(reading) - start

    return loop


@cache
def _counted_loop(name: str) -> Callable[..., None]:
    slide_one = IMPLEMENTATIONS[name].slide_one

    @_compiled
    def loop(op: Any, state: Any, values: Any, n: int, out: Any, calls: Any, made: Any) -> None:
        for i in range(len(values)):
            before = calls[0]
            store(out, i, slide_one(op, state, 0, values[i], n))
            made[i] = calls[0] - before

    return loop


class Timed(NamedTuple):
    """Nanoseconds of every stretch of slides, and the answers of all slides."""

    stretch_ns: Int64s
    answers: npt.NDArray[Any]


def time_stretches(
    name: str,
    operation: Operation,
    values: npt.NDArray[Any],
    n: int,
    *,
    stretch: int,
    passes: int,
) -> Timed:
    """Time each stretch of slides of a full window; the least of several passes over the stream.

    The same stretch does the same work in every pass. What is longer in one pass only is the
    machine and not the technique.
    """
    kernel = technique(name, operation)
    loop = _timed_answers(name) if stretch == 1 else _timed_loop(name)
    out, took = np.empty_like(values), np.empty(len(values) // stretch, np.int64)
    least = np.full(len(took), np.iinfo(np.int64).max)
    for number in range(passes + 1):
        loop(operation.algebra, kernel.new(n), values, n, stretch, out, took)
        if number:  # the first pass compiles and warms up
            np.minimum(least, took, out=least)
    filling = -(-2 * n // stretch)
    return Timed(least[filling:], out[: len(took) * stretch])


class Counted(NamedTuple):
    """Combines of every slide, the answers, and the words of memory the window takes."""

    combines: Int64s
    answers: npt.NDArray[Any]
    words: int


def count_combines(name: str, operation: Operation, values: npt.NDArray[Any], n: int) -> Counted:
    """Count the combines of each slide over a stream."""
    counted, calls = counting(operation)
    kernel = technique(name, counted)
    state = kernel.new(n)
    out, made = np.empty_like(values), np.empty(len(values), np.int64)
    algebra = counted.prefix_algebra if name == "prefix_ring" else counted.algebra
    _counted_loop(name)(algebra, state, values, n, out, calls, made)
    return Counted(made, out, words_of(state))


def count_all_ranges(
    name: str, operation: Operation, values: npt.NDArray[Any], n: int
) -> tuple[float, npt.NDArray[Any]]:
    """Count the combines per slide when every range from 1 to n is answered after each value."""
    counted, calls = counting(operation)
    kernel = technique(name, counted)
    ranges = list(range(n, 0, -1))
    state = kernel.new(n, counts=ranges)
    kernel.slide_ranges(values[: 2 * n], ranges, state)
    before = int(calls[0])
    answers = kernel.slide_ranges(values[2 * n :], ranges, state)
    return (int(calls[0]) - before) / (len(values) - 2 * n), answers


def words_of(state: Any) -> int:
    """Count the 8-byte words of all arrays of a state."""
    if isinstance(state, np.ndarray):
        return state.nbytes // 8
    return sum(words_of(part) for part in state if isinstance(part, np.ndarray | tuple))
