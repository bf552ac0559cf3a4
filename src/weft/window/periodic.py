"""Tumbling and hopping windows, and the algebra of which window can be computed from which.

The relations are those of Wu et al., "Factor Windows" (arXiv:2008.12379), for any offset and for
ranges that are no multiple of the slide. An instance is `[offset + m*slide, ... + range)` for
every integer m, so a relation holds everywhere or nowhere: there is no first instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.errors import QueryError
from weft.time import format_us

if TYPE_CHECKING:
    from collections.abc import Iterator


LONGEST_US = 2**63


@dataclass(frozen=True, slots=True)
class PeriodicWindow:
    """A window of `range_us` that begins anew every `slide_us`; tumbling when both are equal.

    >>> str(PeriodicWindow(1_200_000_000, 1_200_000_000)), str(PeriodicWindow(60, 5, 62))
    ('TUMBLE 20m', 'HOP 60us/5us @2us')
    """

    range_us: int
    slide_us: int
    offset_us: int = 0

    def __post_init__(self) -> None:
        if max(abs(self.range_us), abs(self.slide_us)) >= LONGEST_US:
            raise QueryError(
                f"a window of {format_us(self.range_us)} is longer than time itself in 64 bits",
                hint="give a range and a slide of less than 290,000 years",
            )
        if self.range_us <= 0:
            raise QueryError(
                f"a window range of {format_us(self.range_us)} holds no event",
                hint="give a range greater than zero",
            )
        if self.slide_us <= 0:
            raise QueryError(
                f"a window slide of {format_us(self.slide_us)} never moves on",
                hint="give a slide greater than zero",
            )
        object.__setattr__(self, "offset_us", self.offset_us % self.slide_us)

    def __str__(self) -> str:
        at = f" @{format_us(self.offset_us)}" if self.offset_us else ""
        if self.is_tumbling:
            return f"TUMBLE {format_us(self.range_us)}{at}"
        return f"HOP {format_us(self.range_us)}/{format_us(self.slide_us)}{at}"

    @property
    def is_tumbling(self) -> bool:
        """True when instances neither overlap nor leave gaps."""
        return self.range_us == self.slide_us

    def instances(self, time_us: int) -> Iterator[tuple[int, int]]:
        """Yield the instances that hold `time_us`, earliest first; none in a gap.

        >>> list(PeriodicWindow(5, 3).instances(4)), list(PeriodicWindow(2, 5).instances(4))
        ([(0, 5), (3, 8)], [])
        """
        last = self.offset_us + (time_us - self.offset_us) // self.slide_us * self.slide_us
        behind = (last + self.range_us - 1 - time_us) // self.slide_us if last <= time_us else -1
        for m in range(behind, -1, -1):
            start = last - m * self.slide_us
            yield start, start + self.range_us

    def covers(self, other: PeriodicWindow) -> bool:
        """True when the instances of this window inside one of `other` add up to all of it.

        They may overlap, so only an idempotent aggregate can be computed from them. The published
        theorem lacks the condition that the covered range is the larger one.

        >>> PeriodicWindow(8, 2).covers(PeriodicWindow(10, 2)), PeriodicWindow(4, 2).covers(
        ...     PeriodicWindow(2, 2))
        (True, False)
        """
        if self == other:
            return True
        return (
            self.slide_us <= self.range_us < other.range_us
            and (other.range_us - self.range_us) % self.slide_us == 0
            and self._starts_where(other)
        )

    def partitions(self, other: PeriodicWindow) -> bool:
        """True when this tumbling window cuts every instance of `other` into whole instances.

        >>> PeriodicWindow(5, 5).partitions(PeriodicWindow(20, 10)), PeriodicWindow(20, 20
        ...     ).partitions(PeriodicWindow(20, 5))
        (True, False)
        """
        return (
            self.is_tumbling and other.range_us % self.range_us == 0 and self._starts_where(other)
        )

    def tiles(self, other: PeriodicWindow) -> bool:
        """True when some instances of this window lie side by side and make up each of `other`.

        Wider than `partitions`: of an overlapping feeder every (range / slide)-th instance is
        read, which serves every decomposable aggregate.

        >>> PeriodicWindow(10, 5).tiles(PeriodicWindow(20, 20)), PeriodicWindow(10, 4).tiles(
        ...     PeriodicWindow(20, 20))
        (True, False)
        """
        if other.range_us == self.range_us:
            return self._starts_where(other)
        return (
            self.range_us % self.slide_us == 0
            and other.range_us % self.range_us == 0
            and self._starts_where(other)
        )

    def reuses(self, other: PeriodicWindow) -> bool:
        """True when every instance of `other` is an instance of this window, range for range.

        Serves every aggregate, also one that cannot be decomposed.

        >>> PeriodicWindow(10, 2).reuses(PeriodicWindow(10, 4))
        True
        """
        return self.range_us == other.range_us and self._starts_where(other)

    def multiplier(self, other: PeriodicWindow) -> int:
        """Count the instances of this window inside one of `other` which it covers.

        The covering multiplier M = 1 + (r1 - r2) / s2.

        >>> PeriodicWindow(8, 2).multiplier(PeriodicWindow(10, 2))
        2
        >>> PeriodicWindow(10, 10).multiplier(PeriodicWindow(40, 40))
        4
        """
        return 1 + (other.range_us - self.range_us) // self.slide_us

    def reads(self, feeder: PeriodicWindow) -> tuple[int, int]:
        """Tell how an instance reads its feeder: (number of instances, distance of their starts).

        Side by side where the feeder tiles this window, all that overlap otherwise.

        >>> PeriodicWindow(20, 20).reads(PeriodicWindow(10, 5))
        (2, 10)
        >>> PeriodicWindow(10, 2).reads(PeriodicWindow(8, 2))
        (2, 2)
        """
        if feeder.tiles(self):
            return self.range_us // feeder.range_us, feeder.range_us
        return feeder.multiplier(self), feeder.slide_us

    def _starts_where(self, other: PeriodicWindow) -> bool:
        """Every instance of `other` starts where one of this window does."""
        return (
            other.slide_us % self.slide_us == 0
            and (other.offset_us - self.offset_us) % self.slide_us == 0
        )
