"""What FlatFAT spends on lookups, summed over any number of ranges in one binary search each.

A lookup of P partials costs a piecewise linear f(P). A tree asks for the sum of f(range * rate)
over its windows, and the edge rate differs with every union tried. Sorted ranges and their
running sums give that sum from the positions of the breakpoints alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LARGEST_POWER = 60
# A count of partials that is whole may miss its breakpoint by a rounding error.
_ROUNDING = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class LookupCost:
    """A piecewise linear cost: what slope and intercept change by at each breakpoint."""

    breakpoints: Floats
    slope_steps: Floats
    intercept_steps: Floats
    largest_drop: float  # how much less a longer lookup can cost; zero when it never does

    def each(self, partials: Floats) -> Floats:
        """Return the cost of one lookup of each number of partials.

        >>> import numpy as np
        >>> flat_fat_lookup().each(np.array([1.0, 2.0, 3.0, 4.0, 7.0, 8.0])).tolist()
        [0.0, 0.5, 1.0, 1.25, 2.0, 2.125]
        """
        passed = np.searchsorted(self.breakpoints * _ROUNDING, partials, side="right")
        slope = np.concatenate(([0.0], np.cumsum(self.slope_steps)))[passed]
        intercept = np.concatenate(([0.0], np.cumsum(self.intercept_steps)))[passed]
        cost: Floats = slope * partials + intercept
        return cost


@cache
def flat_fat_lookup() -> LookupCost:
    """Combines of an ordered lookup, k - 2 + (P + 1) / 2**k where 2**k <= P < 2**(k + 1).

    Linear in between whole numbers of partials, so it never falls.
    """
    pieces = [(1.0, 0.5, -0.5)]
    for k in range(1, _LARGEST_POWER):
        power = 2.0**k
        pieces.append((power, 1 / power, k - 2 + 1 / power))
        pieces.append((2 * power - 1, 0.5 / power, k - 1 + 0.5 / power))
    return _lookup_cost(pieces, largest_drop=0.0)


@cache
def published_flat_fat_lookup() -> LookupCost:
    """The published floor(log2(P - 1)) + (P - 1) / 2**floor(log2 P), zero up to one partial.

    It falls by up to one at each power of two.
    """
    pieces = [(1.0, 1.0, -1.0)]
    for k in range(1, _LARGEST_POWER):
        power = 2.0**k
        pieces.append((power, 1 / power, k - 1 - 1 / power))
        pieces.append((power + 1, 1 / power, k - 1 / power))
    return _lookup_cost(pieces, largest_drop=1.0)


def _lookup_cost(pieces: Sequence[tuple[float, float, float]], largest_drop: float) -> LookupCost:
    starts, slopes, intercepts = np.array(pieces).T
    return LookupCost(
        starts, np.diff(slopes, prepend=0.0), np.diff(intercepts, prepend=0.0), largest_drop
    )


@dataclass(frozen=True, slots=True)
class RangeProfile:
    """Sorted ranges with the running sums of their weights, ready for any edge rate."""

    ranges: Floats
    weights: Floats
    weight_from: Floats  # weight of all ranges from this position on
    range_from: Floats  # the same, of weight * range

    @classmethod
    def of(cls, ranges: Floats, weights: Floats) -> RangeProfile:
        """Sort the ranges and add up their weights from the longest down."""
        order = np.argsort(ranges, kind="stable")
        ordered, weighed = ranges[order], weights[order]
        return cls(ordered, weighed, _sums_from(weighed), _sums_from(weighed * ordered))

    @classmethod
    def union(cls, profiles: Sequence[RangeProfile]) -> RangeProfile:
        """Return the profile of all these ranges together."""
        if len(profiles) == 1:
            return profiles[0]
        return cls.of(
            np.concatenate([p.ranges for p in profiles]),
            np.concatenate([p.weights for p in profiles]),
        )

    def total(self, rates: Floats, cost: LookupCost) -> Floats:
        """Return the weighted cost of looking up every range, at each edge rate.

        >>> import numpy as np
        >>> profile = RangeProfile.of(np.array([8.0, 16.0]), np.ones(2))
        >>> profile.total(np.array([0.5, 1.0]), flat_fat_lookup()).tolist()
        [3.375, 5.1875]
        """
        longest = float(self.ranges[-1] * rates.max())
        breakpoints = cost.breakpoints * _ROUNDING
        pieces = max(int(np.searchsorted(breakpoints, longest, side="right")), 1)
        starts = breakpoints[:pieces]
        positions = np.searchsorted(self.ranges, starts / rates[:, None])
        total: Floats = (
            self.range_from[positions] @ cost.slope_steps[:pieces] * rates
            + self.weight_from[positions] @ cost.intercept_steps[:pieces]
        )
        return total


def _sums_from(values: Floats) -> Floats:
    sums: Floats = np.concatenate((np.cumsum(values[::-1])[::-1], [0.0]))
    return sums
