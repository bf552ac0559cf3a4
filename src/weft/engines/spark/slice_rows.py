"""Slices of events as rows that a store keeps: keys, `start`, and plain columns of partials.

Catalyst folds what it can. Partials of many values, and those of a user's own, are made by the
local engine's slicing, wherever the events lie.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import DecimalType, DoubleType, FloatType

from weft.engines.local.partials.stored_columns import column_of_partials
from weft.engines.local.values.arrow import of_numbers
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import events_of, read_scan
from weft.engines.local.windows.flow import slice_batch
from weft.engines.local.windows.slices import slices_of_edges
from weft.engines.spark.columnar.arrow_batches import chunks_of, in_batches
from weft.engines.spark.executors import prepare_executors
from weft.engines.spark.native.aggregation import aggregated
from weft.engines.spark.native.events import TIME
from weft.engines.spark.session import arrow_schema, spark_schema
from weft.engines.spark.sql.fan_out import START
from weft.engines.spark.sql.kinds import SPARK_KINDS, is_holistic, is_spread
from weft.engines.spark.sql.slice_bounds import slice_start
from weft.engines.spark.sql.timestamps import micros_of
from weft.engines.spark.text_rows import taken
from weft.engines.spark.versions import with_told_schema
from weft.errors import InternalError
from weft.expression import column, columns_of
from weft.time import DAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from weft.aggregates import Partial
    from weft.plan import Scan
    from weft.window import Edges

Named = tuple[tuple[str, str], ...]  # (column, expression)
DAYS = "day"
_WIDEST = 38


@dataclass(frozen=True, slots=True)
class SliceRows:
    """What rows of slices have: where time is cut, which keys, which partials under which names."""

    scan: Scan
    keys: Named
    edges: Edges
    partials: tuple[tuple[str, Partial], ...]

    def of(self, events: DataFrame, start: str) -> DataFrame:
        """Return one row or more per key and slice, with its first instant under this name."""
        if all(_by_catalyst(partial) for _, partial in self.partials):
            rows = self._by_catalyst(events)
        else:
            rows = self._by_kernels(events, arrow_schema(events.schema))
        day = f"({START} - pmod({START}, {DAY}L)) div {DAY}L"
        return rows.selectExpr(
            *self._columns(start),
            f"cast(date_from_unix_date(cast({day} AS int)) AS string) AS {DAYS}",
        )

    def wherever_read(self, events: DataFrame, schema: pa.Schema, start: str) -> DataFrame:
        """Return rows of slices without moving an event or keeping state, of a stream as well.

        Events have this schema; the DataFrame is not asked for it.
        """
        return self._by_kernels(events, schema).selectExpr(*self._columns(start))

    def schema(self, events: pa.Schema, start: str) -> StructType:
        """Return the columns of such rows, if events have these."""
        made = self.cut(one_event(self._read(events), self.scan.time), filtered=False).schema
        first = pa.field(start, pa.timestamp("us", "UTC"))
        others = [made.field(name) for name, _ in (*self.keys, *self.partials)]
        return spark_schema(pa.schema([first, *others]))

    def _read(self, events: pa.Schema) -> pa.Schema:
        asked = (*self.scan.columns, *_columns_of_filter(self.scan), self.scan.time)
        return pa.schema([events.field(name) for name in dict.fromkeys(asked) if name is not None])

    def _columns(self, start: str) -> list[str]:
        names = [column(name) for name, _ in (*self.keys, *self.partials)]
        return [f"timestamp_micros({START}) AS {column(start)}", *names]

    def _by_catalyst(self, events: DataFrame) -> DataFrame:
        scan = self.scan
        if scan.time is None:
            raise InternalError(f"the time column of {scan.source!r} was not looked up")
        time = column(scan.time)
        kept = events.where(f"{time} IS NOT NULL")
        kept = kept if scan.where is None else kept.where(scan.where)
        texts = dict.fromkeys(arg for _, partial in self.partials for arg in partial.args)
        names = {text: f"a{i}" for i, text in enumerate(texts)}
        keys = tuple(f"k{i}" for i in range(len(self.keys)))
        micros = micros_of(time, events.schema[scan.time].dataType, scan.time)
        frame = kept.selectExpr(
            *(f"{text} AS {own}" for own, (_, text) in zip(keys, self.keys, strict=True)),
            f"{micros} AS {TIME}",
            *(f"{text} AS {own}" for text, own in names.items()),
        )
        types = {text: frame.schema[own].dataType for text, own in names.items()}
        made = {
            f"p{i}": SPARK_KINDS[p.kind].lift(f"p{i}", tuple(names[a] for a in p.args), TIME)
            for i, (_, p) in enumerate(self.partials)
        }
        sliced = frame.selectExpr("*", f"{slice_start(TIME, self.edges)} AS {START}")
        rows = aggregated(sliced, (*keys, START), made)
        return taken(rows).selectExpr(
            START,
            *(f"{own} AS {column(name)}" for own, (name, _) in zip(keys, self.keys, strict=True)),
            *(
                f"{_stored(f'p{i}', p, types)} AS {column(name)}"
                for i, (name, p) in enumerate(self.partials)
            ),
        )

    def _by_kernels(self, events: DataFrame, schema: pa.Schema) -> DataFrame:
        prepare_executors(events.sparkSession)
        own = self._read(schema)
        sample = self.cut(one_event(own, self.scan.time), filtered=False)
        frame = with_told_schema(events.select(*map(column, own.names)), spark_schema(own))
        return frame.mapInArrow(Cutter(self), spark_schema(sample.schema))

    def cut(self, table: pa.Table, *, filtered: bool = True) -> pa.Table:
        """Slice events here, all kinds of partials alike."""
        scan = self.scan if filtered else replace(self.scan, where=None)
        slices = slices_of_edges(self.edges)
        if slices is None:
            raise InternalError("slices of time without edges")
        codes = KeyCodes(len(self.keys))
        events = events_of(read_scan(scan, table), self.keys, codes)
        flow = slice_batch(events, slices, tuple(p for _, p in self.partials), 1)
        columns = [
            of_numbers(flow.starts_us, pa.int64()),
            *codes.decode(flow.keys),
            *(column_of_partials(partial, flow.partials) for _, partial in self.partials),
        ]
        names = (START, *(name for name, _ in (*self.keys, *self.partials)))
        return pa.table(columns, names=[*names])


def one_event(schema: pa.Schema, time: str | None) -> pa.Table:
    """Return an event with a time and nothing else, to see which types its slice has."""
    columns = [
        pa.array([0], pa.int32() if pa.types.is_date32(f.type) else pa.int64()).cast(f.type)
        if f.name == time
        else pa.array([None], f.type)
        for f in schema
    ]
    return pa.table(columns, names=schema.names)


def _columns_of_filter(scan: Scan) -> tuple[str, ...]:
    return () if scan.where is None else columns_of(scan.where)


def _by_catalyst(partial: Partial) -> bool:
    if partial.kind in ("bag", "set", "tally"):  # which Catalyst keeps in forms of its own
        return False
    return partial.kind in SPARK_KINDS and not is_spread(partial) and not is_holistic(partial)


def _stored(name: str, partial: Partial, types: dict[str, DataType]) -> str:
    """Return a partial of Catalyst's as a store has it."""
    if partial.kind != "sum":
        return name
    type = types[partial.args[0]]
    if isinstance(type, DecimalType):
        return f"cast({name} AS decimal({_WIDEST}, {type.scale}))"
    if isinstance(type, DoubleType | FloatType):
        return f"CASE WHEN {name} IS NOT NULL THEN named_struct('sum', {name}, 'rest', 0D) END"
    return name


@dataclass(frozen=True, slots=True)
class Cutter:
    """Runs on executors: events in, rows of slices out, chunk by chunk."""

    rows: SliceRows

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Slice every chunk by itself; who reads them brings equal slices together."""
        for chunk in chunks_of(batches):
            yield from in_batches(self.rows.cut(chunk))
