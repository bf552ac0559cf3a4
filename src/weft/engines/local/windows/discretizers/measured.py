"""Measured windows: periodic over a column that never decreases within a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.windows.discretizers.base import (
    Discretizer,
    Found,
    Int64s,
    SortedEvents,
    grown,
    spanning,
)
from weft.errors import DataError
from weft.kernels.arrow_columns import column_of
from weft.kernels.compiled import unlocked

if TYPE_CHECKING:
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.windows.events import Timed
    from weft.window import MeasuredWindow

_FIRST = -(2**62)


@dataclass(slots=True)
class Measured(Discretizer):
    """Numbers instances by their place on the measure; one closes when the measure passes it."""

    window: MeasuredWindow
    # Of each key: the least ordinal that is still open, and the last value seen.
    following: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    last: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64))
    amid: bool = False  # the instances of a key's first event may have had others before

    @property
    def _mark(self) -> str:
        return f"measure {self.window.column}"

    def marks(self, events: Timed) -> dict[str, Array]:
        """Read the measure; NULL is an error, as the order of events would be unknown."""
        values = events.argument(self.window.column)
        if values.null_count:
            raise self._falls("a value", None)
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            raise DataError(
                f"{self.window.column} is of type {values.type}, which measures nothing",
                hint="measure by a column of numbers",
            )
        return {self._mark: values}

    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the instances that the measure has passed; without a watermark, all."""
        values = column_of(events.marks[self._mark]).values
        starts, ends = events.runs()
        owners = events.keys[starts].astype(np.int64)
        size = int(owners[-1]) + 1 if owners.size else 0
        following = grown(self.following, size, _FIRST)
        last = np.concatenate([self.last, np.full(max(size - self.last.size, 0), -np.inf)])
        self._check(values, events, last)
        lows, highs = ordinals(values, self.window.range_units, self.window.slide_units)
        if self.amid:
            unknown = following[owners] == _FIRST
            following[owners[unknown]] = highs[starts[unknown]] + 1
        # Instances up to the one before the last event's first can get no more events.
        bounds = np.full(starts.size, 2**62) if watermark_us is None else lows[ends - 1]
        first, stop = _instances(starts, ends, lows, highs, following[owners], bounds)
        following[owners] = np.maximum(following[owners], lows[ends - 1])
        last[owners] = np.maximum(last[owners], values[ends - 1])
        keep = highs >= np.repeat(bounds, ends - starts)
        self.following, self.last = following, last
        begins = np.ones(highs.size, np.bool_)
        begins[1:] = (highs[1:] != highs[:-1]) | (events.keys[1:] != events.keys[:-1])
        return spanning(events, first, stop, keep, begins)

    def _check(
        self, values: npt.NDArray[Any], events: SortedEvents, last: npt.NDArray[np.float64]
    ) -> None:
        """Refuse a value below the one before, which for a key's first new event is kept here."""
        continues = np.zeros(values.size, np.bool_)
        continues[1:] = events.new[:-1] & (events.keys[1:] == events.keys[:-1])
        known = last[events.keys]
        falls = np.zeros(values.size, np.bool_)
        falls[1:] = continues[1:] & ~(values[1:] >= values[:-1])
        falls |= events.new & ~continues & ~(values >= known)
        if falls.any():
            at = int(np.flatnonzero(falls)[0])
            before = values[at - 1] if continues[at] else known[at]
            raise self._falls(before.item(), values[at].item())

    def _falls(self, before: Any, value: Any) -> DataError:
        return DataError(
            f"{self.window.column} goes from {before!r} to {value!r}: a measured window needs a "
            "column that never decreases within a key, and no NULL",
            hint="filter such events out with where=, or order the events by another column",
        )

    def start_amid(self) -> None:
        """Leave out the instances that hold a key's first event: it may not be their first."""
        self.amid = True

    def snapshot(self) -> dict[str, Any]:
        """Return the open ordinals and last values; infinities as text."""
        return {
            "amid": self.amid,
            "following": self.following.tolist(),
            "last": [value.hex() for value in self.last.tolist()],
        }

    def restore(self, kept: dict[str, Any]) -> None:
        """Take the numbers back."""
        self.amid = kept["amid"]
        self.following = np.array(kept["following"], np.int64)
        self.last = np.array([float.fromhex(value) for value in kept["last"]], np.float64)


def ordinals(
    values: npt.NDArray[Any], range_units: int | float, slide_units: int | float
) -> tuple[Int64s, Int64s]:
    """Return the first and last ordinal of the instances that hold each value, without rounding.

    >>> [o.tolist() for o in ordinals(np.array([12.5, 0.3]), 10, 5)]
    [[1, -1], [2, 0]]
    >>> [o.tolist() for o in ordinals(np.array([0.3]), 0.1, 0.1)]
    [[2], [2]]
    """
    exact = isinstance(range_units, int) and isinstance(slide_units, int)
    if values.dtype.kind == "i" and exact:
        whole: Int64s = values
        return (whole - int(range_units)) // int(slide_units) + 1, whole // int(slide_units)
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(
            "a measured column holds NaN or infinity", hint="filter such events out with where="
        )
    slide, reach = float(slide_units), float(range_units)
    # What the subtraction rounds off decides where a value lies on a border (Knuth's two-sum).
    less = numbers - reach
    part = less - numbers
    rounded = (numbers - (less - part)) + (-reach - part)
    quotients, rests = np.divmod(less, slide)
    lows = quotients - (rests < -rounded) + ((rounded > 0) & (slide - rests <= rounded))
    return lows.astype(np.int64) + 1, np.floor_divide(numbers, slide).astype(np.int64)


def _instances(
    starts: Int64s, ends: Int64s, lows: Int64s, highs: Int64s, least: Int64s, bounds: Int64s
) -> tuple[Int64s, Int64s]:
    nothing = np.empty(0, np.int64)
    count = _find(starts, ends, lows, highs, least, bounds, nothing, nothing)
    first, stop = np.empty(count, np.int64), np.empty(count, np.int64)
    _find(starts, ends, lows, highs, least, bounds, first, stop)
    return first, stop


@unlocked
def _find(
    starts: Int64s,
    ends: Int64s,
    lows: Int64s,
    highs: Int64s,
    least: Int64s,
    bounds: Int64s,
    first: Int64s,
    stop: Int64s,
) -> int:
    """Write the instances in `[least, bound)` of every run, or only count them."""
    found = 0
    for run in range(starts.size):
        row, ahead = starts[run], starts[run]
        ordinal = max(least[run], lows[row])
        while True:
            while row < ends[run] and highs[row] < ordinal:
                row += 1
            if row == ends[run]:
                break
            ordinal = max(ordinal, lows[row])
            if ordinal > highs[row]:
                row += 1
                continue
            if ordinal >= bounds[run]:
                break
            ahead = max(ahead, row)
            while ahead < ends[run] and lows[ahead] <= ordinal:
                ahead += 1
            if first.size:
                first[found], stop[found] = row, ahead
            found += 1
            ordinal += 1
    return found
