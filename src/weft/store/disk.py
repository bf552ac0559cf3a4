"""Every write of a store: whole or not at all, and on the disk before anything speaks of it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from weft.errors import DataError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


parquet: Any = pq
_UNFINISHED = ".unfinished"


def write_table(path: Path, table: pa.Table) -> int:
    """Write a parquet file that no reader sees before it is whole; return its bytes.

    Whoever makes it known flushes its folder first.
    """

    def write(place: Path) -> None:
        # Sorted columns shrink to almost nothing, and every page is checked when it is read.
        parquet.write_table(
            table, place, compression="zstd", write_page_checksum=True, store_schema=True
        )

    _write_whole(path, write, os.replace)
    return path.stat().st_size


def write_new_json(path: Path, value: dict[str, Any]) -> bool:
    """Write a file of JSON unless there is one; tell whether this writer was the first."""
    try:
        _write_json(path, value, os.link)  # which, unlike a rename, refuses a name that is taken
    except FileExistsError:
        return False
    return True


def replace_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file of JSON in the place of the one that is there."""
    _write_json(path, value, os.replace)


def read_json(path: Path) -> dict[str, Any]:
    """Read what was written, or say that it is damaged."""
    try:
        told = json.loads(path.read_bytes())
        if told.pop("checksum") != _checksum(told):
            raise ValueError("its checksum does not fit")
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, AttributeError, OSError) as reason:
        raise DataError(
            f"{path} is damaged: {reason}",
            hint="restore the file from a copy; nothing is read or written until then",
        ) from None
    return dict(told)


def read_columns(path: Path, columns: Sequence[str], size: int) -> pa.Table:
    """Read columns of a parquet file, or say that it is not the file that was written."""
    with _whole(path, size):
        file = parquet.ParquetFile(path, page_checksum_verification=True)
        table: pa.Table = file.read([*columns])
    return table


def check_whole(path: Path, size: int) -> None:
    """Refuse a file that is not there, or has another size than it was written with."""
    with _whole(path, size):
        pass


@contextmanager
def _whole(path: Path, size: int) -> Iterator[None]:
    try:
        found = path.stat().st_size
        if found != size:
            raise ValueError(f"it has {found:,} bytes and had {size:,}")
        yield
    except (OSError, ValueError, pa.ArrowException) as reason:
        told = str(reason).splitlines()[0]
        raise DataError(
            f"{path} is missing or damaged: {told}",
            hint="replace the events that were appended under its id, or restore the file",
        ) from None


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError):
        path.unlink()


def remove_folder(path: Path) -> None:
    """Remove a folder and what is in it, if it is there."""
    shutil.rmtree(path, ignore_errors=True)


def move(path: Path, to: Path) -> None:
    """Give a file another name, in the place of what is there."""
    try:
        os.replace(path, to)
    except OSError as reason:
        raise InputError(
            f"cannot write {to}: {reason.strerror or reason}",
            hint="make room on the disk, and do it again: what was begun is then finished",
        ) from reason


def make_folder(path: Path) -> None:
    """Make a folder and those above it, if they are not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise InputError(
            f"cannot make the folder {path}: {reason.strerror}", hint="give a folder to write to"
        ) from None


def is_unfinished(path: Path) -> bool:
    """Tell whether a file is what a writer left behind that did not come to its end."""
    return path.name.endswith(_UNFINISHED)


def _write_json(path: Path, value: dict[str, Any], publish: Callable[[Path, Path], None]) -> None:
    text = json.dumps({**value, "checksum": _checksum(value)}, indent=1)
    _write_whole(path, lambda place: _write_bytes(place, text.encode()), publish)
    flush(path.parent)


def _checksum(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _write_whole(
    path: Path, write: Callable[[Path], None], publish: Callable[[Path, Path], None]
) -> None:
    unfinished = path.with_name(f".{path.name}.{uuid4().hex}{_UNFINISHED}")
    try:
        write(unfinished)
        _sync(unfinished)
        publish(unfinished, path)
    except OSError as reason:
        if isinstance(reason, FileExistsError):
            raise
        full = reason.errno in (errno.ENOSPC, errno.EDQUOT)
        raise InputError(
            f"cannot write {path}: {reason.strerror or reason}",
            hint="make room on the disk, and do it again: nothing was changed"
            if full
            else "nothing was changed; see that the folder can be written to",
        ) from reason
    finally:
        remove(unfinished)


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    try:
        _sync(path)
    except OSError as reason:
        raise InputError(
            f"the disk does not confirm what was written to {path}: {reason.strerror or reason}",
            hint="see that it is whole; `weft store show` tells what the store has",
        ) from reason


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
