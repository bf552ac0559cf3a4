"""Features of sorted anchors: the ranges of positions of each window, aggregated and lowered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import pyarrow as pa

from weft.aggregates import Partial
from weft.engines.local.anchors.objects import slid_objects
from weft.engines.local.anchors.order import LEAST, positions, shifted
from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import KernelPartials, LimbSums, ObjectPartials
from weft.engines.local.partials.lift import lift, row_partials
from weft.engines.local.partials.lower import lower
from weft.kernels.operations import COUNT
from weft.kernels.parallel import over_parts
from weft.kernels.partials import Partials
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.aggregates import AggregateCall
    from weft.engines.local.anchors.order import Codes
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Int64s
    from weft.kernels.ranges.choice import RangeTechnique
    from weft.plan.anchors import Trail
    from weft.window.trailing import AnchoredWindow

_MOST_BAGS = 1 << 16  # multisets that are lowered at a time

Shift: TypeAlias = "tuple[int | None, int | None]"  # of an anchor's time, and what it is rounded to


@dataclass(frozen=True, slots=True, eq=False)
class Anchored:
    """Events and anchors, each in the order of (key, time); keys are numbers both know.

    An anchor without a time has the least one there is, `LEAST`, and its windows are empty. Where
    anchors are the events themselves, `own_stops` has how many events there are up to and with
    each anchor, and `own_starts` how many before it.
    """

    keys: Codes
    times_us: Int64s
    anchor_keys: Codes
    anchor_times_us: Int64s
    own_starts: Int64s | None = None
    own_stops: Int64s | None = None

    def ranges(self, windows: Sequence[AnchoredWindow]) -> list[tuple[Int64s, Int64s]]:
        """Return the positions of the events of each window at each anchor."""
        wanted = dict.fromkeys(one for window in windows for one in _shifts(window))
        found = over_parts(self._at, wanted, self.keys.size + self.anchor_keys.size)
        known = dict(zip(wanted, found, strict=True))
        return [self._range(window, known) for window in windows]

    def _range(
        self, window: AnchoredWindow, known: Mapping[Shift, Int64s]
    ) -> tuple[Int64s, Int64s]:
        begin, end = (known[shift] for shift in _shifts(window))
        if isinstance(window, Trailing):
            return begin, end
        own = self.own_stops if window.holds_anchor else self.own_starts
        stops = np.maximum((end if own is None else own) - window.lag, begin)
        return np.maximum(stops - window.rows, begin), stops

    def _at(self, shift: Shift) -> Int64s:
        """Find the first event of each anchor's key that is not before a shift of its time."""
        by_us, round_us = shift
        if by_us is None:
            instants = np.full(self.anchor_times_us.size, LEAST)
        else:
            instants = shifted(self.anchor_times_us, by_us, round_us)
            instants[self.anchor_times_us == LEAST] = LEAST
        return positions(self.keys, self.times_us, self.anchor_keys, instants)


def _shifts(window: AnchoredWindow) -> tuple[Shift, Shift]:
    """Return where a window begins and ends, from the anchor; None for all that came before."""
    if isinstance(window, Trailing):
        return (window.first_us, window.round_us), (window.stop_us, None)
    return (None, None), (window.stop_us, None)


def trail_columns(
    anchored: Anchored,
    trails: Sequence[Trail],
    outputs: Sequence[tuple[str, int, AggregateCall]],
    argument: Callable[[str], Array],
    types: Mapping[str, pa.DataType],
) -> list[Array]:
    """Return the output columns of trails that read the same events, in the anchors' order.

    Outputs name their trail by its place here; `argument` evaluates an expression over the events,
    in their order.
    """
    partials = dict.fromkeys(p for trail in trails for p in trail.partials)
    rows = {p: _row_partials(p, anchored.times_us, argument) for p in partials}
    return partial_columns(anchored, trails, outputs, rows, types)


def partial_columns(
    anchored: Anchored,
    trails: Sequence[Trail],
    outputs: Sequence[tuple[str, int, AggregateCall]],
    rows: Mapping[Partial, Held],
    types: Mapping[str, pa.DataType],
) -> list[Array]:
    """Return the output columns of trails over rows that are partials already, in their order."""
    ranges = anchored.ranges([trail.window for trail in trails])
    work = [
        (at, partial, technique)
        for at, trail in enumerate(trails)
        for partial, technique in zip(trail.partials, trail.techniques, strict=True)
    ]

    def aggregated(one: tuple[int, Partial, str]) -> Held:
        at, partial, technique = one
        return aggregate(rows[partial], *ranges[at], technique)

    found = over_parts(aggregated, work, anchored.keys.size + anchored.anchor_keys.size)
    held: list[dict[Partial, Held]] = [{} for _ in trails]
    for (at, partial, _), values in zip(work, found, strict=True):
        held[at][partial] = values
    lowered = over_parts(
        lambda output: _lowered(output[2], held[output[1]], types[output[0]]),
        outputs,
        anchored.anchor_keys.size,
    )
    return list(lowered)


def _lowered(call: AggregateCall, held: Mapping[Partial, Held], type: pa.DataType) -> Array:
    """Lower one output; multisets in parts, because some are written out for every anchor."""
    partials = {partial: held[partial] for partial in call.partials}
    rows = len(next(iter(partials.values())))
    if rows <= _MOST_BAGS or not any(isinstance(one, Bags) for one in partials.values()):
        return lower(call, partials, type)
    parts = [
        {p: one.take(np.arange(at, min(at + _MOST_BAGS, rows))) for p, one in partials.items()}
        for at in range(0, rows, _MOST_BAGS)
    ]
    lowered: Array = pa.concat_arrays([lower(call, part, type) for part in parts])
    return lowered


def _row_partials(partial: Partial, times_us: Int64s, argument: Callable[[str], Array]) -> Held:
    arguments = tuple(map(argument, partial.args))
    if partial.kind == "count" and not arguments[0].null_count:
        partial, arguments = Partial("count_rows", ()), ()
    return row_partials(lift(partial, arguments, times_us), times_us)


def aggregate(rows: Held, starts: Int64s, ends: Int64s, technique: str) -> Held:
    """Combine the rows of each range by the technique that the plan names."""
    if isinstance(rows, ObjectPartials):
        return slid_objects(rows, starts, ends)
    if isinstance(rows, KernelPartials) and rows.partials.kind == "count_rows":
        # Every row counts one: its prefix sum is its position.
        return KernelPartials(Partials("count_rows", COUNT, ends - starts), rows.codings)
    if isinstance(rows, KernelPartials | LimbSums):
        return rows.over_ranges(starts, ends, cast("RangeTechnique", technique))
    return rows.over_ranges(starts, ends)
