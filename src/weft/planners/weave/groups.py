"""The windows of a weave, grouped: windows with the same edges always share a tree.

Two trees with the same edges cost less as one, since the edge rate stays and one pass over the
events is saved. So the search is over groups, of which there are few even for a million windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from weft.errors import QueryError
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from weft.window import EdgeClass

    Integers = NDArray[np.int64]

# More kinds of ends than this, and windows of one slide share a tree whatever their ends.
_MOST_FINE_GROUPS = 1024


@dataclass(frozen=True, slots=True)
class WeaveWindows:
    """Windows as columns, all in one time unit of the caller's choice."""

    ranges: Integers
    slides: Integers
    offsets: Integers

    @classmethod
    def of(cls, windows: Sequence[PeriodicWindow] | ArrayLike) -> WeaveWindows:
        """Read windows given as such, or as rows (range, slide) or (range, slide, offset).

        >>> WeaveWindows.of([(6, 2), (8, 4)]).slides.tolist()
        [2, 4]
        >>> WeaveWindows.of([PeriodicWindow(6, 4, 5)]).offsets.tolist()
        [1]
        """
        if (
            isinstance(windows, (list, tuple))
            and windows
            and isinstance(windows[0], PeriodicWindow)
        ):
            windows = [(w.range_us, w.slide_us, w.offset_us) for w in windows]
        table = np.asarray(windows, dtype=np.int64)
        if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] not in (2, 3):
            raise QueryError(
                f"cannot weave windows of shape {table.shape}",
                hint="give at least one row (range, slide) or (range, slide, offset)",
            )
        ranges, slides = table[:, 0], table[:, 1]
        if int(table[:, :2].min()) <= 0:
            raise QueryError(
                "cannot weave a window without extent",
                hint="give ranges and slides greater than zero",
            )
        offsets = table[:, 2] % slides if table.shape[1] == 3 else np.zeros_like(slides)
        return cls(ranges, slides, offsets)

    def __len__(self) -> int:
        return len(self.ranges)

    def periodic(self, rows: Sequence[int]) -> list[PeriodicWindow]:
        """Return some of the windows as values."""
        return [
            PeriodicWindow(int(self.ranges[i]), int(self.slides[i]), int(self.offsets[i]))
            for i in rows
        ]


@dataclass(frozen=True, slots=True)
class Groups:
    """Windows ordered so that each group is one run; groups in order of their slides."""

    windows: WeaveWindows
    order: Integers
    starts: Integers
    classes: tuple[tuple[EdgeClass, ...], ...]

    def __len__(self) -> int:
        return len(self.starts)

    def members(self, group: int) -> Integers:
        """Return the windows of one group by their position in the input."""
        end = self.starts[group + 1] if group + 1 < len(self.starts) else len(self.order)
        return self.order[self.starts[group] : end]


def group_windows(windows: WeaveWindows) -> Groups:
    """Put windows with the same slide, begins and ends into one group.

    >>> groups = group_windows(WeaveWindows.of([(6, 2), (12, 4), (8, 2), (5, 3)]))
    >>> [groups.members(g).tolist() for g in range(len(groups))]
    [[0, 2], [3], [1]]
    >>> groups.classes
    (((0, 2),), ((0, 3), (2, 3)), ((0, 4),))
    """
    slides, begins = windows.slides, windows.offsets
    ends = (begins + windows.ranges) % slides
    if np.array_equal(begins, ends) and not begins.any():
        order = np.argsort(slides, kind="stable")
    else:
        order = np.lexsort((ends, begins, slides))
    ordered = np.stack((begins[order], ends[order], slides[order]))
    fresh = (np.diff(ordered) != 0).any(axis=0)
    too_many = np.count_nonzero(fresh) >= _MOST_FINE_GROUPS
    cuts = np.diff(ordered[2]) != 0 if too_many else fresh
    starts = np.concatenate(([0], np.flatnonzero(cuts) + 1))
    changes = np.concatenate(([0], np.flatnonzero(fresh) + 1))
    kinds = ordered[:, changes].T.tolist()
    bounds = [*np.searchsorted(changes, starts).tolist(), len(kinds)]
    classes = tuple(
        tuple(sorted({(edge, slide) for b, e, slide in kinds[lo:hi] for edge in (b, e)}))
        for lo, hi in pairwise(bounds)
    )
    return Groups(windows, order, starts, classes)
