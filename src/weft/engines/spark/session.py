"""Spark sessions and Arrow tables: what the command line, the demo and the tests start from."""

from __future__ import annotations

import logging
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.binding import TableColumns
from weft.engines.spark.executors import use_this_python
from weft.errors import UnsupportedError, require
from weft.frames import in_microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # The number of rows bounds what goes to Python at a time; a bound of bytes as well would have
    # Spark measure the batch after every row. This is no bound.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
# Partitions are as many as cores, so there are none to join or split; planning anew after every
# exchange, each a job of its own, would only take time.
_ONE_MACHINE = {"spark.sql.adaptive.enabled": "false"}
# Java collects with all cores at once: scans leave much garbage and little else, and a few cores
# have none to spare for a collector that works beside them.
_COLLECTOR = {"spark.driver.defaultJavaOptions": "-XX:+UseParallelGC"}
_NAMES_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b|defaultJavaOptions")
_NAMES_MEMORY = re.compile(r"driver[.-]memory|driver_memory", re.IGNORECASE)
_OPTIONS = (
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_SUBMIT_OPTS",
    "JAVA_TOOL_OPTIONS",
    "SPARK_DRIVER_MEMORY",
)
# Spark takes 1 GB of any machine, which buffers of large files fill; Java itself takes a quarter.
_LEAST_MEMORY = 1 << 30
_MEMORY_SHARE = 4
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# A monitoring service on a free port, which tells how many rows a stage has read.
MONITORED = {"spark.ui.enabled": "true", "spark.ui.port": "0"}


def local_session(
    cores: int | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start a quiet Spark on this machine, or return the session that is already running.

    All cores unless told otherwise, a quarter of the memory, no web interface, time zone UTC, no
    log. `settings` are Spark's own, such as `{"spark.driver.memory": "4g"}`, and win over these.
    """
    require("pyspark", "spark", "a Spark session")
    from pyspark.sql import SparkSession

    use_this_python()
    remote = "SPARK_REMOTE" in os.environ
    workers = str(cores or os.cpu_count() or 1)
    # More partitions than cores only cost time where everything is on one machine.
    wanted = {"spark.sql.shuffle.partitions": workers, **_SETTINGS, **(settings or {})}
    if not remote:
        wanted = _ONE_MACHINE | wanted
    if not _is_chosen(_NAMES_COLLECTOR, settings or {}):
        wanted = _COLLECTOR | wanted
    if not _is_chosen(_NAMES_MEMORY, settings or {}):
        wanted = {"spark.driver.memory": _memory()} | wanted
    builder = SparkSession.builder.appName("weft")
    if not remote:
        builder = builder.master(f"local[{workers}]")
    for name, value in wanted.items():
        # A server that runs already takes the settings of SQL and no others.
        if not remote or name.startswith("spark.sql."):
            builder = builder.config(name, value)
    if not remote:
        _check_java()
    session: SparkSession = builder.getOrCreate()
    if not remote:
        session.sparkContext.setLogLevel("OFF")
    # PySpark logs every error it raises, and raises it as well: once is enough.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return session


def _is_chosen(names: re.Pattern[str], settings: Mapping[str, str]) -> bool:
    """Tell whether the user chose what these names stand for, in any of the places for it.

    >>> _is_chosen(_NAMES_COLLECTOR, {"spark.driver.extraJavaOptions": "-XX:+UseG1GC"})
    True
    """
    import pyspark

    given = (f"{name} {value}" for name, value in settings.items())
    variables = (f"{name} {os.environ[name]}" for name in _OPTIONS if name in os.environ)
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-defaults.conf")
    written = defaults.read_text(errors="replace") if defaults.is_file() else ""
    return any(names.search(text) for text in (*given, *variables, written))


def _memory() -> str:
    """Return a quarter of the memory that this process may use, at least what Spark would take."""
    known = hasattr(os, "sysconf")  # not on Windows
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else 0]
    for file in filter(Path.is_file, map(Path, _MEMORY_LIMITS)):
        limit = file.read_text().strip()
        sizes += [int(limit)] if limit.isdecimal() else []  # or "max": none
    return f"{max(min(sizes) // _MEMORY_SHARE, _LEAST_MEMORY) >> 20}m"


def _check_java() -> None:
    """Say what is missing before Spark's own scripts stumble over it."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(home, "bin") if home else None) is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH, and JAVA_HOME is not set"
        raise UnsupportedError(
            f"Spark cannot start: there is no Java {where}",
            hint="install Java 17 or newer and set JAVA_HOME, or use the local engine, which "
            "needs none",
        )


def current_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session in use, or start a local one with these settings."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() or local_session(settings=settings)


def to_spark(table: pa.Table, session: SparkSession) -> DataFrame:
    """Hand an Arrow table to Spark; a timestamp without a zone stays without one."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(at, field.name, in_microseconds(table.column(at)))
    plain = table.cast(pa.schema([pa.field(f.name, _plain(f.type)) for f in table.schema]))
    from weft.engines.spark.versions import frame_of

    return frame_of(session, plain, spark_schema(plain.schema))


def _plain(type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type):
        value: pa.DataType = type.value_type
        return value
    return type


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark types of Arrow columns; a timestamp without a zone stays without one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    converted: StructType = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return converted


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow types in which Python workers get rows of a DataFrame."""
    from weft.engines.spark.versions import arrow_fields

    return arrow_fields(schema)


def types_of(frame: DataFrame, expressions: Sequence[str]) -> list[pa.DataType]:
    """Return the types of expressions over a DataFrame as Spark has them, in terms of Arrow."""
    from pyspark.sql import functions as F

    named = [F.expr(text).alias(f"e{at}") for at, text in enumerate(expressions)]
    return list(arrow_schema(frame.select(*named).schema).types)


def columns_of_frame(frame: DataFrame) -> TableColumns:
    """Describe a DataFrame to the binder."""
    from pyspark.sql.types import (
        BooleanType,
        DecimalType,
        IntegralType,
        TimestampNTZType,
        TimestampType,
    )

    fields = frame.schema.fields
    exact = (IntegralType, DecimalType, BooleanType)
    return TableColumns(
        tuple(f.name for f in fields),
        tuple(f.name for f in fields if isinstance(f.dataType, TimestampType | TimestampNTZType)),
        frozenset(f.name for f in fields if isinstance(f.dataType, exact)),
    )
