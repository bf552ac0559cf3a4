"""The nodes of plans of windows at anchors, and the techniques that run them.

    Points    the anchors: rows of a table, each with a time; their columns go through unchanged
    Scan      the events of a source, filtered, as in every plan
    Trail     events and points to one partial per point, over a window that ends at the point
    Features  the points' columns, then a column per aggregate and window: a wide Emit

All trails of a key are one chain: they end together, so events are sorted once for any number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.aggregates.base import is_built_in
from weft.plan.nodes import Scan

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall, Laws, Partial
    from weft.query import Keys
    from weft.window.trailing import AnchoredWindow

# The ways to aggregate windows that end at sorted anchors, and the law that each needs.
PREFIX_SUMS = "prefix_sums"  # two pointers, and the difference of two prefixes
SLIDING_RANGES = "sliding_ranges"  # two stacks over positions
SLIDING_COUNTS = "sliding_counts"  # a multiset that events enter and leave
TWO_STACKS = "two_stacks"  # of partials that are Python objects
TRAIL_TECHNIQUES: dict[str, tuple[str, ...]] = {
    PREFIX_SUMS: ("invertible",),
    SLIDING_RANGES: ("associative",),
    SLIDING_COUNTS: ("commutative",),
    TWO_STACKS: ("associative",),
}
# Partials that are multisets of items: distinct values, all values, and the cells of sketches.
MULTISETS = frozenset({"distinct", "values", "quantiles", "hll", "bag", "set", "tally"})


@dataclass(frozen=True, slots=True)
class Points:
    """Read the anchors; in a rolling plan they are the events themselves."""

    source: str
    at: str
    rolling: bool = False

    @property
    def inputs(self) -> tuple[AnchorNode, ...]:
        """Nothing feeds the points."""
        return ()


@dataclass(frozen=True, slots=True)
class Trail:
    """Bring events to one partial per point, over the window that ends at the point.

    A key is a column of the points and the expression over the events that equals it.
    """

    events: Scan
    points: Points
    window: AnchoredWindow
    keys: Keys
    partials: tuple[Partial, ...]
    techniques: tuple[str, ...]  # one per partial

    @property
    def inputs(self) -> tuple[AnchorNode, ...]:
        """The events, and the anchors."""
        return self.events, self.points


@dataclass(frozen=True, slots=True)
class Features:
    """Hand over the points' own columns, then one column per output.

    An output is the name of its column, the window's place among `trails`, and the aggregate.
    """

    trails: tuple[Trail, ...]
    outputs: tuple[tuple[str, int, AggregateCall], ...]

    @property
    def inputs(self) -> tuple[AnchorNode, ...]:
        """The trails."""
        return self.trails


AnchorNode = Points | Scan | Trail | Features


def technique_of_kind(partial: Partial) -> str | None:
    """Name the one technique of partials that are no numbers; None for all others.

    >>> from weft.aggregates import Partial
    >>> technique_of_kind(Partial("distinct", ("x",))), technique_of_kind(Partial("min", ("x",)))
    ('sliding_counts', None)
    """
    if partial.kind in MULTISETS:
        return SLIDING_COUNTS
    return None if is_built_in(partial.kind) else TWO_STACKS


def legal_techniques(partial: Partial, laws: Laws) -> tuple[str, ...]:
    """Name the techniques that may run a partial under the laws of its input.

    >>> from weft.aggregates import Partial
    >>> legal_techniques(Partial("sum", ("x",)), Partial("sum", ("x",)).laws(exact=True))
    ('prefix_sums', 'sliding_ranges')
    >>> legal_techniques(Partial("min", ("x",)), Partial("min", ("x",)).laws())
    ('sliding_ranges',)
    """
    only = technique_of_kind(partial)
    if only is not None:
        return (only,)
    numeric = (PREFIX_SUMS, SLIDING_RANGES)
    return tuple(t for t in numeric if not laws.missing(TRAIL_TECHNIQUES[t]))
