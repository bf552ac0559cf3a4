"""When a tuple of a join counts, as SQL text: from one instant on, up to another.

Whatever the windows, an input contributes a tuple during one span of time, so rows of several
inputs that match count while all their spans last. A join of spans needs no copy of a tuple for
every instant; instants are listed at the end, from far fewer rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.spark.sql.instants import floor_to
from weft.plan.joins import end_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.window import PeriodicWindow

    Classes = Sequence[tuple[int, int]]


def next_instant(classes: Classes, time: str) -> str:
    """Return the first instant after a time.

    >>> next_instant([(0, 5)], "t")
    't - pmod(t, 5L) + 5L'
    """
    firsts = [f"{floor_to(time, residue, modulus)} + {modulus}L" for residue, modulus in classes]
    return firsts[0] if len(firsts) == 1 else f"least({', '.join(firsts)})"


def span_of(window: PeriodicWindow, time: str) -> tuple[str, str]:
    """Return from when, and until when, an instance that holds a time is the latest of its window.

    A slice of the window is all times with one span.

    >>> from weft.window import PeriodicWindow
    >>> span_of(PeriodicWindow(4, 2), "t")
    ('t - pmod(t, 2L) + 2L', 't - pmod(t, 2L) + 6L')
    >>> span_of(PeriodicWindow(5, 3), "t")[1]
    't + 5L - pmod(t + 5L - 2L, 3L) + 3L'
    """
    residue, slide_us = end_class(window)
    since = next_instant([(residue, slide_us)], time)
    if window.range_us % slide_us == 0:
        floor = floor_to(time, residue, slide_us)
        return since, f"{floor} + {slide_us + window.range_us}L"
    return since, next_instant([(residue, slide_us)], f"{time} + {window.range_us}L")


def instants_during(classes: Classes, since: str, until: str) -> str:
    """Return the instants of a span, as an array.

    >>> instants_during([(0, 2)], "a", "z")
    'sequence(a, z - 2L, 2L)'
    """
    if len(classes) == 1:  # a span of it begins and ends at instants
        ((_, modulus),) = classes
        return f"sequence({since}, {until} - {modulus}L, {modulus}L)"
    parts = []
    for residue, modulus in classes:
        low = f"{since} + pmod({residue}L - {since}, {modulus}L)"
        parts.append(
            f"CASE WHEN {low} < {until} THEN sequence({low}, {until} - 1L, {modulus}L) "
            "ELSE cast(array() AS array<bigint>) END"
        )
    return f"array_distinct(concat({', '.join(parts)}))"
