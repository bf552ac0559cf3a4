"""How many workloads are drawn, and what a mistaken user says of them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.statistics import Statistics

_limit: list[int] = []


@contextmanager
def at_most(workloads: int | None) -> Iterator[None]:
    """Draw no more workloads than this, for a while."""
    if workloads is not None:
        _limit.append(workloads)
    try:
        yield
    finally:
        if workloads is not None:
            _limit.pop()


def number_of(wanted: int) -> int:
    """Return how many workloads are drawn where so many are wanted."""
    return min(wanted, *_limit) if _limit else wanted


def mistaken(known: Statistics, seed: int) -> Statistics:
    """Return statistics of which rate, events and keys are ten times too many or too few."""
    random = Random(seed)
    more, keys = (random.choice((0.1, 10.0)) for _ in range(2))
    assert known.rate is not None
    assert known.events is not None
    assert known.keys is not None
    return replace(
        known,
        rate=known.rate * more,
        events=max(round(known.events * more), 1),
        keys=max(round(known.keys * keys), 1),
    )
