"""What a discretizer is: sorted events in, instances out, and what to keep for the next time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.engines.local.windows.flow import runs_of_equals

if TYPE_CHECKING:
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.windows.events import Timed

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SortedEvents:
    """Rows behind the watermark, by (key, time, arrival): slices that were kept, and new events.

    A slice stands for events of its key without any between; a begin of an open instance is the
    first event of a slice.
    """

    keys: npt.NDArray[np.integer]
    times_us: Int64s  # of the first event
    lasts_us: Int64s  # of the last one
    sizes: Int64s  # how many events
    marks: dict[str, Array]  # what the discretizer asked to be told, of the first event
    new: Bools  # False for slices that were kept from an earlier time

    def runs(self) -> tuple[Int64s, Int64s]:
        """Return where the events of each key begin and end."""
        return runs_of_equals(self.keys)


class Found(NamedTuple):
    """Instances that closed, as rows `[first, stop)`; the rows to keep, and where to cut them."""

    first: Int64s
    stop: Int64s
    starts_us: Int64s
    ends_us: Int64s
    keep: Bools  # of open instances: the last rows of a key
    cut: Bools  # where open instances begin


class Discretizer(ABC):
    """Finds the instances of one window among sorted events; keeps a little per key, or nothing."""

    __slots__ = ()

    def marks(self, events: Timed) -> dict[str, Array]:
        """Return the columns, beside key and time, that `find` looks at."""
        return {}

    @abstractmethod
    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the instances that are closed now; None as watermark closes all.

        Must leave itself unchanged when it raises.
        """

    def start_amid(self) -> None:  # noqa: B027  # most windows begin with the first event shown
        """Take note that events came before the first one that will be shown."""

    def snapshot(self) -> dict[str, Any]:
        """Return what is kept per key, as JSON values; open instances are kept as events."""
        return {}

    def restore(self, kept: dict[str, Any]) -> None:  # noqa: B027
        """Take back what `snapshot` gave."""


def spanning(events: SortedEvents, first: Int64s, stop: Int64s, keep: Bools, cut: Bools) -> Found:
    """Give instances the bounds of their events: to one microsecond after the last."""
    return Found(
        first, stop, events.times_us[first], events.lasts_us[stop - 1] + 1, keep, keep & cut
    )


def ordinals_of_events(events: SortedEvents) -> Int64s:
    """Number the events of all rows; return the number of each row's first, and the end.

    >>> one = np.array([0, 0])
    >>> ordinals_of_events(SortedEvents(one, one, one, np.array([3, 1]), {}, one > 0)).tolist()
    [0, 3, 4]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(events.sizes)])


def grown(values: Int64s, size: int, fill: int = 0) -> Int64s:
    """Return an array per key that has a place for every key.

    >>> grown(np.array([7]), 3).tolist()
    [7, 0, 0]
    """
    if values.size >= size:
        return values.copy()
    return np.concatenate([values, np.full(size - values.size, fill, values.dtype)])


def places(counts: Int64s) -> Int64s:
    """Number the elements of groups of these sizes, each from 0.

    >>> places(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - counts, counts)
