"""The arrays of a window as bytes, and back.

A snapshot says what it is: a format version, the technique, the operation, and the type and shape
of each array. Nothing in it is executed when it is read, so it may come from anywhere.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = b"weft-kernel\n"
_VERSION = 1

State = TypeVar("State", bound=tuple[Any, ...])


def _arrays(state: tuple[Any, ...]) -> Iterator[npt.NDArray[Any]]:
    for member in state:
        if isinstance(member, tuple):
            yield from member
        else:
            yield member


def to_bytes(state: tuple[Any, ...], technique: str, operation: str) -> bytes:
    """Write the arrays of `state` one after the other behind a header that describes them."""
    arrays = list(_arrays(state))
    header = {
        "version": _VERSION,
        "technique": technique,
        "operation": operation,
        "arrays": [(array.dtype.str, array.shape) for array in arrays],
    }
    text = json.dumps(header).encode()
    return b"".join((_MAGIC, len(text).to_bytes(4, "little"), text, *map(_raw, arrays)))


def _raw(array: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def from_bytes(snapshot: bytes, like: State, technique: str, operation: str) -> State:
    """Read a snapshot of the same technique and operation; `like` gives fields, not sizes."""
    header, offset = _header(snapshot)
    made_by = header["technique"], header["operation"]
    if made_by != (technique, operation):
        raise DataError(
            f"cannot restore {technique} of {operation} from a snapshot of "
            f"{made_by[0]} of {made_by[1]}",
            hint="restore it with the technique and operation that wrote it",
        )
    arrays = []
    for dtype, shape in header["arrays"]:
        count = int(np.prod(shape))
        stop = offset + count * np.dtype(dtype).itemsize
        if stop > len(snapshot):
            raise DataError("the snapshot is cut short", hint="read the whole file")
        arrays.append(np.frombuffer(snapshot, dtype, count, offset).reshape(shape).copy())
        offset = stop
    remaining = iter(arrays)
    members = (
        tuple(next(remaining) for _ in member) if isinstance(member, tuple) else next(remaining)
        for member in like
    )
    return type(like)(*members)


def _header(snapshot: bytes) -> tuple[dict[str, Any], int]:
    start = len(_MAGIC) + 4
    if not snapshot.startswith(_MAGIC):
        raise DataError(
            "these bytes are not a snapshot of a window", hint="pass what snapshot() gave"
        )
    stop = start + int.from_bytes(snapshot[start - 4 : start], "little")
    header: dict[str, Any] = json.loads(snapshot[start:stop])
    if header["version"] != _VERSION:
        raise DataError(
            f"the snapshot has format {header['version']}, this weft reads {_VERSION}",
            hint="restore it with the version that wrote it",
        )
    return header, stop
