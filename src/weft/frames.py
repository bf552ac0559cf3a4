"""Tables of any library, in and out: Arrow inside, the caller's own type back.

Whatever hands out a stream of Arrow batches (`__arrow_c_stream__`) is a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

FrameKind = Literal["arrow", "pandas", "polars", "spark"]


def kind_of(table: Any) -> FrameKind:
    """Tell which library a table belongs to, without loading that library.

    >>> kind_of(pa.table({"x": [1]}).to_reader())
    'arrow'
    """
    if isinstance(table, pa.Table | pa.RecordBatch):
        return "arrow"
    for one in type(table).__mro__:
        kind = _KINDS.get((one.__module__.partition(".")[0], one.__name__))
        if kind is not None:
            return kind
    if hasattr(table, "__arrow_c_stream__"):
        return "arrow"
    raise DataError(
        f"cannot read a table from {type(table).__name__}",
        hint="pass a pyspark, pandas or Polars DataFrame, or anything with __arrow_c_stream__, "
        "such as a pyarrow.Table or a DuckDB relation",
    )


_KINDS: dict[tuple[str, str], FrameKind] = {
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
    ("polars", "LazyFrame"): "polars",
    ("pyspark", "DataFrame"): "spark",
}


def to_arrow(table: Any) -> pa.Table:
    """Return the table as Arrow; pandas' NaN in a column of numbers is read as NULL.

    A lazy frame is collected, and a stream read to its end.
    """
    match kind_of(table):
        case "arrow":
            return _with_plain_text(_of_arrow(table), _VIEWS)
        case "pandas":
            return _of_pandas(table)
        case "polars":
            if hasattr(table, "collect"):
                table = table.collect(engine="streaming")
            return _with_plain_text(table.to_arrow(), _VIEWS | _LARGE)
        case "spark":
            return _of_spark(table)


def _of_spark(table: Any) -> pa.Table:
    import pyarrow as pa

    if hasattr(table, "toArrow"):
        rows: pa.Table = table.toArrow()
        return rows
    batches = table._collect_as_arrow()  # before Spark 4.0; of no rows there are no batches
    return pa.Table.from_batches(batches) if batches else _of_pandas(table.toPandas())


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


def _of_arrow(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    try:
        return pa.RecordBatchReader.from_stream(table).read_all()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        told = str(error).splitlines()[0].rstrip(".")
        raise DataError(
            f"cannot read a table from {type(table).__name__}: {told}",
            hint="pass something with named columns, not one column by itself",
        ) from error


def _of_pandas(frame: Any) -> pa.Table:
    """Read a frame; an index that holds times is a column, or several, under its names."""
    import pandas

    table = pa.Table.from_pandas(frame, preserve_index=False)
    levels = [frame.index.get_level_values(at) for at in range(frame.index.nlevels)]
    if any(isinstance(level, pandas.DatetimeIndex) for level in levels):
        for at, level in enumerate(levels):
            unnamed = "index" if len(levels) == 1 else f"level_{at}"  # as pandas resets an index
            name = unnamed if level.name is None else str(level.name)
            if name not in table.column_names:  # a column goes before an index of its name
                table = table.append_column(name, pa.Array.from_pandas(level))
    return table


# As DataFusion hands text and bytes out, and as Polars does.
_VIEWS: dict[int, Any] = {pa.string_view().id: pa.string(), pa.binary_view().id: pa.binary()}
_LARGE: dict[int, Any] = {pa.large_string().id: pa.string()}


def _with_plain_text(table: pa.Table, plain: dict[int, Any]) -> pa.Table:
    """Read columns of some types as plain ones: one type of text inside is enough."""
    if not any(type.id in plain for type in table.schema.types):
        return table
    fields = [f.with_type(plain.get(f.type.id, f.type)) for f in table.schema]
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


def in_parts(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns to sort or group by: fields, and whether there are any, in place of structs.

    >>> whole = pa.table({"k": [{"x": 1}, None, {"x": None}]})
    >>> [column.to_pylist() for column in in_parts(whole, ["k"]).columns]
    [[True, False, True], [1, None, None]]
    >>> in_parts(whole.schema.empty_table(), ["k"]).num_rows
    0
    """
    found = [part for name in names for part in _parts(table[name])]
    return pa.table(found, [str(at) for at in range(len(found))])


def _parts(column: pa.ChunkedArray[Any]) -> list[pa.ChunkedArray[Any]]:
    if pa.types.is_dictionary(column.type):
        return _parts(column.cast(column.type.value_type))
    if pa.types.is_struct(column.type):
        if not column.num_chunks:  # of which Arrow knows no fields
            column = pa.chunked_array([pa.array([], column.type)])
        fields = [part for own in column.flatten() for part in _parts(own)]
        return [column.is_valid(), *fields]
    return [column]
