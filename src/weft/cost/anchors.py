"""What windows at anchors cost: nanoseconds by technique, for numbers of events and of anchors."""

from __future__ import annotations

from dataclasses import dataclass

from weft.plan.anchors import PREFIX_SUMS, SLIDING_COUNTS, SLIDING_RANGES, TWO_STACKS


@dataclass(frozen=True, slots=True)
class TrailCost:
    """What one technique takes for one window, per event and per anchor."""

    event_ns: float
    anchor_ns: float


# Measured by `weft bench rolling/techniques` over a million events, each an anchor too, on two
# cores of 2026; what all techniques have in common, the sort above all, is left out.
TRAIL_COSTS = {
    PREFIX_SUMS: TrailCost(3.0, 5.0),
    SLIDING_RANGES: TrailCost(5.0, 6.0),
    SLIDING_COUNTS: TrailCost(75.0, 75.0),
    TWO_STACKS: TrailCost(1400.0, 1400.0),
}


def trail_ns(technique: str, events: float, anchors: float) -> float:
    """Return the expected time of one partial over one window.

    >>> trail_ns("prefix_sums", 1e6, 1e4) < trail_ns("sliding_ranges", 1e6, 1e4)
    True
    """
    cost = TRAIL_COSTS[technique]
    return cost.event_ns * events + cost.anchor_ns * anchors
