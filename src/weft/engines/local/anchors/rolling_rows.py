"""What rows of a stream are to rolling windows: their columns, and how long they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.engines.features import feature_schema
from weft.engines.local.anchors.order import LEAST
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall, Partial
    from weft.plan.anchors import FeaturePlan, Trail

TIME, EVENT = "time", "event"


@dataclass(frozen=True)
class RollingRows:
    """The rows of a stream by the names of their columns, and what is asked of them.

    Rows have a `time` in microseconds and, where a filter was asked, a flag `event`.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    payload: tuple[str, ...]  # what is handed out beside the features
    trails: tuple[Trail, ...]
    outputs: tuple[tuple[str, int, AggregateCall], ...]  # name, place of the trail, call
    types: tuple[pa.DataType, ...]
    ties: tuple[str, ...]  # columns that order rows of one instant; none where no window cuts there

    @staticmethod
    def of_columns(plan: FeaturePlan, schema: pa.Schema, ties: tuple[str, ...] = ()) -> RollingRows:
        """Describe rows whose keys and arguments are columns, all of which are handed out."""
        return RollingRows(
            schema,
            tuple(name for name, _ in plan.trails[0].keys),
            tuple(schema.names),
            plan.trails,
            plan.features.outputs,
            tuple(feature_schema(plan, {plan.points.source: schema}).types),
            ties,
        )

    @cached_property
    def output(self) -> pa.Schema:
        """The columns of rows that are handed out."""
        own = [pa.field(name, self.schema.field(name).type) for name in self.payload]
        pairs = zip(self.outputs, self.types, strict=True)
        return pa.schema([*own, *(pa.field(name, type) for (name, _, _), type in pairs)])

    @cached_property
    def event_columns(self) -> list[str]:
        """The columns that are kept of an event when its row was handed out."""
        arguments = [a for trail in self.trails for p in trail.partials for a in p.args]
        return list(dict.fromkeys((*self.keys, TIME, *arguments)))

    @cached_property
    def ranges(self) -> tuple[Trailing, ...]:
        """The windows that are ranges of time."""
        return tuple(t.window for t in self.trails if isinstance(t.window, Trailing))

    @cached_property
    def range_partials(self) -> tuple[Partial, ...]:
        """The partials of ranges of time, each once: those that slices hold."""
        ranges = [t for t in self.trails if isinstance(t.window, Trailing)]
        return tuple(dict.fromkeys(p for trail in ranges for p in trail.partials))

    @cached_property
    def last_rows(self) -> int:
        """How many of the last events of a key stay, however old they are."""
        counted = [t.window.rows_back for t in self.trails if not isinstance(t.window, Trailing)]
        return max(counted, default=0)

    @cached_property
    def slice_us(self) -> int | None:
        """How wide slices of the tail are; None where windows begin at any instant."""
        rounds = {window.round_us for window in self.ranges}
        return rounds.pop() if len(rounds) == 1 else None

    def horizon_us(self, watermark_us: int) -> int:
        """Return the first instant that a range of a row to come may hold."""
        firsts = [window.interval(watermark_us)[0] for window in self.ranges]
        return max(min([watermark_us, *firsts]), LEAST)

    def whole_until(self, watermark_us: int) -> int:
        """Return the instant before which a slice is in a range of a row to come as a whole."""
        if self.slice_us is None or watermark_us == LEAST:
            return LEAST
        until = watermark_us - max(window.lag_us for window in self.ranges)
        return until - until % self.slice_us
