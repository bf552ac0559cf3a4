"""Tables in files: parquet, CSV and JSON lines, the type by the extension, read and written.

A table is one file, or a folder whose files together are the table. CSV and JSON have no word for
an instant, so a column of ISO-8601 text, a day or a day and a time, is read as instants in UTC.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import DataError, InputError, QueryError
from weft.frames import in_microseconds, kind_of, to_arrow
from weft.generate.draws import TIMESTAMP, Column, concat
from weft.generate.files import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EXTENSIONS: Mapping[str, str] = MappingProxyType(
    {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
)

# NA and NaN are left out on purpose: NaN is a number, and NA may be a key.
_CSV_NULLS = ("", "NULL", "null")
# Arrow takes no larger block than an int32 can count.
_LARGEST_BLOCK_BYTES = (1 << 31) - 1
# A text column whose first rows are no instants is not searched to its end.
_PROBE_ROWS = 64
_ISO_8601 = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$"
_ZONE = r"(Z|:\d\d[+-]\d\d:?\d\d|\.\d+[+-]\d\d:?\d\d)$"
_SPELLINGS = f"one of {', '.join(EXTENSIONS)}"


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    """Read a table from a file, or from a folder whose files hold its rows in order of name.

    Instants in CSV and JSON come out as `timestamp[us, UTC]`; text without a zone is taken as UTC,
    and digits finer than a microsecond are cut off. In CSV nothing, `NULL` and `null` are NULL, and
    `""` is the empty text. Files of a folder whose names begin with `.` or `_` are passed over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "readings.csv")
    ...     _ = path.write_text("ts,temp\\n2026-01-01T00:00:00Z,20.5\\n2026-01-01T00:01:00Z,\\n")
    ...     table = read_table(path)
    >>> table.schema.field("ts").type, table["temp"].to_pylist()
    (TimestampType(timestamp[us, tz=UTC]), [20.5, None])
    """
    target = Path(path)
    if not target.exists():
        raise DataError(
            f"cannot read {target}: there is no such file or folder", hint=_near(target)
        )
    if not target.is_dir():
        return _read_file(target)
    parts = [_read_file(file) for file in _files_of(target)]
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(
            f"cannot read {target}: its files do not have the same columns: {_first_line(error)}",
            hint="give the files one by one, or make their columns agree",
        ) from error


def write_table(table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a table to a new file whose extension names the format, and return its path.

    Folders on the way are made. An existing file is refused unless `overwrite`; the new content
    takes its place at once, so nobody meets half a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_table(pa.table({"n": [1, None]}), Path(folder, "out", "counts.json"))
    ...     written.read_text()
    '{"n":1}\\n{"n":null}\\n'
    """
    target = Path(path)
    write = FORMATS[format_of(target)]
    refuse_existing(target, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        write(_plain(table), unfinished)
        unfinished.replace(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"cannot write {target}: {_first_line(error)}",
            hint="write parquet, which has every type",
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def format_of(path: str | os.PathLike[str]) -> str:
    """Name the format of a file by its extension.

    >>> format_of("readings.jsonl")
    'json'
    >>> format_of("readings.xlsx")
    Traceback (most recent call last):
    weft.errors.DataError: cannot tell the format of readings.xlsx: unknown extension '.xlsx'
    hint: name the file with one of .parquet, .csv, .json, .jsonl, .ndjson
    """
    extension = Path(path).suffix.lower()
    if extension not in EXTENSIONS:
        why = f"unknown extension {extension!r}" if extension else "it has no extension"
        raise DataError(
            f"cannot tell the format of {path}: {why}", hint=f"name the file with {_SPELLINGS}"
        )
    return EXTENSIONS[extension]


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Refuse to write where something is already, unless it is a file that may be overwritten.

    >>> refuse_existing(Path("no such file"), overwrite=False)
    >>> refuse_existing(Path("."), overwrite=True)
    Traceback (most recent call last):
    weft.errors.InputError: cannot write .: it is a folder
    hint: name a file
    """
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder", hint="name a file")
    if path.exists() and not overwrite:
        raise InputError(
            f"cannot write {path}: the file exists",
            hint="name another file, or say that it may be overwritten (--overwrite)",
        )


def write(
    results: Mapping[str, Any],
    into: str | Path,
    format: str = "parquet",
    *,
    overwrite: bool = False,
) -> dict[str, str]:
    """Write every result of a run under its query's name, and return where each of them is.

    Spark writes folders, one job for each result: rows that results share are computed by the
    first of these jobs, read by the others, and their memory is given back when all are written.
    Results of the local engine are files. A result that is there already is an error, unless it
    may be overwritten.

    >>> import tempfile, pyarrow as pa
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = write({"lows": pa.table({"lo": [1.5]})}, folder)
    ...     [path.rsplit("/", 1)[-1] for path in found.values()]
    ['lows.parquet']
    """
    if format not in _READERS:
        raise QueryError(
            f"results cannot be written as {format!r}", hint=f"use one of {', '.join(_READERS)}"
        )
    if not hasattr(results, "items") or hasattr(results, "sparkSession"):
        raise QueryError(
            f"{type(results).__name__} is not a mapping of results by query",
            hint="name a single result: weft.write({'lows': result}, ...)",
        )
    kinds = {name: kind_of(table) for name, table in results.items()}
    if all(kind == "spark" for kind in kinds.values()):
        return _by_spark(results, str(into), format, overwrite=overwrite)
    return _as_files(results, Path(into), format, overwrite=overwrite)


def _files_of(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name[0] not in "._")
    # A table without rows in JSON lines is an empty file: a part that says nothing.
    told = [file for file in files if file.stat().st_size or format_of(file) != "json"]
    if not told:
        raise DataError(
            f"cannot read {folder}: the folder holds no file of a table",
            hint=f"a table is a file, or a folder of files, with {_SPELLINGS}",
        )
    formats = {format_of(file): file for file in told}
    if len(formats) > 1:
        first, second = sorted(file.name for file in formats.values())[:2]
        raise DataError(
            f"cannot read {folder}: {first} and {second} are of different formats",
            hint="keep the files of one table in a folder of their own, all in one format",
        )
    return told


def _read_file(path: Path) -> pa.Table:
    name = format_of(path)
    if not path.stat().st_size:
        raise DataError(
            f"cannot read {path}: the file is empty",
            hint="parquet and csv name their columns even without a row",
        )
    try:
        return _READERS[name](path)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"cannot read {path} as {name}: {_first_line(error)}", hint=_HINTS[name]
        ) from error


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    # Not `pq.read_table`, which loads pandas and the datasets of Arrow for nothing.
    with pq.ParquetFile(path) as file:
        return file.read()


def _read_csv(path: Path) -> pa.Table:
    try:
        table = _csv(path)
    except pa.ArrowInvalid:
        # Arrow decides on types by the first block; a later value of another type needs them all.
        table = _csv(path, block_size=min(path.stat().st_size + 1, _LARGEST_BLOCK_BYTES))
    if table.num_columns == 1:
        # An empty line is nothing among several columns, and the NULL of a single one.
        table = _csv(path, ignore_empty_lines=False)
    return _with_instants(table)


def _csv(path: Path, block_size: int | None = None, *, ignore_empty_lines: bool = True) -> pa.Table:
    from pyarrow import csv

    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=block_size),
        parse_options=csv.ParseOptions(ignore_empty_lines=ignore_empty_lines),
        convert_options=csv.ConvertOptions(
            null_values=list(_CSV_NULLS), strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _read_json(path: Path) -> pa.Table:
    from pyarrow import json

    try:
        return _with_instants(json.read_json(path))
    except pa.ArrowInvalid:
        content = path.read_bytes()
        if b':"NaN"' not in content and b'Infinity"' not in content:
            raise
        # Spark writes these numbers as text, which has no place among numbers; Arrow reads words.
        for word in (b"NaN", b"Infinity", b"-Infinity"):
            content = content.replace(b':"' + word + b'"', b":" + word)
        return _with_instants(json.read_json(BytesIO(content)))


_READERS: Mapping[str, Callable[[Path], pa.Table]] = MappingProxyType(
    {"parquet": _read_parquet, "csv": _read_csv, "json": _read_json}
)
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "parquet": "the file may be cut short, or of another format under this name",
        "csv": "the first line names the columns, and every line has as many values",
        "json": "write one JSON object a line, without a list around them",
    }
)


def _with_instants(table: pa.Table) -> pa.Table:
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type):
            table = table.set_column(at, field.name, _in_microseconds(column))
        elif pa.types.is_string(field.type):
            instants = _parsed(column)
            if instants is not None:
                table = table.set_column(at, field.name, instants)
    return table


def _in_microseconds(column: Column) -> Column:
    return in_microseconds(column).cast(pa.timestamp("us")).cast(TIMESTAMP)


def _parsed(text: Column) -> Column | None:
    """Read a column of ISO-8601 text as instants; None if any of it is something else."""
    if text.null_count == len(text) or not _all_match(text.slice(0, _PROBE_ROWS)):
        return None
    if not _all_match(text):
        return None
    text = pc.replace_substring_regex(text, r"^(.{10})$", r"\1T00:00")
    text = pc.replace_substring_regex(text, r"(\.\d{6})\d+", r"\1")
    zoned = pc.if_else(pc.match_substring_regex(text, _ZONE), text, concat(text, "Z"))
    try:
        return zoned.cast(TIMESTAMP)
    except pa.ArrowInvalid:
        return None  # a 13th month: text after all


def _all_match(text: Column) -> bool:
    return pc.all(pc.match_substring_regex(text, _ISO_8601)).as_py() is not False


def _plain(table: pa.Table) -> pa.Table:
    """Spell out dictionary columns, which are a way of storing and not a type of values."""
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def _near(path: Path) -> str:
    from difflib import get_close_matches

    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist either"
    close = get_close_matches(path.name, [entry.name for entry in folder.iterdir()], n=1)
    return f"did you mean {folder / close[0]}?" if close else "check the path"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _as_files(
    results: Mapping[str, Any], into: Path, format: str, *, overwrite: bool
) -> dict[str, str]:

    targets = {name: into / f"{name}.{format}" for name in results}
    for target in targets.values():
        refuse_existing(target, overwrite=overwrite)
    into.mkdir(parents=True, exist_ok=True)
    return {
        name: str(write_table(to_arrow(table), targets[name], overwrite=overwrite))
        for name, table in results.items()
    }


def _by_spark(
    results: Mapping[str, Any], into: str, format: str, *, overwrite: bool
) -> dict[str, str]:
    """Let Spark write, which knows places that are no files of this machine."""
    from pyspark.errors import AnalysisException

    targets = {name: f"{into.rstrip('/')}/{name}" for name in results}
    try:
        for name, frame in results.items():
            frame.write.mode("overwrite" if overwrite else "errorifexists").format(format).option(
                "header", "true"
            ).save(targets[name])
    except AnalysisException as error:
        if "PATH_ALREADY_EXISTS" not in str(error):
            raise
        raise QueryError(
            f"the folder {targets[name]} exists already",
            hint="write elsewhere, or allow it: overwrite=True",
        ) from None
    finally:
        if hasattr(results, "unpersist"):
            results.unpersist()
    return targets
