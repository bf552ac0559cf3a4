"""The `columnar` strategy: events go through Arrow to the kernels, clustered by key.

Rows of a key meet in one partition, in the order of time, and stream through the local engine's
operator in chunks. The watermark follows the time reached, so an executor holds open windows and
one chunk, never all rows of a key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from weft.engines.spark.fan_out import NODE, START
from weft.engines.spark.hosting import END, HostedScope
from weft.engines.spark.scopes import Compiled
from weft.engines.spark.session import spark_schema
from weft.engines.spark.shipping import Shipment
from weft.engines.spark.stamps import timestamp_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from weft.engines.base import Unsupported
    from weft.engines.spark.scopes import PlannedScope
    from weft.plan import Emit

# A chunk is long enough that closing windows is not what takes the time, and fits any executor.
CHUNK_ROWS = 1 << 17
CHUNK_BYTES = 1 << 26
# Rows that go back to Spark at a time.
_MOST_ROWS = 1 << 16


class ColumnarStrategy:
    """Compiles a scope to one clustered pass of its events through the local operator."""

    name = "columnar"

    def unsupported(self, scope: PlannedScope) -> tuple[Unsupported, ...]:
        """Nothing: the operator runs every window and every aggregate."""
        return ()

    def compile(self, scope: PlannedScope, source: DataFrame) -> Compiled:
        """Return the lazy result of each query; those of one scope share their rows."""
        shipment = Shipment.of(scope, source)
        hosted = shipment.hosted
        schema = spark_schema(hosted.output)
        rows = clustered(shipment).mapInArrow(Feeder(hosted.dump()), schema)
        shared = len(scope.queries) > 1
        if shared:
            rows = rows.persist()
        results = {
            query: result_of(rows, scope.emits, query, hosted, shipment.time_type)
            for query in scope.queries
        }
        return Compiled(results, (rows,) if shared else ())


def clustered(shipment: Shipment) -> DataFrame:
    """Bring the rows of each key together, in the order of time."""
    keys = [F.expr(text) for text in shipment.keys]
    together = shipment.frame.repartition(*keys) if keys else shipment.frame.repartition(1)
    return together.sortWithinPartitions(*(F.expr(text) for text in shipment.order))


@dataclass(frozen=True, slots=True)
class Feeder:
    """Runs on executors: one partition of events in the order of time in, closed windows out."""

    described: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Feed the operator chunk by chunk."""
        host = None
        for chunk in chunks_of(batches):
            host = host or HostedScope.load(self.described).open()
            reached = host.process(chunk)
            if reached is not None:
                yield from host.advance(reached).to_batches(_MOST_ROWS)
        if host is not None:
            yield from host.advance(None).to_batches(_MOST_ROWS)


def chunks_of(
    batches: Iterable[pa.RecordBatch], most_rows: int = CHUNK_ROWS, most_bytes: int = CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Put Spark's small batches together, up to a size.

    >>> small = pa.RecordBatch.from_pydict({"x": [1, 2]})
    >>> [chunk.num_rows for chunk in chunks_of([small] * 5, most_rows=4)]
    [4, 4, 2]
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most_rows or size >= most_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def result_of(
    rows: DataFrame,
    emits: Sequence[Emit],
    query: str,
    hosted: HostedScope,
    time_type: DataType,
) -> DataFrame:
    """Pick the rows of one query, under the names it gave.

    `emits` are those of the plan, and `hosted` numbers its rows and aggregates alike.
    """
    own = {number: emit for number, emit in enumerate(emits) if emit.query == query}
    first, emit = next(iter(own.items()))
    chosen = F.col(NODE).between(min(own), max(own))  # emits of a query are neighbours
    calls = dict(zip(hosted.calls, range(len(hosted.calls)), strict=True))
    outputs = {
        alias: f"v{calls[call]}"
        for (alias, _), (_, call) in zip(emit.outputs, hosted.emits[first].outputs, strict=True)
    }
    return rows.where(chosen).select(*_columns(own, emit, outputs, time_type))


def _columns(
    own: Mapping[int, Emit], emit: Emit, outputs: Mapping[str, str], time_type: DataType
) -> list[Column]:
    label, start, end = emit.window_columns
    labels = [own[n].label if n in own else None for n in range(min(own), max(own) + 1)]
    # One literal, however many windows, and not SQL text: a label may hold any character.
    known = F.from_json(F.lit(json.dumps(labels)), "array<string>")
    return [
        *(F.col(f"k{i}").alias(name) for i, (name, _) in enumerate(emit.keys)),
        F.get(known, F.col(NODE) - min(own)).alias(label),
        F.expr(timestamp_of(START, time_type)).alias(start),
        F.expr(timestamp_of(END, time_type)).alias(end),
        *(F.col(column).alias(alias) for alias, column in outputs.items()),
    ]
