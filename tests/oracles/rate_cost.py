"""A cost of factor windows in closed form, for tests of the search.

It charges per microsecond and knows keys, so it needs no common period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.cost.occupancy import occupancy

if TYPE_CHECKING:
    from weft.window.periodic import PeriodicWindow


@dataclass(frozen=True, slots=True)
class RateCost:
    """Charges per microsecond: every event read, every row of a feeder read, every operator.

    A feeder instance is one row per key that occurs in it, so sharing pays less the more keys
    there are: `keys` many of equal weight leave D = K * (1 - (1 - 1/K)**x) rows of x events.
    Three tumbling windows, one event per unit, as they are and with a factor window of 10:

    >>> from weft.window.periodic import PeriodicWindow
    >>> ten, *wanted = [PeriodicWindow(r, r) for r in (10, 20, 30, 40)]
    >>> for keys in (1, 10):
    ...     cost = RateCost(events_per_us=1.0, keys=keys)
    ...     alone = sum(map(cost.from_events, wanted))
    ...     shared = cost.from_events(ten) + sum(cost.from_feeder(w, ten) for w in wanted[:2])
    ...     shared += cost.from_feeder(wanted[2], wanted[0])
    ...     print(round(120 * alone, 1), round(120 * shared, 1))
    360.0 150.0
    360.0 329.0
    """

    events_per_us: float
    keys: float = 1.0
    per_event: float = 1.0
    per_row: float = 1.0
    per_operator: float = 0.0

    def rows(self, window: PeriodicWindow) -> float:
        """Expect the rows of one instance: the keys that occur in it.

        >>> from weft.window.periodic import PeriodicWindow
        >>> round(RateCost(events_per_us=1.0, keys=10).rows(PeriodicWindow(10, 10)), 3)
        6.513
        """
        events = self.events_per_us * window.range_us
        # An instance that expects less than one event cannot expect more rows than events.
        return min(events, occupancy(self.keys, events))

    def from_events(self, window: PeriodicWindow) -> float:
        """Charge each event once for every instance that holds it."""
        events_per_us = self.events_per_us * window.range_us / window.slide_us
        return self.per_operator + self.per_event * events_per_us

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow) -> float:
        """Charge each row of the feeder once for every instance of `window` that reads it."""
        instances_read, _ = window.reads(feeder)
        rows_per_us = instances_read * self.rows(feeder) / window.slide_us
        return self.per_operator + self.per_row * rows_per_us
