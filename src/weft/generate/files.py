"""Tables on disk: parquet, CSV or JSON lines, whole or in parts that arrive one after another."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from weft.errors import InputError
from weft.generate.json_lines import iso_8601, write_json_lines
from weft.generate.options import known, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

# Large enough to compress well, small enough that one file still feeds several readers.
_ROW_GROUP_ROWS = 1 << 17
# Spark's file source takes files in order of modification time, and knows only milliseconds.
_PART_SPACING_NS = 10_000_000


def write(
    tables: Mapping[str, pa.Table],
    directory: str | os.PathLike[str],
    format: str = "parquet",
    files: int = 1,
) -> list[Path]:
    """Write each table into a new or empty `directory`, and return the files in order.

    One file a table, `bid.parquet`; with `files` above 1 a folder a table, `bid/part-00000.parquet`
    and so on, equal shares of the rows in order of arrival. Modification times increase from
    part to part, so a streaming reader meets them in that order. A table with fewer rows than
    `files` gets one part a row.

    >>> import tempfile
    >>> from weft.generate import generate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write(generate("sensors", rows=10, seed=7), folder, format="csv", files=2)
    ...     [path.relative_to(folder).as_posix() for path in paths]
    ['readings/part-00000.csv', 'readings/part-00001.csv']
    """
    write_file = FORMATS[known("format", format, FORMATS)]
    files = whole("files", files, least=1)
    target = _empty_target(Path(directory))
    written: list[Path] = []
    for name, table in tables.items():
        parts = _parts(target, name, format, table.num_rows, files)
        for path, first, last in parts:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(table.slice(first, last - first), path)
        _date_in_order([path for path, _, _ in parts])
        written += [path for path, _, _ in parts]
    return written


def _parts(
    target: Path, name: str, extension: str, rows: int, files: int
) -> list[tuple[Path, int, int]]:
    """Name every file of a table, with the rows [first, last) that it holds."""
    if files == 1:
        return [(target / f"{name}.{extension}", 0, rows)]
    count = max(1, min(files, rows))
    return [
        (
            target / name / f"part-{part:05d}.{extension}",
            part * rows // count,
            (part + 1) * rows // count,
        )
        for part in range(count)
    ]


def _empty_target(directory: Path) -> Path:
    if directory.exists() and not directory.is_dir():
        raise InputError(
            f"cannot write into {directory}: it is a file", hint="name a folder, new or empty"
        )
    if directory.is_dir() and any(directory.iterdir()):
        raise InputError(
            f"cannot write into {directory}: the folder is not empty",
            hint="name a new folder, or remove what is in this one",
        )
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _date_in_order(paths: list[Path]) -> None:
    now_ns = time.time_ns()
    for age, path in enumerate(reversed(paths)):
        written_ns = now_ns - age * _PART_SPACING_NS
        os.utime(path, ns=(written_ns, written_ns))


def _write_parquet(table: pa.Table, path: Path) -> None:
    # Imported here and below: who writes one format does not pay for loading the others.
    import pyarrow.parquet as pq

    pq.write_table(table, path, row_group_size=_ROW_GROUP_ROWS)


def _write_csv(table: pa.Table, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv

    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(at, field.name, iso_8601(table.column(at)))
    pyarrow.csv.write_csv(table, path)


def _write_json(table: pa.Table, path: Path) -> None:
    with path.open("wb") as sink:
        write_json_lines(table, sink)


FORMATS: Mapping[str, Callable[[pa.Table, Path], None]] = MappingProxyType(
    {"parquet": _write_parquet, "csv": _write_csv, "json": _write_json}
)
