"""Closed instances of many windows over the same few slices, found and combined in one go.

A stream closes a handful of instances of each window at a time; what costs then is not the
combining but asking window by window.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.grouping.slices import instances_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.windows.flow import Flow
    from weft.window import PeriodicWindow

Int64s = npt.NDArray[np.int64]


class Instances:
    """Instances of several windows: which window, when, and the rows of slices they read."""

    __slots__ = ("ends", "starts", "starts_us", "windows")

    def __init__(self, columns: Sequence[Int64s]) -> None:
        self.windows, self.starts_us, self.starts, self.ends = columns

    def take(self, rows: npt.NDArray[np.bool_]) -> Instances:
        """Select instances."""
        return Instances([c[rows] for c in (self.windows, self.starts_us, self.starts, self.ends)])


def closing_instances(
    windows: Sequence[PeriodicWindow], flow: Flow, from_us: int | None, to_us: int | None
) -> Instances:
    """Find the instances of these windows that have slices and end in `(from, to]`.

    >>> from weft.engines.local.windows.flow import Flow
    >>> from weft.window import PeriodicWindow
    >>> flow = Flow(np.array([7, 7]), np.array([0, 2]), None, {})
    >>> found = closing_instances([PeriodicWindow(4, 2), PeriodicWindow(2, 2)], flow, 2, 4)
    >>> found.windows.tolist(), found.starts_us.tolist(), found.ends.tolist()
    ([0, 1], [0, 2], [2, 2])
    """
    return closing_by_shape(shapes_of(tuple(windows)), flow, from_us, to_us)


class Shapes(NamedTuple):
    """Range, slide and offset of each window, and whether no two instances of any overlap."""

    sizes_us: Int64s
    tumbling: bool


def closing_by_shape(
    shapes: Shapes, flow: Flow, from_us: int | None, to_us: int | None
) -> Instances:
    """Do as `closing_instances`, for a caller who asks for the same windows again and again."""
    sizes, tumbling = shapes
    # A slice is in one instance of each window that tumbles.
    most = len(flow) * len(sizes) if tumbling else None
    return Instances(instances_within(flow.keys, flow.starts_us, sizes, from_us, to_us, most))


@lru_cache(maxsize=1 << 10)
def shapes_of(windows: tuple[PeriodicWindow, ...]) -> Shapes:
    """Read the shapes of windows.

    >>> from weft.window import PeriodicWindow
    >>> shapes_of((PeriodicWindow(4, 2),))
    Shapes(sizes_us=array([[4, 2, 0]]), tumbling=False)
    """
    shapes = np.array([(w.range_us, w.slide_us, w.offset_us) for w in windows], np.int64)
    shapes.flags.writeable = False
    return Shapes(shapes, bool(np.all(shapes[:, 0] <= shapes[:, 1])))
