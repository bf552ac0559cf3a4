"""What a join costs on Spark, where rows are matched before they are fanned out to instants.

With one window that moves, a row of it meets landmarks and tables once, whatever the slide. What
matches is collapsed to (group, slice), and only that is copied to every instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from weft.cost.edges import edge_rate
from weft.cost.join_instants import Classes, InstantCost, edges_of
from weft.cost.occupancy import occupancy
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from weft.cost.joins import Placement

_SECOND_US = 1e6


@dataclass(frozen=True, slots=True)
class SpanCost(InstantCost):
    """Prices placements as Spark runs them: spans of one window, instants of several.

    >>> from weft.cost.joins import SideLoad
    >>> from weft.cost.model import coefficients_of
    >>> from weft.plan.joins import Instants
    >>> hour = Instants((PeriodicWindow(3_600_000_000, 60_000_000), None))
    >>> bids, auctions = SideLoad(300, 1_080_000, 1, 1000), SideLoad(0, 1000, 5, 1000)
    >>> spark = SpanCost((bids, auctions), hour, (2, 1), coefficients_of("spark"))
    >>> spark.cost((True, False)) < spark.cost((False, False))
    True
    """

    def cost(self, early: Placement) -> float:
        """Price a placement, per second of stream."""
        windows = self.instants.windows
        moving = [s for s, window in enumerate(windows) if isinstance(window, PeriodicWindow)]
        if len(moving) > 1:
            return InstantCost.cost(
                self, early
            )  # a class with slots is made twice, super() is lost
        c, (first,) = self.coefficients, moving
        classes = edges_of(windows[first])
        width = sum(self.widths)
        reading = sum(self._reading(side, e) for side, e in enumerate(early))
        rows = self._rows(first, early[first], classes)
        probing = 0.0
        for side in range(len(windows)):
            if side != first:
                probing += rows * c.read_partial_ns
                rows *= self._partners(side, early[side])
        collapsing = rows * (c.fold_event_ns + c.lift_ns * width)
        slices = edge_rate(classes) * _SECOND_US
        groups = occupancy(prod(load.groups for load in self.loads), rows / slices)
        kept = slices * groups * (c.write_partial_ns + c.shuffle_row_ns)
        return reading + probing + collapsing + kept + self._fanning(first, classes, groups)

    def composing(self, side: int, classes: Classes) -> float:
        """Price of matching the slices of an input, and collapsing what matches."""
        if len(self.instants.periodic) > 1:
            return InstantCost.composing(self, side, classes)
        c = self.coefficients
        probes = (len(self.loads) - 1) * c.read_partial_ns
        return self._rows(side, True, classes) * (probes + c.fold_event_ns + c.lift_ns)

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
        return slices * occupancy(load.pairs, slice_tuples) / values

    def _fanning(self, first: int, classes: Classes, groups: float) -> float:
        """Copy what was collapsed to its instants, combine it there, and put out results."""
        c, window = self.coefficients, self.instants.windows[first]
        assert isinstance(window, PeriodicWindow)
        copies = max(window.range_us * edge_rate(classes), 1.0) * groups
        combining = copies * (c.read_partial_ns + c.combine_ns * sum(self.widths))
        results = groups * (c.write_partial_ns + c.emit_row_ns)
        return (combining + results) * self.instants_per_second + 2 * c.operator_ns

    def _slices(self, side: int, classes: Classes) -> tuple[float, float]:
        """Return how many slices an input has, and how many tuples a slice.

        A landmark has one for each instant, since its tuples count from different instants on.
        """
        load, window = self.loads[side], self.instants.windows[side]
        if window is None or isinstance(window, PeriodicWindow):
            return InstantCost._slices(self, side, classes)
        slice_tuples = max(load.rate / self.instants_per_second, 1.0)
        return max(load.window_tuples / slice_tuples, 1.0), slice_tuples
