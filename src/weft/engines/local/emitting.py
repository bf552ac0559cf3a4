"""What closes when the watermark moves: every emit's new instances, lowered.

Windows that read the same slices for the same results are closed together where the slices are
few, as in a stream; over the many slices of a batch each window takes its own linear way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.closing import closing_instances
from weft.engines.local.flows import Flow
from weft.engines.local.lateness import closes_between
from weft.engines.local.lowering import lower
from weft.engines.local.results import Closed
from weft.engines.local.scope import Timed, TimedPlan
from weft.errors import InternalError
from weft.plan import Emit, Node, Roll, Slice
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.local.arrow import Array
    from weft.engines.local.held import Held
    from weft.window import Window

Types = dict[Emit, "tuple[pa.DataType, ...]"]
FEW_SLICES = 1 << 14


@dataclass(slots=True)
class Closing:
    """One move of the watermark over the slices kept and the windows that events delimit."""

    plan: TimedPlan
    kept: Mapping[Node, Flow]
    delimited: Mapping[Window, Flow | None]
    from_us: int | None
    to_us: int | None
    made: dict[Node, Flow] = field(default_factory=dict)

    def closed(self, emits: Sequence[Emit], types: Types) -> list[Closed]:
        """Return the instances that closed, of all emits."""
        places: dict[str, int] = {}
        alone: list[tuple[Emit, int]] = []
        together: dict[tuple[object, ...], list[tuple[Emit, int]]] = {}
        for emit in emits:
            place = places[emit.query] = places.get(emit.query, -1) + 1
            base = self._shared(emit)
            if base is None:
                alone.append((emit, place))
            else:
                together.setdefault((base, emit.query, emit.outputs), []).append((emit, place))
        found = [self._alone(emit, place, types[emit]) for emit, place in alone]
        found += [self._together(group, types[group[0][0]]) for group in together.values()]
        return [one for one in found if one is not None]

    def _shared(self, emit: Emit) -> Slice | None:
        """Return the few slices that an emit's one periodic Roll reads, if that is what it does."""
        roll = emit.inputs[0]
        if len(emit.inputs) > 1 or not isinstance(roll, Roll) or not self.kept:
            return None
        base = roll.feeder
        if not isinstance(base, Slice) or not isinstance(roll.window, PeriodicWindow):
            return None
        return base if len(self.plan.flow(base, self.kept, self.made)) <= FEW_SLICES else None

    def _together(
        self, group: list[tuple[Emit, int]], types: tuple[pa.DataType, ...]
    ) -> Closed | None:
        rolls = [emit.inputs[0] for emit, _ in group if isinstance(emit.inputs[0], Roll)]
        flow = self.plan.flow(rolls[0].feeder, self.kept, self.made)
        periodic = [roll.window for roll in rolls if isinstance(roll.window, PeriodicWindow)]
        found = closing_instances(periodic, flow, self.from_us, self.to_us)
        if not found.starts.size:
            return None
        emit, _ = group[0]
        roll = emit.inputs[0]
        partials = {
            p: flow.partials[p].over_ranges(found.starts, found.ends) for p in roll.partials
        }
        self.plan.combines += int((found.ends - found.starts).sum())
        ranges_us = np.array([window.range_us for window in periodic])
        ends_us = found.starts_us + ranges_us[found.windows]
        places = np.array([place for _, place in group])[found.windows]
        values = lowered(emit.outputs, partials, types)
        keys = flow.keys[found.starts]
        return Closed(emit.query, places, keys, found.starts_us, ends_us, values)

    def _alone(self, emit: Emit, place: int, types: tuple[pa.DataType, ...]) -> Closed | None:
        roll = emit.inputs[0]
        if not isinstance(roll, Roll):
            raise InternalError("a join reached the local engine")
        flow = self._rolled(emit, roll.window)
        if flow is None or not len(flow):
            return None
        assert flow.ends_us is not None
        values = lowered(emit.outputs, flow.partials, types)
        places = np.full(len(flow), place)
        return Closed(emit.query, places, flow.keys, flow.starts_us, flow.ends_us, values)

    def _rolled(self, emit: Emit, window: Window) -> Flow | None:
        if not isinstance(window, Timed):
            return self.delimited[window]
        if not self.kept or not closes_between(window, self.from_us, self.to_us):
            return None
        # Each by itself: feeders may still hold slices of instances that closed before.
        flows = [self._newly(self.plan.flow(roll, self.kept, self.made)) for roll in emit.inputs]
        partials: dict[Partial, Held] = {}
        for flow in flows:
            partials.update(flow.partials)
        first = flows[0]
        return Flow(first.keys, first.starts_us, first.ends_us, partials)

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


def lowered(
    outputs: Sequence[tuple[str, AggregateCall]],
    partials: Mapping[Partial, Held],
    types: tuple[pa.DataType, ...],
) -> tuple[Array, ...]:
    """Lower every output of an emit."""
    pairs = zip(outputs, types, strict=True)
    return tuple(lower(call, partials, type) for (_, call), type in pairs)
