"""What a join costs that is evaluated at instants, in nanoseconds of an engine's own operations.

Batch engines, sessions and Spark do not touch the result at every tuple: at each slide they bring
every input to its window, aggregated early or tuple by tuple, match the windows, and aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weft.cost.edges.rates import edge_rate
from weft.cost.joins.tuples import ExpectedEstimates, Placement, SideLoad
from weft.cost.occupancy import occupancy
from weft.plan.joins import end_class
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from weft.cost.prices import Coefficients
    from weft.plan.joins import Instants

_SECOND_US = 1e6
Classes = tuple[tuple[int, int], ...]  # (residue, modulus) of edges


def edges_of(*windows: object) -> Classes:
    """Return the classes of edges, begins and ends, that windows need together."""
    periodic = [w for w in windows if isinstance(w, PeriodicWindow)]
    found = [c for w in periodic for c in ((w.offset_us, w.slide_us), end_class(w))]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class InstantCost:
    """Prices placements of early aggregation for a join that is evaluated at every slide."""

    loads: tuple[SideLoad, ...]
    instants: Instants
    widths: tuple[int, ...]  # partials that each input carries
    coefficients: Coefficients

    @property
    def instants_per_second(self) -> float:
        """How often the join is evaluated."""
        return edge_rate(self.instants.classes) * _SECOND_US

    def cost(self, early: Placement) -> float:
        """Price a placement, per second of stream."""
        sides = sum(self._side(side, early[side]) for side in range(len(self.loads)))
        return sides + self._joining(early)

    def _side(self, side: int, early: bool) -> float:
        """Bring an input to its windows."""
        c, load = self.coefficients, self.loads[side]
        if not early:
            # Every tuple becomes a row of every window that it is in.
            rows = load.window_tuples * self.instants_per_second
            moved = c.write_partial_ns + c.shuffle_row_ns
            return load.rate * c.scan_event_ns + rows * moved
        classes = edges_of(self.instants.windows[side])
        width = self.widths[side]
        return self.slicing(side, classes, width) + self.composing(side, classes)

    def slicing(self, side: int, classes: Classes, width: int) -> float:
        """Price of aggregating an input by (group, join value, slice), with edges of classes."""
        c, load = self.coefficients, self.loads[side]
        _, slice_tuples = self._slices(side, classes)
        events = load.rate * (c.scan_event_ns + c.fold_event_ns + c.lift_ns * width)
        moved = load.rate / max(slice_tuples, 1.0) * occupancy(load.pairs, slice_tuples)
        return events + moved * (c.write_partial_ns + c.shuffle_row_ns) + c.turn_ns

    def composing(self, side: int, classes: Classes) -> float:
        """Price of combining the slices of an input to its windows, at every instant."""
        c, load, width = self.coefficients, self.loads[side], self.widths[side]
        slices, slice_tuples = self._slices(side, classes)
        pairs = load.groups * load.join_values
        held = slices * occupancy(load.pairs, slice_tuples)
        rows = occupancy(pairs, load.window_tuples)
        per_instant = held * (c.read_partial_ns + c.combine_ns * width) + rows * c.write_partial_ns
        return per_instant * self.instants_per_second

    def _slices(self, side: int, classes: Classes) -> tuple[float, float]:
        """Return how many slices a window has, and how many tuples a slice."""
        load, window = self.loads[side], self.instants.windows[side]
        if not isinstance(window, PeriodicWindow):
            return 1.0, load.window_tuples
        count = max(window.range_us * edge_rate(classes), 1.0)
        return count, load.window_tuples / count

    def _joining(self, early: Placement) -> float:
        """Match the windows of all inputs and aggregate what matches, at every instant."""
        c = self.coefficients
        estimates = ExpectedEstimates(self.loads)
        rows = [estimates.rows(side, e) for side, e in enumerate(early)]
        values = max(load.join_values for load in self.loads)
        matched = values * prod(estimates.matches(side, e) for side, e in enumerate(early))
        width = sum(self.widths)
        groups = occupancy(prod(load.groups for load in self.loads), matched)
        per_instant = (
            sum(rows) * c.read_partial_ns
            + matched * (c.read_partial_ns + c.combine_ns * width)
            + groups * (c.write_partial_ns + c.emit_row_ns)
        )
        return per_instant * self.instants_per_second + c.turn_ns
