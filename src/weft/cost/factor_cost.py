"""What a window costs from events and from a feeder: the two prices the factor search compares.

`PaperCost` counts as Wu et al., "Factor Windows" (arXiv:2008.12379), to reproduce their figures.
Any other model with the two methods of `FactorCost` fits as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING, Protocol

from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.window.periodic import PeriodicWindow

# Beyond it a sum of costs leaves the floating-point numbers.
_LONGEST_PERIOD_US = 10**280


class FactorCost(Protocol):
    """Prices one operator, its own constant included; a plan costs the sum over its operators.

    A price is finite, not negative and depends on the arguments alone.
    """

    def from_events(self, window: PeriodicWindow) -> float:
        """Price of folding every event into each instance of `window` that holds it."""
        ...

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow) -> float:
        """Price of computing `window` from the partials of `feeder`, which must serve it."""
        ...


@dataclass(frozen=True, slots=True)
class PaperCost:
    """Counts the inputs of each window in one common period R, the least common multiple of ranges.

    A window has n = 1 + (R - r) / s instances in the period; each reads eta * r events or the
    M = 1 + (r - r') / s' instances of its feeder it covers. Where r is no multiple of s, n is
    rounded down: the number of instances that lie wholly in the period. Offsets are not counted.

    >>> from weft.window.periodic import PeriodicWindow
    >>> wanted = [PeriodicWindow(r, r) for r in (20, 30, 40)]
    >>> cost = PaperCost.of(wanted)
    >>> [cost.from_events(w) for w in wanted], cost.from_feeder(wanted[2], wanted[0])
    ([120.0, 120.0, 120.0], 6.0)
    """

    period_us: int
    events_per_us: float = 1.0

    @classmethod
    def of(cls, windows: Iterable[PeriodicWindow], events_per_us: float = 1.0) -> PaperCost:
        """Count over the period after which all of `windows` end together."""
        period_us = lcm(*(window.range_us for window in windows))
        if period_us > _LONGEST_PERIOD_US:
            raise UnsupportedError(
                "the ranges of these windows have no common period that can be counted in",
                hint="use the rate model, which needs no period",
            )
        return cls(period_us, events_per_us)

    def instances(self, window: PeriodicWindow) -> int:
        """Count the instances of `window` that lie wholly in one period."""
        return 1 + (self.period_us - window.range_us) // window.slide_us

    def from_events(self, window: PeriodicWindow) -> float:
        """Count the events read in one period: n * eta * r."""
        return self.instances(window) * self.events_per_us * window.range_us

    def from_feeder(self, window: PeriodicWindow, feeder: PeriodicWindow) -> float:
        """Count the feeder instances read in one period: n * M."""
        return float(self.instances(window) * feeder.multiplier(window))
