"""Sinks that keep files: parquet in a directory, or a table of Spark's catalog."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.engines.spark.streaming.checkpoint.places import Place, as_directory
from weft.engines.spark.streaming.settings import setting
from weft.engines.spark.streaming.sinks.base import QUERY, named
from weft.errors import QueryError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from weft.engines.spark.streaming.sinks.base import Origin
    from weft.targets import RowIdentity

BATCH = "batch"
_OWNER = "_weft_stream"  # readers of parquet leave out what begins with an underscore


@dataclass(frozen=True, slots=True)
class FileSink:
    """Parquet files, a directory `batch=N` for each micro-batch that closed a window.

    Rows of several queries go to `query=NAME/batch=N`. A directory appears with all its files in
    one step where the file system can rename, and is never changed. Another stream counts its
    micro-batches from 0 as well, so a directory belongs to the stream that wrote there first.
    """

    place: Place

    def directory_of(self, query: str | None) -> Place:
        """Return the directory of the micro-batches of a query, or of the only one."""
        return self.place if query is None else self.place / f"{QUERY}={as_directory(query)}"

    def check(self, query: str, identity: RowIdentity | None) -> None:
        """Any rows can be kept."""

    def write_from(self, rows: DataFrame, batch_id: int, origin: Origin) -> None:
        """Write the batch, unless it is there from a run that was cut off afterwards."""
        parent = self.directory_of(origin.query if origin.shared else None)
        _owned(parent, origin.stream)
        name = f"{BATCH}={batch_id}"
        target = parent / name
        if "_SUCCESS" in target.names():
            return
        if target.local is None:
            rows.write.mode("overwrite").parquet(target.uri)
            return
        passing = (parent / f"_writing-{name}").local
        assert passing is not None
        rows.write.mode("overwrite").parquet(str(passing))
        _renamed(passing, target.local)


def _owned(directory: Place, stream: str) -> None:
    """Leave the name of the stream in a directory, or refuse one that has another's."""
    owner = (directory / _OWNER).read()
    if owner is None:
        (directory / _OWNER).write(stream)
    elif owner != stream:
        raise QueryError(
            f"{directory} has the micro-batches of another stream, and those of this one have the "
            "same numbers",
            hint="write into another directory, or go on from the checkpoint of that stream",
        )


def _renamed(passing: Path, target: Path) -> None:
    if target.exists():  # without its mark: what a file system that cannot rename left behind
        shutil.rmtree(target)
    passing.rename(target)


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table of Spark's catalog, partitioned by the number of the micro-batch."""

    name: str

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Write the partition of the batch, in place of what it held."""
        numbered = named(rows, query).withColumn(BATCH, F.lit(batch_id).cast("bigint"))
        session = rows.sparkSession
        if not session.catalog.tableExists(self.name):
            numbered.limit(0).write.partitionBy(BATCH).format("parquet").saveAsTable(self.name)
        # Only the partition of this batch is replaced, not the table.
        with setting(session, "spark.sql.sources.partitionOverwriteMode", "dynamic"):
            numbered.write.insertInto(self.name, overwrite=True)
