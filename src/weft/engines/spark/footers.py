"""What Spark knows of a DataFrame before it runs: its parquet files' footers, and its session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from weft.frames import in_microseconds
from weft.statistics import Bounds, Statistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

_MOST_FOOTERS = 32  # of more files, some stand for all
_SAMPLED_ROWS = 1 << 15  # of each


class Footers(NamedTuple):
    """What the files of a DataFrame tell."""

    bounds: Bounds
    sample: pa.Table


def session_facts(frame: DataFrame) -> Statistics:
    """Return what a session brings: its cores, and whether it plans anew after every stage."""
    session = frame.sparkSession
    adaptive = session.conf.get("spark.sql.adaptive.enabled", "true") == "true"
    context = getattr(session, "_sc", None)  # a client of Spark Connect has none
    return Statistics(
        cores=None if context is None else context.defaultParallelism, adaptive=adaptive
    )


def read_footers(frame: DataFrame, time: str | None, keys: Sequence[str]) -> Footers | None:
    """Read the footers of the parquet files below a DataFrame; None where there are none.

    A filter of the DataFrame is not known there: events are then as many as before it.
    """
    try:
        files = [name for name in frame.inputFiles() if name.endswith(".parquet")]
        return _read(files, time, keys) if files else None
    except (OSError, pa.ArrowException, NotImplementedError):
        return None  # a place that only Spark can read


def _read(files: Sequence[str], time: str | None, keys: Sequence[str]) -> Footers:
    step = max(len(files) // _MOST_FOOTERS, 1)
    opened = [_opened(name) for name in files[::step]]
    rows = sum(one.metadata.num_rows for one in opened)
    bounds = [found for one in opened if time and (found := _time_bounds(one, time))]
    events = round(rows * len(files) / len(opened))
    first = min((low for low, _ in bounds), default=None)
    last = max((high for _, high in bounds), default=None)
    names = [name for name in keys if name in opened[0].schema_arrow.names]
    return Footers(Bounds(events, first, last), _sampled(opened, names))


def _opened(name: str) -> pq.ParquetFile:
    system, path = FileSystem.from_uri(name)
    return pq.ParquetFile(path, filesystem=system)


def _time_bounds(file: pq.ParquetFile, time: str) -> tuple[int, int] | None:
    """Read when the first and the last event is, unless the files were written without it."""
    schema = file.schema_arrow
    if time not in schema.names or not pa.types.is_timestamp(schema.field(time).type):
        return None
    column = next(
        (at for at in range(len(file.schema)) if file.schema.column(at).path == time), None
    )
    if column is None:
        return None
    found: list[int] = []
    for group in range(file.metadata.num_row_groups):
        told = file.metadata.row_group(group).column(column).statistics
        if told is None or not told.has_min_max:
            return None
        found += [_microseconds(value, schema.field(time).type) for value in (told.min, told.max)]
    return (min(found), max(found)) if found else None


def _microseconds(value: Any, type: pa.DataType) -> int:
    told = pa.array([value], pa.int64() if isinstance(value, int) else type)
    return int(in_microseconds(pa.chunked_array([told.cast(type)])).cast("int64")[0].as_py())


def _sampled(files: Sequence[pq.ParquetFile], names: Sequence[str]) -> pa.Table:
    """Read some rows of the key columns of the first file and the last."""
    batches = []
    for file in dict.fromkeys((files[0], files[-1])):
        found = file.iter_batches(batch_size=_SAMPLED_ROWS, columns=list(names))
        batches.append(next(iter(found), None))
    tables = [pa.Table.from_batches([batch]) for batch in batches if batch is not None]
    return pa.concat_tables(tables) if tables else pa.table({name: [] for name in names})
