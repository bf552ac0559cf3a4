"""What closes when the watermark moves: every emit's new instances, lowered.

Windows that read the same slices for the same results are closed together where the slices are
few, as in a stream; over the many slices of a batch each window takes its own linear way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.output.closed import Closed
from weft.engines.local.output.tables import result_order
from weft.engines.local.partials.lower import counts_of, lower
from weft.engines.local.windows.flow import Flow, combines_of
from weft.engines.local.windows.instances import closing_by_shape
from weft.engines.local.windows.lateness import closes_between
from weft.engines.local.windows.timed_plan import Timed, TimedPlan, roll_over
from weft.errors import InternalError
from weft.kernels.parallel import over_parts
from weft.plan import Emit, Node, Roll
from weft.techniques import ONE_RANGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.values.keys import KeyCodes
    from weft.engines.local.windows.emit_groups import SameSlices
    from weft.engines.local.windows.event_windows import Rolls
    from weft.window import Window

Emitted = tuple[str, str]  # query and label
Types = dict[Emit, "tuple[pa.DataType, ...]"]
_EVER = -(2**63)
FEW_SLICES = 1 << 14


@dataclass(slots=True)
class Closing:
    """One move of the watermark over the slices kept and the windows that events delimit."""

    plan: TimedPlan
    kept: Mapping[Node, Flow]
    delimited: Mapping[Rolls, Flow]
    from_us: int | None
    to_us: int | None
    codes: KeyCodes
    complete_from_us: Mapping[Emitted, int] = field(default_factory=dict)
    made: dict[Node, Flow] = field(default_factory=dict)  # what stores have answered

    @property
    def streams(self) -> bool:
        """Whether this is a step of a stream, and not the whole of a batch."""
        return self.from_us is not None or self.to_us is not None

    def closed(self, emits: tuple[Emit, ...], types: Types) -> list[Closed]:
        """Return the instances that closed, of all emits."""
        arrangement = self.plan.arranged(emits)
        found = [self._timed(emit, place, types[emit]) for emit, place in arrangement.alone]
        for group in arrangement.together:
            if self._few(group):
                with self.plan.timed(*dict.fromkeys(emit.inputs[0] for emit in group.emits)):
                    found.append(self._together(group, types[group.emits[0]]))
            else:
                self._roll_all(group)  # unless a store has answered
                pairs = zip(group.emits, group.places.tolist(), strict=True)
                found += [self._timed(emit, place, types[emit]) for emit, place in pairs]
        return [one for one in found if one is not None]

    def _few(self, group: SameSlices) -> bool:
        """Tell whether there are slices for these windows, and so few that all close at once."""
        if not self._has_slices(group.roll) or not self._answers_several(group.roll):
            return False
        return len(self.plan.flow(group.roll.feeder, self.kept, self.made)) <= FEW_SLICES

    def _answers_several(self, roll: Roll) -> bool:
        """Tell whether ranges inside each other can be asked at once; stores have answered."""
        return roll.technique not in ONE_RANGE and not self._is_stored(roll)

    def _is_stored(self, roll: Roll) -> bool:
        return self.streams and roll in self.plan.in_stores

    def _roll_all(self, group: SameSlices) -> None:
        """Roll the windows of a group side by side: over many slices that takes its time."""
        if not self._has_slices(group.roll) or self._is_stored(group.roll):
            return
        slices = self.plan.flow(group.roll.feeder, self.kept, self.made)
        rolls = dict.fromkeys(emit.inputs[0] for emit in group.emits)
        asked = [roll for roll in rolls if isinstance(roll, Roll) and roll not in self.made]
        with self.plan.timed(*asked):
            rolled = over_parts(lambda roll: roll_over(roll, slices), asked, len(slices))
        for roll, flow in zip(asked, rolled, strict=True):
            self.plan.keep(roll, flow, self.made)

    def _together(self, group: SameSlices, types: tuple[pa.DataType, ...]) -> Closed | None:
        flow = self.plan.flow(group.roll.feeder, self.kept, self.made)
        found = closing_by_shape(group.shapes, flow, self.from_us, self.to_us)
        if self.complete_from_us:
            least = [self.complete_from_us.get((e.query, e.label), _EVER) for e in group.emits]
            found = found.take(found.starts_us >= np.array(least)[found.windows])
        if not found.starts.size:
            return None
        technique, emit = group.roll.technique, group.emits[0]
        self.plan.combines += combines_of(found.starts, found.ends, technique)
        if emit.exists is not None:
            counts = flow.partials[emit.exists].over_ranges(found.starts, found.ends, technique)
            found = found.take(counts_of(counts) > 0)
            if not found.starts.size:
                return None
        keys, places = flow.keys[found.starts], group.places[found.windows]
        ends_us = found.starts_us + group.ranges_us[found.windows]
        # Ranges are put in order rather than results: numbers are, and results may be texts.
        order = result_order(ends_us, places, found.starts_us, self.codes.ranks()[keys])
        starts, ends = found.starts[order], found.ends[order]
        partials = {
            p: flow.partials[p].over_ranges(starts, ends, technique) for p in group.roll.partials
        }
        values = lowered(emit.outputs, partials, types)
        return Closed(
            emit.query,
            places[order],
            keys[order],
            found.starts_us[order],
            ends_us[order],
            values,
            ordered=True,
        )

    def _timed(self, emit: Emit, place: int, types: tuple[pa.DataType, ...]) -> Closed | None:
        with self.plan.timed(emit):
            return self._alone(emit, place, types)

    def _alone(self, emit: Emit, place: int, types: tuple[pa.DataType, ...]) -> Closed | None:
        roll = emit.inputs[0]
        if not isinstance(roll, Roll):
            raise InternalError("a join reached the local engine")
        flow = self._rolled(emit, roll.window)
        if flow is not None and emit.exists is not None:
            # Rows without an event of the query are of other queries alone, as their partials are.
            some = np.flatnonzero(counts_of(flow.partials[emit.exists]) > 0)
            flow = flow.only({p for _, call in emit.outputs for p in call.partials}).take(some)
        if flow is None or not len(flow):
            return None
        assert flow.ends_us is not None
        values = lowered(emit.outputs, flow.partials, types)
        places = np.full(len(flow), place)
        return Closed(emit.query, places, flow.keys, flow.starts_us, flow.ends_us, values)

    def _rolled(self, emit: Emit, window: Window) -> Flow | None:
        rolls = tuple(roll for roll in emit.inputs if isinstance(roll, Roll))
        least = self.complete_from_us.get((emit.query, emit.label))
        if not isinstance(window, Timed):
            found = self.delimited.get(rolls)
            return found if found is None else _from(found, least)
        if not closes_between(window, self.from_us, self.to_us):
            return None
        if not all(map(self._has_slices, rolls)):
            return None
        # Each by itself: feeders may still hold slices of instances that closed before.
        flows = [self._newly(self.plan.flow(roll, self.kept, self.made)) for roll in rolls]
        flows = [_from(flow, least) for flow in flows]
        partials: dict[Partial, Held] = {}
        for flow in flows:
            partials.update(flow.partials)
        first = flows[0]
        return Flow(first.keys, first.starts_us, first.ends_us, partials)

    def _has_slices(self, roll: Roll) -> bool:
        """Tell whether events came since the slices below a Roll are kept; before, none closes."""
        return all(node in self.kept for node in self.plan.below[roll])

    def _newly(self, flow: Flow) -> Flow:
        """Keep the instances that end in what the watermark passes now."""
        ends = flow.ends_us
        assert ends is not None
        if self.from_us is None and self.to_us is None:
            return flow
        inside = np.ones(ends.size, np.bool_) if self.to_us is None else ends <= self.to_us
        if self.from_us is not None:
            inside &= ends > self.from_us
        return flow.take(np.flatnonzero(inside))


def _from(flow: Flow, least_us: int | None) -> Flow:
    """Leave out the instances that begin before all their events are known."""
    if least_us is None:
        return flow
    return flow.take(np.flatnonzero(flow.starts_us >= least_us))


def lowered(
    outputs: Sequence[tuple[str, AggregateCall]],
    partials: Mapping[Partial, Held],
    types: tuple[pa.DataType, ...],
) -> tuple[Array, ...]:
    """Lower every output of an emit."""
    pairs = zip(outputs, types, strict=True)
    return tuple(lower(call, partials, type) for (_, call), type in pairs)
