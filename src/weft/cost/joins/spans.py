"""What a join costs on Spark, where rows are matched before they are fanned out to instants.

With one window that moves, a row of it meets landmarks and tables once, whatever the slide. What
matches is collapsed to (group, slice), and only that is copied to every instant. Windows that move
meet at instants, so rows of both are copied first, and early ones are moved and combined there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weft.cost.edges.rates import edge_rate
from weft.cost.joins.instants import Classes, InstantCost, edges_of
from weft.cost.joins.tuples import ExpectedEstimates
from weft.cost.occupancy import occupancy
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from weft.cost.joins.tuples import Placement

_SECOND_US = 1e6


@dataclass(frozen=True, slots=True)
class SpanCost(InstantCost):
    """Prices placements as Spark runs them: spans of one window, instants of several.

    >>> from weft.cost.joins.tuples import SideLoad
    >>> from weft.cost.prices import coefficients_of
    >>> from weft.plan.joins import Instants
    >>> hour = Instants((PeriodicWindow(3_600_000_000, 60_000_000), None))
    >>> bids, auctions = SideLoad(300, 1_080_000, 1, 1000), SideLoad(0, 1000, 5, 1000)
    >>> spark = SpanCost((bids, auctions), hour, (2, 1), coefficients_of("spark-joins"))
    >>> spark.cost((True, False)) < spark.cost((False, False))
    True
    """

    def cost(self, early: Placement) -> float:
        """Price a placement, per second of stream."""
        reading = sum(self._reading(side, e) for side, e in enumerate(early))
        if len(self.instants.periodic) > 1:
            return reading + self._meeting(early)
        windows, c = self.instants.windows, self.coefficients
        (first,) = (s for s, w in enumerate(windows) if isinstance(w, PeriodicWindow))
        classes = edges_of(windows[first])
        rows = self._rows(first, early[first], classes)
        probing = 0.0
        for side in range(len(windows)):
            if side != first:
                probing += rows * c.read_partial_ns
                rows *= self._partners(side, early[side])
        collapsing = rows * (c.fold_event_ns + c.lift_ns * sum(self.widths))
        slices = edge_rate(classes) * _SECOND_US
        groups = occupancy(prod(load.groups for load in self.loads), rows / slices)
        kept = slices * groups * (c.write_partial_ns + c.shuffle_row_ns)
        return reading + probing + collapsing + kept + self._fanning(first, classes, groups)

    def composing(self, side: int, classes: Classes) -> float:
        """Price of bringing the slices of an input to where they are matched, and matching them.

        Where several windows move, slices are copied to their instants and combined there; the
        copies of a window lie in all partitions, so they are moved before they are combined.
        """
        c = self.coefficients
        rows = self._rows(side, True, classes)
        if len(self.instants.periodic) == 1:
            probes = (len(self.loads) - 1) * c.read_partial_ns
            return rows * (probes + c.fold_event_ns + c.lift_ns)
        combined = c.read_partial_ns + c.fold_event_ns + c.combine_ns * self.widths[side]
        copies = rows * self._copies(side) * (combined + c.shuffle_row_ns)
        return copies + self._rows_at_instants(side, True) * c.write_partial_ns

    def _meeting(self, early: Placement) -> float:
        """Match rows at instants, those of early inputs combined there, and aggregate matches."""
        c, sides = self.coefficients, range(len(early))
        classes = [edges_of(window) for window in self.instants.windows]
        composing = sum(self.composing(side, classes[side]) for side in sides if early[side])
        rows = [self._rows_at_instants(side, early[side]) for side in sides]
        copying = sum(rows[side] * c.read_partial_ns for side in sides if not early[side])
        moving = sum(rows) * (c.shuffle_row_ns + c.read_partial_ns)
        return composing + copying + moving + self._matching(early)

    def _matching(self, early: Placement) -> float:
        c, estimates = self.coefficients, ExpectedEstimates(self.loads)
        values = max(load.join_values for load in self.loads)
        matched = values * prod(estimates.matches(side, e) for side, e in enumerate(early))
        groups = occupancy(prod(load.groups for load in self.loads), matched)
        per_instant = matched * (c.read_partial_ns + c.combine_ns * sum(self.widths))
        per_instant += groups * (c.write_partial_ns + c.emit_row_ns)
        return per_instant * self.instants_per_second + 2 * c.turn_ns

    def _copies(self, side: int) -> float:
        """Instants at which a row of a window that moves counts; others are not copied."""
        window = self.instants.windows[side]
        if not isinstance(window, PeriodicWindow):
            return 1.0
        return max(window.range_us / _SECOND_US * self.instants_per_second, 1.0)

    def _rows_at_instants(self, side: int, early: bool) -> float:
        """Rows per second that an input brings to the join."""
        load = self.loads[side]
        if not early or not isinstance(self.instants.windows[side], PeriodicWindow):
            return load.rate * self._copies(side)
        held = occupancy(load.groups * load.join_values, load.window_tuples)
        return min(held * self.instants_per_second, load.rate * self._copies(side))

    def _reading(self, side: int, early: bool) -> float:
        """Read an input, and aggregate it where it is early."""
        if not early:
            return self.loads[side].rate * self.coefficients.scan_event_ns
        return self.slicing(side, edges_of(self.instants.windows[side]), self.widths[side])

    def _rows(self, side: int, early: bool, classes: Classes) -> float:
        """Rows per second of an input that are matched."""
        load = self.loads[side]
        if not early:
            return load.rate
        _, slice_tuples = self._slices(side, classes)
        return load.rate / slice_tuples * occupancy(load.pairs, slice_tuples)

    def _partners(self, side: int, early: bool) -> float:
        """Rows of an input that stands still which match one row."""
        load = self.loads[side]
        values = max(other.join_values for other in self.loads)
        if not early:
            return load.window_tuples / values
        slices, slice_tuples = self._slices(side, ())
        held = slices * occupancy(load.pairs, slice_tuples)
        # Each join value that there is has a row, so that ids of a table do not become fewer.
        return max(held, min(load.join_values, load.window_tuples)) / values

    def _fanning(self, first: int, classes: Classes, groups: float) -> float:
        """Copy what was collapsed to its instants, combine it there, and put out results."""
        c, window = self.coefficients, self.instants.windows[first]
        assert isinstance(window, PeriodicWindow)
        copies = max(window.range_us * edge_rate(classes), 1.0) * groups
        combining = copies * (c.read_partial_ns + c.combine_ns * sum(self.widths))
        results = groups * (c.write_partial_ns + c.emit_row_ns)
        return (combining + results) * self.instants_per_second + 2 * c.turn_ns

    def _slices(self, side: int, classes: Classes) -> tuple[float, float]:
        """Return how many slices an input has, and how many tuples a slice.

        A landmark has one for each instant, since its tuples count from different instants on.
        """
        load, window = self.loads[side], self.instants.windows[side]
        if window is None or isinstance(window, PeriodicWindow):
            return InstantCost._slices(self, side, classes)
        slice_tuples = max(load.rate / self.instants_per_second, 1.0)
        return max(load.window_tuples / slice_tuples, 1.0), slice_tuples
