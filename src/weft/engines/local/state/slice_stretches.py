"""Which slices go into one chunk of an operator's state: the newest alone, others together.

A chunk that holds the slices of one time is small, and cheap to write anew while events still come
to it. Thousands of them take long to write and to read, so those that no event comes to are put
together, and so are new ones but for the newest.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Stretch = tuple[int, int]  # the first and the last start of the slices in a chunk

# Slices in a chunk of others, and the most chunks of one push: after hours of events it has
# thousands of slices.
TOGETHER = 64
_NEWEST = 8  # of new slices, to which events may still come


def name_of_stretch(base: str, stretch: Stretch) -> str:
    """Name a chunk.

    >>> name_of_stretch("b", (5, 5)), name_of_stretch("b", (-5, 70))
    ('slices/b/5', 'slices/b/-5:70')
    """
    first, last = stretch
    return f"slices/{base}/{first}" if first == last else f"slices/{base}/{first}:{last}"


def stretches_by_base(names: Iterable[str]) -> dict[str, list[Stretch]]:
    """Read the names of chunks.

    >>> stretches_by_base(["slices/b/5", "shape/b", "slices/b/-5:70"])
    {'b': [(5, 5), (-5, 70)]}
    """
    found: dict[str, list[Stretch]] = {}
    for name in names:
        kind, _, rest = name.partition("/")
        if kind == "slices":
            base, _, stretch = rest.partition("/")
            first, _, last = stretch.partition(":")
            found.setdefault(base, []).append((int(first), int(last or first)))
    return found


def regrouped(known: Iterable[Stretch], touched: list[int]) -> tuple[list[Stretch], list[Stretch]]:
    """Return the stretches of all chunks after slices were touched, and those to write.

    Stretches never overlap: a slice inside one is written with all that it has.

    >>> regrouped([(0, 63), (64, 64)], [20, 65])
    ([(0, 63), (64, 64), (65, 65)], [(0, 63), (65, 65)])
    >>> regrouped([(at, at) for at in range(66)], [66, 67])[1]
    [(0, 63), (66, 66), (67, 67)]
    """
    stretches = sorted(known)
    changed: set[Stretch] = set()
    at = 0
    fresh: list[Stretch] = []
    for start in touched:  # in the order of time
        while at < len(stretches) and stretches[at][1] < start:
            at += 1
        if at < len(stretches) and stretches[at][0] <= start:
            changed.add(stretches[at])
        else:
            fresh.append((start, start))
    every, new = sorted((*stretches, *fresh)), set(fresh)
    settled = [
        one[0] == one[1] and (place < len(every) - _NEWEST if one in new else one not in changed)
        for place, one in enumerate(every)
    ]
    found: list[Stretch] = []
    for single, group in groupby(zip(every, settled, strict=True), key=lambda one: one[1]):
        own = [stretch for stretch, _ in group]
        found += _put_together(own) if single else own
    untouched = set(stretches) - changed
    return found, [one for one in found if one not in untouched]


def _put_together(alone: list[Stretch]) -> list[Stretch]:
    """Return the stretches of chunks of many slices, and of those that are too few for one."""
    if len(alone) < TOGETHER:
        return alone
    size = max(TOGETHER, -(-len(alone) // TOGETHER))
    packs = [alone[at : at + size] for at in range(0, len(alone), size)]
    rest = packs.pop() if len(packs[-1]) <= _NEWEST else []
    return [*((pack[0][0], pack[-1][1]) for pack in packs), *rest]
