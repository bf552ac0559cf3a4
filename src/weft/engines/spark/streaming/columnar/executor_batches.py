"""What runs on executors around the stateful operator: events into blobs, blobs into rows.

Spark hands a stateful operator one row after the other. Events therefore travel as one Arrow blob
for each bucket of keys, and the rows of closed windows come back in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.engines.spark.columnar.arrow_batches import chunks_of
from weft.engines.spark.streaming.columnar.bucket_numbers import BUCKET
from weft.engines.spark.streaming.columnar.byte_values import CODEC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets

PAYLOAD = "payload"
PACKED_SCHEMA = f"{BUCKET} int, {PAYLOAD} binary"
# Events of a task that are put into blobs at a time.
_MOST_EVENTS = 1 << 20
_MOST_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Packer:
    """Sorts events by the bucket of their key, scope by scope.

    `names` has the columns of each scope, as it calls them, by those that travel.
    """

    names: Sequence[Mapping[str, str]]
    buckets: Buckets

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each bucket that has events."""
        for chunk in chunks_of(batches, _MOST_EVENTS):
            events = chunk.combine_chunks()
            for scope in range(len(self.names)):
                yield from self._packed(events, scope)

    def _packed(self, chunk: pa.Table, scope: int) -> Iterator[pa.RecordBatch]:
        own = self.names[scope]
        table = pa.Table.from_arrays([chunk.column(name) for name in own.values()], [*own])
        buckets: Any = chunk.column(f"{BUCKET}{scope}")
        if buckets.null_count:
            kept = buckets.is_valid()
            table, buckets = table.filter(kept), buckets.filter(kept)
        if not table.num_rows:  # the filter of the scope keeps none of them
            return
        numbers, parts = _by_bucket(table, buckets.to_numpy())
        payloads: list[pa.Array[Any]] = [
            pa.array([self.buckets.number(scope, n) for n in numbers], pa.int32()),
            pa.array([table_chunk(part, CODEC) for part in parts], pa.binary()),
        ]
        yield pa.RecordBatch.from_arrays(payloads, [BUCKET, PAYLOAD])


def _by_bucket(
    table: pa.Table, buckets: npt.NDArray[np.integer]
) -> tuple[list[int], list[pa.Table]]:
    """Cut a table by the bucket of its rows, which stay in order.

    >>> numbers, parts = _by_bucket(pa.table({"x": [1, 2, 3]}), np.array([4, 0, 4]))
    >>> numbers, [part["x"].to_pylist() for part in parts]
    ([0, 4], [[2], [1, 3]])
    """
    order = np.argsort(buckets, kind="stable")
    numbers, firsts = np.unique(buckets[order], return_index=True)
    if numbers.size == 1:
        return numbers.tolist(), [table]
    stops = [*firsts[1:].tolist(), buckets.size]
    spans = zip(firsts.tolist(), stops, strict=True)
    return numbers.tolist(), [table.take(order[a:b]) for a, b in spans]


@dataclass(frozen=True, slots=True)
class Unpacker:
    """Opens the blobs of closed windows."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for batch in batches:
            for blob in batch.column(PAYLOAD):
                yield from read_table(blob.as_py()).to_batches(_MOST_ROWS)
