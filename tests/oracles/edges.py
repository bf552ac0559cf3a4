"""Edges of a small composite period, one by one."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.window import EdgeClass


def composite_edges(classes: Iterable[EdgeClass]) -> tuple[int, tuple[int, ...]]:
    """Return the composite period and the distinct edges in `[0, period)`.

    >>> composite_edges([(0, 2), (0, 4)])
    (4, (0, 2))
    >>> from weft.window import PeriodicWindow, edge_classes
    >>> both = [PeriodicWindow(5, 3), PeriodicWindow(14, 8)]
    >>> [len(composite_edges(edge_classes(both, s))[1]) for s in ("pairs", "begins")]
    [18, 10]
    """
    chosen = tuple(classes)
    period = lcm(*(modulus for _, modulus in chosen))
    positions = {p for residue, modulus in chosen for p in range(residue, period, modulus)}
    return period, tuple(sorted(positions))
