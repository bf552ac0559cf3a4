"""From slices or feeders to windows: each way a Roll reads its input, over sorted rows.

The plan's feeders, picks and stairs are followed, and instances that overlap are put together by
the technique that the Roll names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

import numpy as np

from weft.engines.local.partials.columns import concat
from weft.engines.local.windows.flow import Flow, runs_of_equals
from weft.engines.local.windows.instances import closing_instances
from weft.errors import InternalError
from weft.kernels.grouping.slices import window_ranges
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import Partial
    from weft.engines.local.values.calendar import CalendarTable
    from weft.kernels.grouping.slices import Slices
    from weft.window import TimedWindow


def coarser(flow: Flow, slices: Slices, wanted: Sequence[Partial]) -> Flow:
    """Combine slices into coarser ones."""
    ordinals = slices.slice_of(flow.starts_us)
    starts, ends = runs_of_equals(flow.keys, ordinals)
    starts_us = slices.bounds(ordinals[starts])[0]
    return flow.over_ranges(starts, ends, starts_us, None, wanted)


def roll_slices(
    flow: Flow,
    window: TimedWindow,
    calendar: CalendarTable | None,
    wanted: Sequence[Partial],
    technique: str | None = None,
) -> Flow:
    """Combine slices into the instances of a window that have any."""
    match window:
        case PeriodicWindow():
            found = closing_instances([window], flow, None, None)
            ends_us = found.starts_us + window.range_us
            bounds = (found.starts, found.ends, found.starts_us, ends_us)
            return flow.over_ranges(*bounds, wanted, technique)
        case CumulatingWindow():
            return _roll_cumulating(flow, window, wanted, technique)
        case CalendarWindow():
            assert calendar is not None
            starts_us, ends_us = calendar.around(flow.starts_us)
            starts, ends = runs_of_equals(flow.keys, starts_us)
            return flow.over_ranges(starts, ends, starts_us[starts], ends_us[starts], wanted)
        case _:
            assert_never(window)


def _roll_cumulating(
    flow: Flow, window: CumulatingWindow, wanted: Sequence[Partial], technique: str | None
) -> Flow:
    parts = window.parts()
    found = [window_ranges(part, flow.keys, flow.starts_us) for part in parts]
    starts_us, starts, ends = (
        np.concatenate([ranges[column] for ranges in found]) for column in range(3)
    )
    ends_us = starts_us + np.repeat(
        [part.range_us for part in parts], [ranges.starts.size for ranges in found]
    )
    # In this order neither bound goes back, which is the cheap way to aggregate ranges.
    order = np.lexsort((ends_us, starts_us, flow.keys[starts]))
    bounds = (starts[order], ends[order], starts_us[order], ends_us[order])
    return flow.over_ranges(*bounds, wanted, technique)


def roll_windows(
    flow: Flow,
    inner: PeriodicWindow,
    outer: PeriodicWindow,
    wanted: Sequence[Partial],
    technique: str | None,
) -> Flow:
    """Combine the instances of a feeder: picked, side by side, or all that overlap."""
    count, distance = outer.reads(inner)
    if inner.range_us == outer.range_us:
        return pick(flow, outer, wanted)
    # A partial that is one of those it combines may be read twice: no search for neighbours.
    if distance == inner.slide_us or all(p.laws().selective for p in wanted):
        # A feeder's instance is inside if it starts early enough.
        reach = PeriodicWindow(outer.range_us - inner.range_us + 1, outer.slide_us, outer.offset_us)
        found = window_ranges(reach, flow.keys, flow.starts_us)
        starts_us = found.window_starts_us
        ends_us = starts_us + outer.range_us
        return flow.over_ranges(found.starts, found.ends, starts_us, ends_us, wanted, technique)
    return _roll_every_nth(flow, inner, outer, count, wanted, technique)


def pick(flow: Flow, outer: PeriodicWindow, wanted: Sequence[Partial]) -> Flow:
    """Keep the feeder's instances that are instances of the window."""
    kept = np.flatnonzero((flow.starts_us - outer.offset_us) % outer.slide_us == 0)
    picked = flow.take(kept)
    return Flow(
        picked.keys, picked.starts_us, picked.ends_us, {p: picked.partials[p] for p in wanted}
    )


def _roll_every_nth(
    flow: Flow,
    inner: PeriodicWindow,
    outer: PeriodicWindow,
    count: int,
    wanted: Sequence[Partial],
    technique: str | None,
) -> Flow:
    """Read every n-th instance of an overlapping feeder: those that lie side by side."""
    apart = inner.range_us // inner.slide_us
    phases = (flow.starts_us - inner.offset_us) // inner.slide_us % apart
    order = np.lexsort((flow.starts_us, phases, flow.keys))
    lanes, phases = flow.take(order), phases[order]
    lane_keys = lanes.keys.astype(np.int64) * apart + phases
    # A lane has the begins of its own instances alone: the search asks for no begin of another,
    # of which there may be thousands for each of its own.
    begins_us = inner.offset_us + phases * inner.slide_us
    reach = PeriodicWindow((count - 1) * inner.range_us + 1, inner.range_us)
    found = window_ranges(reach, lane_keys, lanes.starts_us - begins_us)
    all_starts_us = found.window_starts_us + begins_us[found.starts]
    kept = np.flatnonzero((all_starts_us - outer.offset_us) % outer.slide_us == 0)
    starts, ends, starts_us = found.starts[kept], found.ends[kept], all_starts_us[kept]
    ends_us = starts_us + outer.range_us
    rolled = lanes.over_ranges(starts, ends, starts_us, ends_us, wanted, technique)
    return rolled.take(np.lexsort((rolled.starts_us, rolled.keys)))


def roll_stair(
    inner: Flow,
    slices: Flow,
    inner_window: PeriodicWindow,
    outer: PeriodicWindow,
    wanted: Sequence[Partial],
    technique: str | None,
) -> Flow:
    """Put the slices before an enclosed window and that window's own result together."""
    lead = PeriodicWindow(outer.range_us - inner_window.range_us, outer.slide_us, outer.offset_us)
    found = window_ranges(lead, slices.keys, slices.starts_us)
    lead_us = found.window_starts_us
    steps = slices.over_ranges(found.starts, found.ends, lead_us, None, wanted, technique)
    if inner.ends_us is None:
        raise InternalError("a stair over slices that are no window")
    starts_us = inner.ends_us - outer.range_us
    kept = np.flatnonzero((starts_us - outer.offset_us) % outer.slide_us == 0)
    enclosed = inner.take(kept)
    keys = np.concatenate([steps.keys, enclosed.keys])
    starts_us = np.concatenate([steps.starts_us, starts_us[kept]])
    order = np.lexsort((starts_us, keys))  # stable: the slices before the window they lead to
    partials = {p: concat([steps.partials[p], enclosed.partials[p]]) for p in wanted}
    both = Flow(keys, starts_us, None, partials).take(order)
    starts, ends = runs_of_equals(both.keys, both.starts_us)
    begins = both.starts_us[starts]
    rolled = both.over_ranges(starts, ends, begins, begins + outer.range_us, wanted)
    return replace(rolled, combined=rolled.combined + steps.combined)
