"""A store through Spark: executors write its files, and read them to answer queries."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.engines.spark.executors import prepare_executors
from weft.engines.spark.session import current_session, spark_schema
from weft.engines.spark.slice_rows import DAYS, SliceRows
from weft.engines.spark.versions import with_told_schema
from weft.errors import DataError
from weft.expression import column
from weft.plan import Plan
from weft.query import Workload
from weft.store.answers import SliceReader, answer_columns, columns_asked, schema_of
from weft.store.cut import FOLDER, Cut, scan_of
from weft.store.disk import check_whole, flush, make_folder, move, parquet, remove_folder
from weft.store.kept import START
from weft.store.manifest import Manifest, SliceFile
from weft.store.planning import planned
from weft.store.serving import served

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

    from weft.query import Query
    from weft.store.kept import SliceSet

_COUNT, _KEYS = "rows", "keys"
_CHECKED = "parquet.page.verify-checksum.enabled"
_STAMPS = "spark.sql.parquet.outputTimestampType"  # what Spark writes by default, few can read


def of_schema(frame: DataFrame, schema: pa.Schema, source: str) -> DataFrame:
    """Bring a DataFrame to the types that the first events had."""
    fields = {field.name: field for field in spark_schema(schema)}
    missing = [name for name in fields if name not in frame.columns]
    if missing:
        raise DataError(
            f"the events of {source!r} have no column {missing[0]!r}",
            hint=f"the columns are {', '.join(frame.columns)}",
        )
    return frame.select(
        *(frame[column(name)].cast(field.dataType).alias(name) for name, field in fields.items())
    )


def slice_rows_of(kept: SliceSet) -> SliceRows:
    """Return what makes rows of a set of slices."""
    return SliceRows(scan_of(kept), kept.keys, kept.levels[0], kept.partials)


def cut_frame(store: Path, number: int, kept: SliceSet, events: DataFrame, name: str) -> Cut:
    """Fold a DataFrame into slices and write them, day by day."""
    # Both are counted while the files are written: no other pass over the events.
    given, made = Observation(), Observation()
    counted = events.observe(given, F.count(F.lit(1)).alias(_COUNT))
    rows = slice_rows_of(kept).of(counted, START)
    order = [column(own) for own in (DAYS, START, *(key for key, _ in kept.keys))]
    staged = store / FOLDER / f".{name}-{number}.unfinished"
    session = events.sparkSession
    before = session.conf.get(_STAMPS, None)
    session.conf.set(_STAMPS, "TIMESTAMP_MICROS")
    try:
        days = rows.repartition(DAYS).sortWithinPartitions(*order)
        keys = F.struct(*(column(name) for name, _ in kept.keys)) if kept.keys else F.lit(0)
        distinct = F.approx_count_distinct(keys).alias(_KEYS)
        days = days.observe(made, F.count(F.lit(1)).alias(_COUNT), distinct)
        days.write.partitionBy(DAYS).option("compression", "zstd").parquet(os.path.abspath(staged))
        files = _moved(store, number, kept, staged, name)
        if not files and not rows.head(1):
            return Cut((), 0, events.count())  # Spark drops what observes nothing from its plans
        found, wanted = sum(file.rows for file in files), made.get[_COUNT]
        if found != wanted:
            raise DataError(
                f"Spark has written {wanted:,} slices, and {found:,} are in {staged.parent}",
                hint="see that driver and executors share this folder; nothing was changed",
            )
        return Cut(files, made.get[_KEYS], given.get[_COUNT])
    finally:
        if before is None:
            session.conf.unset(_STAMPS)
        else:
            session.conf.set(_STAMPS, before)
        remove_folder(staged)


def _moved(
    store: Path, number: int, kept: SliceSet, staged: Path, name: str
) -> tuple[SliceFile, ...]:
    """Give what Spark has written its place, and describe it."""
    slices = kept.slices(0)
    found: list[SliceFile] = []
    for at, path in enumerate(sorted(staged.glob(f"{DAYS}=*/*.parquet"))):
        day = path.parent.name.partition("=")[2]
        starts = parquet.ParquetFile(path).read([START]).column(START)
        if not len(starts):
            continue
        numbers = starts.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
        _, ends = slices.bounds(slices.slice_of(numbers.max(keepdims=True)))
        place = f"{FOLDER}/set-{number}/day={day}/{name}-{at}-0.parquet"
        make_folder((store / place).parent)
        size = path.stat().st_size
        flush(path)
        move(path, store / place)
        flush((store / place).parent)
        bounds = int(numbers.min()), int(ends[0])
        found.append(SliceFile(place, number, 0, day, len(starts), size, *bounds))
    return tuple(found)


def answer_on_spark(
    plan: Plan, store: Path, manifest: Manifest, since_us: int | None = None
) -> dict[str, DataFrame]:
    """Answer queries by executors, which read the slices of the keys that are theirs."""
    session = current_session()
    prepare_executors(session)
    found: dict[str, DataFrame] = {}
    for query in plan.queries:
        source, schema = served(manifest, query, since_us), schema_of(query, manifest)
        files = SliceReader(store, manifest).files(source.number, (since_us, None))
        for file in files:
            check_whole(store / file.path, file.bytes)
        if not files:
            found[query.name] = session.createDataFrame([], spark_schema(schema))
            continue
        paths = [os.path.abspath(store / file.path) for file in files]
        rows = session.read.option(_CHECKED, "true").parquet(*paths)
        found[query.name] = answer_of_rows(rows, query, manifest, since_us)
    return found


def answer_of_rows(
    slices: DataFrame,
    query: Query,
    manifest: Manifest,
    since_us: int | None = None,
    columns: StructType | None = None,
) -> DataFrame:
    """Answer a query from rows of the slices that serve it, key by key; nothing is run yet.

    Their columns are told where nobody can be asked for them.
    """
    told = json.dumps(planned(manifest, Workload([query]), since_us).to_json())
    source, schema = served(manifest, query, since_us), schema_of(query, manifest)
    names = [START, *dict.fromkeys(columns_asked(source, query))]
    rows = slices.select(*map(column, names))
    asked = {text for _, text in query.keys}
    by = [column(own) for own, text in source.kept.keys if text in asked]
    # Keys that are computed could meet from several keys of the slices.
    together = rows.repartition(*by) if by and len(by) == len(asked) else rows.repartition(1)
    if columns is not None:
        with_told_schema(together, StructType([columns[name] for name in names]))
    answerer = Answerer(told, json.dumps(manifest.to_json()), query.name, since_us)
    return together.mapInArrow(answerer, spark_schema(schema))


@dataclass(frozen=True, slots=True)
class Answerer:
    """Runs on executors: all slices of some keys in, rows of one query out."""

    plan: str
    manifest: str
    query: str
    since_us: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Bring the slices together and close every window."""
        parts = [batch for batch in batches if batch.num_rows]
        if not parts:
            return
        plan = Plan.from_json(self.plan)
        manifest = Manifest.from_json(json.loads(self.manifest))
        rows = pa.Table.from_batches(parts)
        table = answer_columns(plan, manifest, self.query, rows, (self.since_us, None))
        yield from table.to_batches(1 << 16)
