"""Arrow tables and chunks of state as bytes: what travels through Spark in one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weft.engines.local.state.journal import StateChanges

_CHUNK: list[tuple[str, pa.DataType]] = [("name", pa.string()), ("chunk", pa.large_binary())]
_CHUNK_SCHEMA = pa.schema(_CHUNK)


def dump_table(table: pa.Table) -> bytes:
    """Write a table as an Arrow stream."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue().to_pybytes()


def load_table(blob: bytes) -> pa.Table:
    """Read what `dump_table` wrote, without a copy.

    >>> load_table(dump_table(pa.table({"x": [1, 2]})))["x"].to_pylist()
    [1, 2]
    """
    with pa.ipc.open_stream(pa.py_buffer(blob)) as reader:
        return reader.read_all()


def dump_changes(written: Mapping[str, bytes], removed: Iterable[str] = ()) -> bytes:
    """Write chunks under their names; those that are gone have no chunk."""
    gone = list(removed)
    names = pa.array([*gone, *written], pa.string())
    chunks = pa.array([*([None] * len(gone)), *written.values()], pa.large_binary())
    return dump_table(pa.Table.from_arrays([names, chunks], schema=_CHUNK_SCHEMA))


def load_chunks(blobs: Iterable[bytes]) -> dict[str, bytes]:
    """Put chunks together from changes, oldest first.

    >>> load_chunks([dump_changes({"a": b"1", "b": b"2"}), dump_changes({"a": b"3"}, ["b"])])
    {'a': b'3'}
    """
    chunks: dict[str, bytes] = {}
    for blob in blobs:
        table = load_table(blob)
        for name, chunk in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if chunk is None:
                chunks.pop(name, None)
            else:
                chunks[name] = chunk
    return chunks


def dump_state(changes: StateChanges) -> bytes:
    """Write what changed of an operator's state."""
    return dump_changes(changes.written, changes.removed)
