"""Tables in files as DataFrames: parquet is left to Spark, which reads only what a plan needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from weft.engines.spark.session import to_spark
from weft.tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def read_frame(path: Path, session: SparkSession) -> DataFrame:
    """Read a table from a file, or from a folder of files, with the types that `read_table` gives.

    A folder of parquet may be partitioned. CSV and JSON are read here, and handed to Spark.
    """
    first = _first_parquet(path)
    if first is None or _has_nanoseconds(first):
        return to_spark(read_table(path), session)
    return session.read.parquet(str(path.absolute()))


def _first_parquet(path: Path) -> Path | None:
    """Return one parquet file of a table; None where the table is in another format."""
    if path.is_dir():
        found = sorted(p for p in path.rglob("*.parquet") if p.is_file() and p.name[0] not in "._")
        return found[0] if found else None
    return path if path.suffix.lower() == ".parquet" and path.is_file() else None


def _has_nanoseconds(path: Path) -> bool:
    # Spark's instants are microseconds, and it refuses files with finer ones.
    types = pq.read_schema(path).types
    return any(pa.types.is_timestamp(type) and type.unit == "ns" for type in types)
