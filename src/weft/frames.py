"""Tables of any library, in and out: Arrow inside, the caller's own type back."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import DataError

FrameKind = Literal["arrow", "pandas", "polars", "spark"]


def kind_of(table: Any) -> FrameKind:
    """Tell which library a table belongs to, without loading that library."""
    module = type(table).__module__
    if isinstance(table, pa.Table | pa.RecordBatch):
        return "arrow"
    for prefix, kind in _MODULES.items():
        if module.startswith(prefix):
            return kind
    raise DataError(
        f"cannot read a table from {type(table).__name__}",
        hint="pass a pyspark, pandas or Polars DataFrame, or a pyarrow.Table",
    )


_MODULES: dict[str, FrameKind] = {"pandas": "pandas", "polars": "polars", "pyspark": "spark"}


def to_arrow(table: Any) -> pa.Table:
    """Return the table as Arrow; pandas' NaN in a column of numbers is read as NULL."""
    match kind_of(table):
        case "arrow":
            return pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        case "pandas":
            return pa.Table.from_pandas(table, preserve_index=False)
        case "polars":
            return _plain_strings(table.to_arrow())
        case "spark":
            collected: pa.Table = table.toArrow()
            return collected


def from_arrow(table: pa.Table, kind: FrameKind) -> Any:
    """Return the result in the type the caller came with."""
    match kind:
        case "arrow":
            return table
        case "pandas":
            return table.to_pandas()
        case "polars":
            import polars

            return polars.from_arrow(table)
        case "spark":
            from pyspark.sql import SparkSession

            session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
            return session.createDataFrame(table)


def _plain_strings(table: pa.Table) -> pa.Table:
    """Polars hands over string views and large strings; one string type inside is enough."""
    fields = [
        pa.field(f.name, pa.string())
        if pa.types.is_large_string(f.type) or pa.types.is_string_view(f.type)
        else f
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


def in_microseconds(column: Any) -> Any:
    """Return a timestamp column in microseconds; finer digits are cut off towards the past.

    A plain cast would refuse them, or round those before 1970 towards it.
    """
    if not pa.types.is_timestamp(column.type) or column.type.unit == "us":
        return column
    if column.type.unit == "ns":
        column = pc.floor_temporal(column, unit="microsecond")
    return column.cast(pa.timestamp("us", column.type.tz))
