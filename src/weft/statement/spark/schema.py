"""The columns of a result, to what Spark says of them: which may be NULL, and which never are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def same_types(frame: DataFrame, wanted: StructType) -> bool:
    """Tell whether columns have the names and types of a schema, NULL apart."""
    own = [(f.name, f.dataType.simpleString()) for f in frame.schema.fields]
    return own == [(f.name, f.dataType.simpleString()) for f in wanted.fields]


def with_nullability(frame: DataFrame, wanted: StructType) -> DataFrame:
    """Return the same rows; a column may be NULL by its type exactly where the schema says so."""
    pairs = list(zip(frame.schema.fields, wanted.fields, strict=True))
    if all(own.nullable == other.nullable for own, other in pairs):
        return frame
    places = [f"weft_{i}" for i in range(len(pairs))]
    columns = []
    for place, (own, other) in zip(places, pairs, strict=True):
        column: Column = F.col(place)
        if own.nullable and not other.nullable:
            column = F.coalesce(column, some_of(other.dataType))
        elif other.nullable and not own.nullable:
            column = nullable(column)
        columns.append(column.alias(other.name, metadata=own.metadata))
    return frame.toDF(*places).select(*columns)


def nullable(column: Column) -> Column:
    """Return a column that may be NULL by its type; what it costs goes when Spark optimizes."""
    return F.when(F.expr("1 = 1"), column)  # of TRUE itself Spark sees that it holds


def some_of(kind: DataType) -> Column:
    """Return any value of a type; it is never taken, and tells Spark that there is one."""
    if isinstance(kind, StructType):
        return F.struct(*(some_of(f.dataType).alias(f.name) for f in kind.fields))
    if isinstance(kind, ArrayType):
        return F.array().cast(kind)
    if isinstance(kind, MapType):
        return F.create_map().cast(kind)
    return F.lit("" if kind.typeName() in ("string", "binary") else 0).cast(kind)
