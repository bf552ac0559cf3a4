"""Chunks of state as bytes: what a state store of Spark keeps in one value."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from weft.engines.local.state.table_bytes import read_table, table_chunk
from weft.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What executors hand to Spark passes a socket, and a state its store and log as well, at a tenth of
# the speed at which columns are compressed: partials repeat, and of many filters there are none.
CODEC: Final = "zstd"
_CHUNK: list[tuple[str, pa.DataType]] = [("name", pa.string()), ("chunk", pa.large_binary())]
_CHUNK_SCHEMA = pa.schema(_CHUNK)
_SUMMED = b"crc:"  # before the checksum, which wefts before this one did not write


def dump_changes(written: Mapping[str, bytes], removed: Iterable[str] = ()) -> bytes:
    """Write chunks under their names; those that are gone have no chunk."""
    gone = list(removed)
    names = pa.array([*gone, *written], pa.string())
    chunks = pa.array([*([None] * len(gone)), *written.values()], pa.large_binary())
    table = table_chunk(pa.Table.from_arrays([names, chunks], schema=_CHUNK_SCHEMA), CODEC)
    return table + _SUMMED + zlib.crc32(table).to_bytes(4, "little")


def read_changes(blob: bytes) -> dict[str, bytes | None]:
    """Read the chunks of one change; those that are gone are None.

    >>> read_changes(dump_changes({"a": b"1"}, ["b"]))
    {'b': None, 'a': b'1'}
    """
    names, chunks = (column.to_pylist() for column in _read(blob).columns)
    found: dict[Any, bytes | None] = dict(zip(names, chunks, strict=True))
    return found


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
