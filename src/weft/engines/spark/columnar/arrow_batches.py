"""Arrow batches between Spark and the operator: small ones put together, large ones cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A chunk is long enough that closing windows is not what takes the time, and fits any executor.
CHUNK_ROWS = 1 << 17
CHUNK_BYTES = 1 << 26
# Rows that go back to Spark at a time.
_MOST_ROWS = 1 << 16


def chunks_of(
    batches: Iterable[pa.RecordBatch], most_rows: int = CHUNK_ROWS, most_bytes: int = CHUNK_BYTES
) -> Iterator[pa.Table]:
    """Put Spark's small batches together, up to a size; without any row there is no chunk.

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
    if rows:
        yield pa.Table.from_batches(waiting)


def in_batches(table: pa.Table) -> list[pa.RecordBatch]:
    """Cut a table into batches that Spark reads one by one."""
    return table.to_batches(_MOST_ROWS)
