"""Partials of a user's own aggregate over ranges that slide: TwoStacks of Python objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.partials.columns import InTimeOrder, ObjectPartials

if TYPE_CHECKING:
    from weft.kernels.partials import Int64s


def slid_objects(rows: ObjectPartials, starts: Int64s, ends: Int64s) -> ObjectPartials:
    """Combine the rows of ranges whose bounds never move back; rows are in the order of time.

    Every row is combined at most twice, and every answer costs one combine more.
    """
    monoid, objects = rows.monoid, list(rows.objects)
    if isinstance(monoid, InTimeOrder):
        # In the order of time already: what was lifted can be combined as it is.
        objects = [lifted for ((_, lifted),) in objects]
        monoid = monoid.inner
    out = np.empty(starts.size, object)
    suffixes: list[Any] = []  # of [origin, middle), the newest first
    middle = read = 0
    back = monoid.identity  # of [middle, read)
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if start >= end:
            out[i] = monoid.identity
            continue
        if start >= middle:
            suffixes = _suffixes(monoid, objects, start, end)
            middle = read = end
            back = monoid.identity
        for position in range(read, end):
            back = monoid.combine(back, objects[position])
        read = end
        front = suffixes[middle - 1 - start]
        out[i] = front if read == middle else monoid.combine(front, back)
    return ObjectPartials(monoid, out)


def _suffixes(monoid: Any, objects: list[Any], start: int, end: int) -> list[Any]:
    suffix = monoid.identity
    found = []
    for position in range(end - 1, start - 1, -1):
        suffix = monoid.combine(objects[position], suffix)
        found.append(suffix)
    return found
