"""What Spark knows of a DataFrame before it runs.

The footers of its parquet files, the statistics of its tables, how it will be read in parts, and
its session. None of it runs a job.
"""

from __future__ import annotations

import re
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
_PART_BYTES, _OPEN_BYTES = "128MB", "4MB"  # where a session does not say
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Footers(NamedTuple):
    """What the files of a DataFrame tell."""

    bounds: Bounds
    sample: pa.Table
    files: int
    size: int  # of all of them, in bytes


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


def tasks_over(frame: DataFrame, found: Footers) -> int | None:
    """Return how many tasks Spark makes of files: large ones are cut, small ones put together."""
    conf, cores = frame.sparkSession.conf, session_facts(frame).cores
    most = _bytes(conf.get("spark.sql.files.maxPartitionBytes", _PART_BYTES))
    opening = _bytes(conf.get("spark.sql.files.openCostInBytes", _OPEN_BYTES))
    if cores is None or most is None or opening is None:
        return None
    padded = found.size + found.files * opening
    return max(-(-padded // min(most, max(opening, padded // cores))), 1)


def told_rows(frame: DataFrame) -> int | None:
    """Return how many rows a DataFrame has by the statistics of its tables, where they were taken.

    `ANALYZE TABLE t COMPUTE STATISTICS` takes them; a session of Spark Connect does not tell. As
    with footers, a filter of the DataFrame is not known there.
    """
    own = getattr(frame, "_jdf", None)
    if own is None:
        return None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    plan = own.queryExecution().optimizedPlan()
    while plan.nodeName() in ("Project", "Filter"):
        plan = plan.children().head()
    try:
        table = plan.catalogTable()
    except Py4JError:  # not a table
        return None
    told = table.get().stats() if table.isDefined() else table
    rows = told.get().rowCount() if told.isDefined() else told
    return int(str(rows.get())) if rows.isDefined() else None


def _read(files: Sequence[str], time: str | None, keys: Sequence[str]) -> Footers:
    step = max(len(files) // _MOST_FOOTERS, 1)
    opened = [_opened(name) for name in files[::step]]
    rows = sum(one.metadata.num_rows for one in opened)
    bounds = [found for one in opened if time and (found := _time_bounds(one, time))]
    events = round(rows * len(files) / len(opened))
    first = min((low for low, _ in bounds), default=None)
    last = max((high for _, high in bounds), default=None)
    names = [name for name in keys if name in opened[0].schema_arrow.names]
    sizes = [_size(name) for name in files[::step]]
    size = sum(sizes) * len(files) // len(sizes)
    return Footers(Bounds(events, first, last), _sampled(opened, names), len(files), size)


def _opened(name: str) -> pq.ParquetFile:
    system, path = FileSystem.from_uri(name)
    return pq.ParquetFile(path, filesystem=system)


def _size(name: str) -> int:
    system, path = FileSystem.from_uri(name)
    return int(system.get_file_info(path).size)


def _bytes(text: str | None) -> int | None:
    """Read a size as Spark's settings write it.

    >>> _bytes("128MB"), _bytes("4194304b"), _bytes("1 g"), _bytes("much")
    (134217728, 4194304, 1073741824, None)
    """
    told = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)(i?b)?\s*", (text or "").lower())
    return int(told[1]) * _UNITS[told[2]] if told else None


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
