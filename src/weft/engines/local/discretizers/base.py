"""What a discretizer is: sorted events in, instances out, and what to keep for the next time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from weft.engines.local.flows import runs_of_equals

if TYPE_CHECKING:
    from weft.engines.local.arrow import Array
    from weft.engines.local.events import Timed

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SortedEvents:
    """Events behind the watermark, by (key, time, arrival): those kept, and those that are new."""

    keys: npt.NDArray[np.integer]
    times_us: Int64s
    marks: dict[str, Array]  # what the discretizer asked to be told of every event
    new: Bools  # False for events that were kept from an earlier time

    def runs(self) -> tuple[Int64s, Int64s]:
        """Return where the events of each key begin and end."""
        return runs_of_equals(self.keys)


class Found(NamedTuple):
    """Instances that closed, as positions `[first, stop)`, and which events to keep."""

    first: Int64s
    stop: Int64s
    starts_us: Int64s
    ends_us: Int64s
    keep: Bools


class Discretizer(Protocol):
    """Finds the instances of one window among sorted events; keeps a little per key."""

    def marks(self, events: Timed) -> dict[str, Array]:
        """Return the columns, beside key and time, that `find` looks at."""
        ...

    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the instances that are closed now; None as watermark closes all.

        Must leave itself unchanged when it raises.
        """
        ...

    def start_amid(self) -> None:
        """Take note that events came before the first one that will be shown."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return what is kept per key, as JSON values."""
        ...

    def restore(self, kept: dict[str, Any]) -> None:
        """Take back what `snapshot` gave."""
        ...


def spanning(events: SortedEvents, first: Int64s, stop: Int64s, keep: Bools) -> Found:
    """Give instances the bounds of their events: to one microsecond after the last."""
    times = events.times_us
    return Found(first, stop, times[first], times[stop - 1] + 1, keep)


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
