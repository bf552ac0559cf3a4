"""How many keys show up: the number of distinct keys among the events of an interval."""

from __future__ import annotations

from math import expm1, log1p


def occupancy(keys: float, events: float) -> float:
    """Return the expected number of distinct keys among `events` draws: K (1 - (1 - 1/K)^x).

    >>> round(occupancy(10, 10), 3), occupancy(1, 1000), round(occupancy(1e6, 10), 3)
    (6.513, 1.0, 10.0)
    """
    if keys <= 1:
        return min(1.0, events)
    return -keys * expm1(events * log1p(-1 / keys))
