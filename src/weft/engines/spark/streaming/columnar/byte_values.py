"""Chunks of state as bytes: what a state store of Spark keeps in one value."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.engines.local.state.arrow_shelf import read_table, table_chunk
from weft.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CHUNK: list[tuple[str, pa.DataType]] = [("name", pa.string()), ("chunk", pa.large_binary())]
_CHUNK_SCHEMA = pa.schema(_CHUNK)
_SUMMED = b"crc:"  # before the checksum, which wefts before this one did not write


def dump_changes(written: Mapping[str, bytes], removed: Iterable[str] = ()) -> bytes:
    """Write chunks under their names; those that are gone have no chunk."""
    gone = list(removed)
    names = pa.array([*gone, *written], pa.string())
    chunks = pa.array([*([None] * len(gone)), *written.values()], pa.large_binary())
    table = table_chunk(pa.Table.from_arrays([names, chunks], schema=_CHUNK_SCHEMA))
    return table + _SUMMED + zlib.crc32(table).to_bytes(4, "little")


def load_chunks(blobs: Iterable[bytes]) -> dict[str, bytes]:
    """Put chunks together from changes, oldest first.

    >>> load_chunks([dump_changes({"a": b"1", "b": b"2"}), dump_changes({"a": b"3"}, ["b"])])
    {'a': b'3'}
    """
    chunks: dict[str, bytes] = {}
    for blob in blobs:
        table = _read(blob)
        for name, chunk in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if chunk is None:
                chunks.pop(name, None)
            else:
                chunks[name] = chunk
    return chunks


def _read(blob: bytes) -> pa.Table:
    kept, mark, told = blob[:-8], blob[-8:-4], blob[-4:]
    if mark != _SUMMED:
        kept = blob
    elif zlib.crc32(kept) != int.from_bytes(told, "little"):
        raise _damaged("a change in it has another checksum")
    try:
        return read_table(kept)
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(error) from None


def _damaged(reason: object) -> DataError:
    return DataError(
        f"the state of a stream is damaged: {reason}",
        hint="go back to a copy of the checkpoint, or start anew with another one",
    )
