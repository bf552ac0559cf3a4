"""One micro-batch to many sinks: its rows are computed once, and handed out query by query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.failpoints import may_stop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.engines.spark.streaming.checkpoint.record import Checkpoint, Record
    from weft.engines.spark.streaming.sinks import Route
    from weft.engines.spark.streaming.streams import CompiledStream
    from weft.sessions.live_stream import LiveWorkload

_STREAM, _ROW = "stream", "row"


@dataclass(frozen=True)
class FanOutBatches:
    """Streams as one DataFrame, and the function that takes its micro-batches apart again."""

    streams: Sequence[CompiledStream]
    routes: Mapping[str, Route]
    checkpoint: Checkpoint
    record: Record
    live: LiveWorkload | None = None  # where queries may come and go

    @property
    def rows(self) -> DataFrame:
        """All rows of all streams; each stream in a column of its own where there are several."""
        if len(self.streams) == 1:
            return self.streams[0].rows
        packed = [
            one.rows.select(F.lit(at).alias(_STREAM), F.struct("*").alias(f"{_ROW}{at}"))
            for at, one in enumerate(self.streams)
        ]
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), packed)

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """Hand the rows of a micro-batch to the sinks of their queries."""
        kept = batch.persist()
        try:
            # Not isEmpty: every partition has to run, and leave its state behind.
            closed = kept.count()
            may_stop("state.committed")
            if closed:
                for at in range(len(self.streams)):
                    self._write(self._own(kept, at), at, batch_id)
        finally:
            kept.unpersist()
        if self.live is not None:
            self.live.poll(batch_id)
        may_stop("batch.done")

    def _write(self, rows: DataFrame, at: int, batch_id: int) -> None:
        results = self.streams[at].results
        if self.live is not None:
            self.live.hear(rows)
            results = self.live.results(at, batch_id)
        record = self.record if self.live is None else self.live.record
        stream = self.checkpoint.stream
        for name, result in results.items():
            if name not in self.routes:
                continue  # a query that a restart took out, of a micro-batch that had begun with it
            self.routes[name].write(record.query(name), result(rows), batch_id, stream)
            may_stop("rows.kept")

    def _own(self, batch: DataFrame, at: int) -> DataFrame:
        if len(self.streams) == 1:
            return batch
        return batch.where(F.col(_STREAM) == at).select(f"{_ROW}{at}.*")
