"""What users ask of windows at anchors: features of every row of a table, from events before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.errors import QueryError
from weft.expression import canonical, columns_of
from weft.query import Keys, as_keys, checked_aggs
from weft.time import duration_us
from weft.window.trailing import AnchoredWindow, anchored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import AggregateCall
    from weft.query import AskedAggregates, AskedKeys
    from weft.time import Duration
    from weft.window.trailing import Closed, TrailingRows


@dataclass(frozen=True, slots=True)
class EventFeatures:
    """What is asked of one source of events at every anchor.

    A key is a column of the points and the expression over the events that must equal it.
    """

    source: str
    time: str | None
    keys: Keys
    where: str | None
    outputs: tuple[tuple[str, AnchoredWindow, AggregateCall], ...]  # each with its column's name
    watermark_us: int | None = None  # how long events may be late, in a stream

    @staticmethod
    def of(
        source: str,
        *,
        time: str | None,
        by: AskedKeys,
        where: str | None,
        windows: Mapping[str, Duration | TrailingRows],
        aggs: AskedAggregates,
        closed: Closed,
        round: Duration | None,
        prefix: str = "",
        watermark: Duration | None = None,
    ) -> EventFeatures:
        """Read what the user wrote: every aggregate over every window, window by window.

        >>> from weft import agg
        >>> clicks = EventFeatures.of("clicks", time="ts", by=["user"], where=None, closed="left",
        ...     windows={"1h": "1 hour"}, aggs={"n": agg.count()}, round=None)
        >>> [name for name, _, _ in clicks.outputs]
        ['n_1h']
        """
        if not windows:
            raise QueryError(
                f"no window is asked of {source!r}", hint="add one: windows={'1h': '1 hour'}"
            )
        watermark_us = None if watermark is None else duration_us(watermark)
        if watermark_us is not None and watermark_us < 0:
            raise QueryError("a watermark is not negative", hint="give a delay of zero or more")
        calls = [
            (alias, replace(call, args=tuple(map(canonical, call.args))))
            for alias, call in checked_aggs(source, aggs)
        ]
        return EventFeatures(
            source,
            time,
            as_keys(by),
            None if where is None else canonical(where),
            tuple(
                (f"{prefix}{alias}_{label}", anchored(label, window, closed, round), call)
                for label, window in windows.items()
                for alias, call in calls
            ),
            watermark_us,
        )

    @property
    def windows(self) -> tuple[AnchoredWindow, ...]:
        """The windows, each once."""
        return tuple(dict.fromkeys(window for _, window, _ in self.outputs))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of the events that are read, the time column excepted, sorted."""
        read = [e for _, e in self.keys] + [a for _, _, call in self.outputs for a in call.args]
        read += [] if self.where is None else [self.where]
        return tuple(sorted({name for text in read for name in columns_of(text)}))


@dataclass(frozen=True, slots=True)
class FeatureQuery:
    """The anchors, and what is asked of every source of events at each of them.

    `rolling` says that the anchors are the events themselves, of the one source.
    """

    points: str
    at: str | None
    rolling: bool
    inputs: tuple[EventFeatures, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the feature columns, in order."""
        return tuple(name for asked in self.inputs for name, _, _ in asked.outputs)

    def check_names(self, own: Sequence[str]) -> None:
        """Refuse a feature that has the name of a column of the points, or of another feature."""
        seen = set(own)
        if len(seen) < len(own):
            twice = next(name for name in own if list(own).count(name) > 1)
            raise QueryError(
                f"{self.points} has two columns named {twice!r}", hint="rename one of them"
            )
        for name in self.columns:
            if name in seen:
                raise QueryError(
                    f"the feature {name!r} has the name of another column",
                    hint="give the aggregate or the window another name",
                )
            seen.add(name)
