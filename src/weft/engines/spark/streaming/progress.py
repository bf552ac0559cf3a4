"""What a running stream does, micro-batch by micro-batch: as a line to read, and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from weft.cost.sizes import bytes_text
from weft.engines.spark.streaming.columnar.strategy import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """The figures of one micro-batch; the state is as it was left behind."""

    batch: int
    rows: int  # events read
    rows_per_second: float
    seconds: float
    watermark: str | None  # UTC; None before there is one
    open_windows: int | None  # (key, instance) pairs that wait; only native knows
    open_slices: int  # (key, slice) pairs that they wait for
    late: int  # events dropped; native counts those of one key and slice that came together once
    state_bytes: int
    at: str | None = None  # UTC, when it began
    # By query and window, what of the state each reads; they share it. Only columnar knows.
    window_bytes: tuple[tuple[str, str, int], ...] = ()

    @staticmethod
    def of(progress: StreamingQueryProgress) -> Progress:
        """Read a progress report of Spark's."""
        states = progress.stateOperators
        observed = progress.observedMetrics.get(METRICS)
        hosted = {} if observed is None else observed.asDict()
        watermark = progress.eventTime.get("watermark")
        known = watermark is not None and not watermark.startswith("1970-01-01T00:00:00")
        return Progress(
            batch=progress.batchId,
            rows=progress.numInputRows,
            rows_per_second=round(_finite(progress.processedRowsPerSecond), 1),
            seconds=progress.batchDuration / 1000,
            watermark=watermark if known else None,
            open_windows=None if hosted or not states else states[0].numRowsTotal,
            open_slices=_told(hosted, "open_slices", states[-1].numRowsTotal if states else 0),
            late=_told(hosted, "late", sum(s.numRowsDroppedByWatermark for s in states)),
            state_bytes=_told(hosted, "state_bytes", sum(s.memoryUsedBytes for s in states)),
            at=progress.timestamp,
            window_bytes=_shares(hosted),
        )

    def line(self) -> str:
        """Write the figures as a line.

        >>> Progress(3, 1250000, 204918.0, 6.1, "2024-01-01T00:20:00.000Z", 240, 90, 2, 81920
        ...          ).line()
        'batch 3: 1,250,000 rows, 204,918 rows/s, watermark 2024-01-01 00:20:00, 240 open windows,
        2 late, 80.0 KiB of state'
        """
        watermark = (self.watermark or "none yet").replace("T", " ").removesuffix("Z")
        windows = self.open_windows
        waiting = f"{windows:,} open windows" if windows else f"{self.open_slices:,} open slices"
        return (
            f"batch {self.batch}: {self.rows:,} rows, {self.rows_per_second:,.0f} rows/s, "
            f"watermark {watermark.removesuffix('.000')}, {waiting}, "
            f"{self.late:,} late, {self.state_size} of state"
        )

    @property
    def state_size(self) -> str:
        """The size of the state, in words."""
        return bytes_text(self.state_bytes)

    def to_json(self) -> str:
        """Write the figures as one line of JSON."""
        return json.dumps(asdict(self))


def _shares(hosted: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Read what is told of each window's share of the state, if they are not too many."""
    names: list[list[str]] = json.loads(hosted.get("windows") or "[]")
    figures = hosted.get("window_bytes") or ()
    return tuple((query, label, n or 0) for (query, label), n in zip(names, figures, strict=False))


def _told(hosted: Mapping[str, Any], name: str, otherwise: int) -> int:
    """Take a figure from hosted operators, which know what is inside the blobs Spark counts."""
    return int(hosted[name] or 0) if name in hosted else otherwise


def _finite(figure: float) -> float:
    # Spark reports "not a number" for a batch without rows, and infinity for one without time.
    return figure if figure == figure and figure < float("inf") else 0.0


class ProgressListener(StreamingQueryListener):
    """Calls a function with the figures of each micro-batch of one stream."""

    def __init__(self, report: Callable[[Progress], None]) -> None:
        self._report = report
        self.ended = Event()
        self.last_batch: int | None = None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Report a micro-batch."""
        found = Progress.of(event.progress)
        self.last_batch = found.batch
        self._report(found)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Let the driver know that no report will follow."""
        self.ended.set()
