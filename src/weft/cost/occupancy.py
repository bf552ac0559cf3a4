"""How many keys show up: the number of distinct keys among the events of an interval."""

from __future__ import annotations

from math import expm1, log1p


def occupancy(keys: float, events: float, skew: float = 0.0) -> float:
    """Return the expected number of distinct keys among `events` draws: K (1 - (1 - 1/K)^x).

    `skew` is the share of events that the most frequent key has beyond its fair share: what is
    left is spread over the others.

    >>> round(occupancy(10, 10), 3), occupancy(1, 1000), round(occupancy(1e6, 10), 3)
    (6.513, 1.0, 10.0)
    >>> round(occupancy(10, 10, skew=0.5), 3)
    4.379
    """
    if keys <= 1:
        return min(1.0, events)
    if skew > 0:
        top = min(skew + 1 / keys, 1.0)
        return -expm1(-events * top) + occupancy(keys - 1, events * (1 - top))
    return -keys * expm1(events * log1p(-1 / keys))


def keys_behind(distinct: float, events: float, most: float) -> float:
    """Return how many keys there are, at `most`, if so many distinct ones are among the events.

    The inverse of `occupancy`, by bisection: it grows with the keys.

    >>> round(keys_behind(occupancy(500, 800), 800, 1e6), 6), keys_behind(10, 10, 70)
    (500.0, 70)
    """
    if occupancy(most, events) <= distinct:
        return most
    low, high = distinct, most
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if occupancy(middle, events) < distinct:
            low = middle
        else:
            high = middle
    return high
