"""A table as bytes and back: what chunks of state and what executors send are written as."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa


def table_chunk(table: pa.Table, codec: Literal["zstd"] | None = None) -> bytes:
    """Write a table as Arrow IPC, as it is or compressed, which a reader need not know.

    >>> zeros = pa.table({"x": [0.0] * 1000})
    >>> len(table_chunk(zeros)) > 8000 > 800 > len(table_chunk(zeros, "zstd"))
    True
    >>> read_table(table_chunk(zeros, "zstd")) == zeros
    True
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_table(blob: bytes) -> pa.Table:
    """Read what `table_chunk` wrote."""
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()
