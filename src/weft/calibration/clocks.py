"""Clocks: the time that passed, or the time that processors worked for this process tree."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Clock = Literal["wall", "cpu"]
_PARENT, _USER, _REAPED = 1, 11, 15  # fields of /proc/PID/stat, after the name


def seconds_of(clock: Clock, *, children: bool) -> Callable[[], float]:
    """Return a function that reads a clock; with children, Spark's processes count too.

    Processor time is shared out to the cores, as if all had worked alike.
    """
    if not children:
        return process_time
    return perf_counter if clock == "wall" else _seconds_per_core


def _seconds_per_core() -> float:
    return processor_seconds(os.getpid()) / (os.cpu_count() or 1)


def processor_seconds(top: int) -> float:
    """Add up what a process and all below it have worked, on Linux.

    >>> processor_seconds(os.getpid()) > 0
    True
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(place.parent.name)
        parents[number] = int(words[_PARENT])
        ticks[number] = sum(map(int, words[_USER:_REAPED]))
    spent = sum(t for number, t in ticks.items() if _is_below(number, top, parents))
    return spent / os.sysconf("SC_CLK_TCK")


def _is_below(number: int, top: int, parents: dict[int, int]) -> bool:
    while number != top and number in parents:
        number = parents[number]
    return number == top
