"""Sinks that keep files: parquet in a directory, or a table of Spark's catalog."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pyarrow.lib import ArrowInvalid
from pyarrow.parquet import read_metadata
from pyspark.sql import functions as F

from weft.engines.failpoints import may_stop
from weft.engines.spark.streaming.checkpoint.places import Place, as_directory
from weft.engines.spark.streaming.settings import setting
from weft.engines.spark.streaming.sinks.base import QUERY
from weft.errors import QueryError
from weft.expression import literal

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from weft.engines.spark.streaming.sinks.base import Origin
    from weft.targets import RowIdentity

BATCH = "batch"
_DONE = "_SUCCESS"  # which Spark leaves when all files of a directory are there
_PASSING = f"_writing-{BATCH}="
_OF_STREAM = "weft.stream"  # a property of tables
_OWNER = "_weft_stream"  # readers of parquet leave out what begins with an underscore


@dataclass(frozen=True, slots=True)
class FileSink:
    """Parquet files, a directory `batch=N` for each micro-batch that closed a window.

    Rows of several queries go to `query=NAME/batch=N`. A directory appears with all its files in
    one step where the file system can rename, and is changed only where a micro-batch is done once
    more and its files are not whole. Another stream counts its micro-batches from 0 as well, so a
    directory belongs to the stream that wrote there first.
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
        _owned(parent, origin.stream, batch_id)
        target = parent / f"{BATCH}={batch_id}"
        if _is_whole(target):
            return
        if target.local is None:
            rows.write.mode("overwrite").parquet(target.uri)
            return
        # A name of its own: another driver of the same checkpoint may be at the same batch.
        passing = target.local.with_name(f"{_PASSING}{batch_id}-{uuid4().hex}")
        rows.write.parquet(str(passing))
        may_stop("rows.written")
        _renamed(passing, target.local)
        _swept(target.local.parent, batch_id)


def _owned(directory: Place, stream: str, batch_id: int) -> None:
    """Leave the name of the stream in a directory, or refuse one that has another's."""
    try:
        owner = (directory / _OWNER).read()
    except UnicodeError as error:
        raise (directory / _OWNER).damaged(error) from None
    if owner is None:
        _refuse_strangers(directory, stream, batch_id)
        (directory / _OWNER).write(stream)
    elif owner != stream:
        raise _of_another(directory)


def _refuse_strangers(directory: Place, stream: str, batch_id: int) -> None:
    """Refuse micro-batches of which nobody says whose they are, and that would stand for ours."""
    numbers = [name.removeprefix(f"{BATCH}=") for name in directory.names()]
    latest = max((int(number) for number in numbers if number.isdecimal()), default=-1)
    if latest >= batch_id:
        raise QueryError(
            f"{directory} has the micro-batches up to {latest} of a stream that it does not name, "
            f"and this stream is at {batch_id}",
            hint=f"write to another place; or, if they are of this stream, put {stream} into the "
            f"file {_OWNER} there, which is lost",
        )


def _is_whole(target: Place) -> bool:
    """Tell whether a micro-batch is there with all its files, and these to their ends."""
    names = target.names()
    if _DONE not in names or target.local is None:
        return _DONE in names
    files = [name for name in names if name.endswith(".parquet")]
    try:
        for name in files:
            read_metadata(target.local / name)
    except (ArrowInvalid, OSError):
        return False
    return bool(files)


def _of_another(place: object) -> QueryError:
    return QueryError(
        f"{place} has the micro-batches of another stream, and those of this one have the same "
        "numbers",
        hint="write to another place, or go on from the checkpoint of that stream",
    )


def _renamed(passing: Path, target: Path) -> None:
    if target.exists() and not _is_whole(Place.of(target)):
        shutil.rmtree(target)  # damaged, or left behind by a file system that cannot rename
    try:
        passing.rename(target)
    except OSError:
        if not _is_whole(Place.of(target)):
            raise
        shutil.rmtree(passing)  # somebody was first, with the same rows


def _swept(parent: Path, batch_id: int) -> None:
    """Remove what was cut off in earlier micro-batches, which are done."""
    for path in parent.glob(f"{_PASSING}*"):
        number = path.name.removeprefix(_PASSING).partition("-")[0]
        if number.isdecimal() and int(number) < batch_id:
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table of Spark's catalog, partitioned by the number of the micro-batch.

    Rows of several queries, which must have the same columns, are partitioned by the query as well.
    As a directory does, a table belongs to the stream that wrote there first.
    """

    name: str

    def check(self, query: str, identity: RowIdentity | None) -> None:
        """Any rows can be kept."""

    def write_from(self, rows: DataFrame, batch_id: int, origin: Origin) -> None:
        """Write the partition of the batch, in place of what it held."""
        query = origin.query if origin.shared else None
        self._made(rows, query)
        self._owned(rows.sparkSession, origin.stream)
        self.write(rows, batch_id, query)

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Write the partition of the batch and the query, whatever stream they are of."""
        self._made(rows, query)
        numbered = rows.withColumns(_partitions(batch_id, query))
        known = rows.sparkSession.table(self.name).columns
        if known != numbered.columns:
            raise QueryError(
                f"the table {self.name} has the columns {', '.join(known)}, and rows "
                f"{', '.join(numbered.columns)}",
                hint="give queries of other columns tables of their own",
            )
        # Only the partition of this batch is replaced, not the table.
        with setting(rows.sparkSession, "spark.sql.sources.partitionOverwriteMode", "dynamic"):
            numbered.write.insertInto(self.name, overwrite=True)

    def _made(self, rows: DataFrame, query: str | None) -> None:
        if not rows.sparkSession.catalog.tableExists(self.name):
            parts = _partitions(0, query)
            empty = rows.withColumns(parts).limit(0)
            empty.write.partitionBy(*parts).format("parquet").saveAsTable(self.name)

    def _owned(self, session: SparkSession, stream: str) -> None:
        """Leave the name of the stream with the table, or refuse one that has another's."""
        properties = session.sql(f"SHOW TBLPROPERTIES {self.name}").collect()
        owner = {row[0]: row[1] for row in properties}.get(_OF_STREAM)
        if owner is None:
            told = f"({literal(_OF_STREAM)} = {literal(stream)})"
            session.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES {told}")
        elif owner != stream:
            raise _of_another(f"the table {self.name}")


def _partitions(batch_id: int, query: str | None) -> dict[str, Column]:
    named = {} if query is None else {QUERY: F.lit(query)}
    return {**named, BATCH: F.lit(batch_id).cast("bigint")}
