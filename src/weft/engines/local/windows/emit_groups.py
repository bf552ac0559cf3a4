"""Which emits of a scope can close together: those that read the same slices in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weft.engines.local.windows.instances import Shapes, shapes_of
from weft.plan import Roll, Slice
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from weft.kernels.partials import Int64s
    from weft.plan import Emit


class SameSlices(NamedTuple):
    """Emits of one query whose periodic windows read the same slices for the same results."""

    emits: tuple[Emit, ...]
    places: Int64s  # of the windows in their query
    shapes: Shapes
    ranges_us: Int64s
    roll: Roll  # of the first


class Arrangement(NamedTuple):
    """Emits as they close: each alone, with its window's place in its query, or together."""

    emits: tuple[Emit, ...]
    alone: tuple[tuple[Emit, int], ...]
    together: tuple[SameSlices, ...]


def arrange(emits: tuple[Emit, ...]) -> Arrangement:
    """Tell emits that stand alone from those that can close together."""
    places: dict[str, int] = {}
    alone: list[tuple[Emit, int]] = []
    together: dict[tuple[object, ...], list[tuple[Emit, int, Roll, PeriodicWindow]]] = {}
    for emit in emits:
        place = places[emit.query] = places.get(emit.query, -1) + 1
        roll = emit.inputs[0]
        if (
            len(emit.inputs) == 1
            and isinstance(roll, Roll)
            and isinstance(roll.feeder, Slice)
            and isinstance(roll.window, PeriodicWindow)
        ):
            asked = (emit.query, emit.outputs, emit.exists)
            same = together.setdefault((roll.feeder, roll.technique, *asked), [])
            same.append((emit, place, roll, roll.window))
        else:
            alone.append((emit, place))
    groups = []
    for group in together.values():
        emits_of, places_of, rolls, windows = zip(*group, strict=True)
        shapes = shapes_of(windows)
        ranges_us = shapes.sizes_us[:, 0]
        groups.append(SameSlices(emits_of, np.array(places_of), shapes, ranges_us, rolls[0]))
    return Arrangement(emits, tuple(alone), tuple(groups))
