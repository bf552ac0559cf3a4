"""The stateful operator of rolling windows: a bucket of keys, its rows and events in columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pyspark import cloudpickle
from pyspark.sql.types import Row

from weft.aggregates.base import add_custom
from weft.engines.local.state.table_bytes import table_chunk
from weft.engines.spark.streaming.columnar.buckets import Logged, WatermarkedBuckets
from weft.engines.spark.streaming.columnar.byte_values import CODEC
from weft.engines.spark.streaming.columnar.executor_batches import PAYLOAD
from weft.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from weft.engines.local.anchors.rolling_rows import RollingRows
    from weft.engines.local.anchors.rolling_state import RollingState

# Complete rows in one blob, and figures for the progress report.
FIGURES = ("late", "held_rows", "state_bytes")
OUTPUT_SCHEMA = f"{PAYLOAD} binary, " + ", ".join(f"{name} bigint" for name in FIGURES)
_ASKED = "asked"


class RollingProcessor(WatermarkedBuckets):
    """Feeds the states of a partition's buckets, and moves their watermarks."""

    def __init__(self, described: bytes, fingerprint: str) -> None:
        self._described, self._fingerprint = described, fingerprint

    @cached_property
    def _rows(self) -> RollingRows:
        """What is asked, learnt where there are rows."""
        rows, customs = cloudpickle.loads(self._described)
        for own, function in customs:
            add_custom(own, function)
        asked: RollingRows = rows
        return asked

    def moved(self, bucket: int, came: pa.Table | None, watermark_ms: int) -> Iterator[Row]:
        """Take the rows of a bucket, and hand out those that the watermark has passed."""
        found = self.logged()
        state = self._state(found)
        # There is no watermark before the first event was seen.
        complete = state.process(came, watermark_ms * 1000 if watermark_ms > 0 else None)
        self.log(found, state.changes(), {_ASKED: self._fingerprint.encode()})
        if state.waiting.num_rows:
            self.wake_after(watermark_ms)
        yield Row(
            **{PAYLOAD: table_chunk(complete, CODEC) if complete.num_rows else None},
            late=state.late,
            held_rows=len(state),
            state_bytes=state.nbytes,
        )

    def _state(self, found: Logged) -> RollingState:
        from weft.engines.local.anchors.rolling_state import RollingState

        asked = found.chunks.pop(_ASKED, self._fingerprint.encode()).decode()
        if asked != self._fingerprint:
            raise DataError(
                "the checkpoint holds events of other rolling windows than those asked for",
                hint="go on with the windows, aggregates, keys, filter, columns and "
                "spark.sql.shuffle.partitions that it began with, or begin a new checkpoint",
            )
        return RollingState.load(self._rows, found.chunks)
