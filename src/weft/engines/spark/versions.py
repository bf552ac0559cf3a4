"""What differs between the versions of Spark that weft runs on, in one place."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import types as T

from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Variants came with 4.0; a tuple goes where a type does, and of none there is no instance.
VARIANTS: tuple[type[Any], ...] = (T.VariantType,) if hasattr(T, "VariantType") else ()
_folders: list[Path] = []


def state_obstacle() -> str | None:
    """Say why Python cannot keep the state of a stream here; None if it can.

    `transformWithState`, which hands rows and not pandas frames over, came with 4.1.
    """
    from pyspark.sql import GroupedData

    if hasattr(GroupedData, "transformWithState"):
        return None
    version = pyspark.__version__
    return f"Spark {version} has no state for rows in Python, which Spark 4.1 and newer have"


def frame_of(session: SparkSession, table: pa.Table, schema: T.StructType) -> DataFrame:
    """Hand an Arrow table to Spark; before 4.0 there is no door for it, and it goes by a file."""
    if not pyspark.__version__.startswith("3."):
        return session.createDataFrame(table, schema=schema)
    if not str(session.conf.get("spark.master", "")).startswith("local"):
        raise UnsupportedError(
            f"Spark {pyspark.__version__} takes no Arrow tables, and its executors read no files "
            "of this machine",
            hint="read the table with spark.read, or use Spark 4.0 or newer",
        )
    if not _folders:
        _folders.append(Path(tempfile.mkdtemp(prefix="weft-tables-")))
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    path = _folders[0] / f"{uuid4().hex}.parquet"
    pq.write_table(table, path)
    return session.read.schema(schema).parquet(str(path))


def with_told_schema(frame: DataFrame, schema: T.StructType) -> DataFrame:
    """Tell a client of Spark Connect the columns of a DataFrame, and return the DataFrame.

    Before it takes a function over rows it asks the server for their columns, and tables that a
    pipeline will make are not there yet.
    """
    plain: Any = frame
    if hasattr(plain, "_cached_schema"):
        plain._cached_schema = schema
    return frame


def collected(frame: DataFrame) -> pa.Table:
    """Collect rows as an Arrow table, which DataFrames do by themselves from 4.0 on."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    plain: Any = frame
    batches = plain._collect_as_arrow()
    schema = pa.schema(arrow_fields(frame.schema))
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def arrow_fields(schema: T.StructType) -> pa.Schema:
    """Return the Arrow types of columns, instants in UTC: the zone was no choice before 4.2."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    plain: Any = to_arrow_schema
    found: pa.Schema = plain(schema)
    return found
