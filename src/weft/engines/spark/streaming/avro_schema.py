"""The Avro schema of rows: it follows from names and types of columns alone.

What Spark derives depends on what it happens to know of NULLs, and so on plans; a consumer needs
one that stays.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_PLAIN: dict[type[DataType], Any] = {
    T.BooleanType: "boolean",
    T.ByteType: "int",
    T.ShortType: "int",
    T.IntegerType: "int",
    T.LongType: "long",
    T.FloatType: "float",
    T.DoubleType: "double",
    T.StringType: "string",
    T.BinaryType: "bytes",
    T.DateType: {"type": "int", "logicalType": "date"},
    T.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    T.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}


def avro_schema(schema: StructType) -> str:
    """Return the schema of a record named `row`; every field may be NULL.

    >>> one = T.StructType([T.StructField("n", T.LongType(), False)])
    >>> avro_schema(one)
    '{"type": "record", "name": "row", "fields": [{"name": "n", "type": ["null", "long"]}]}'
    """
    fields = [
        {"name": field.name, "type": ["null", _type(field.name, field.dataType)]}
        for field in schema.fields
    ]
    return json.dumps({"type": "record", "name": "row", "fields": fields})


def _type(name: str, kind: DataType) -> Any:
    if isinstance(kind, T.DecimalType):
        told = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", **told}
    if isinstance(kind, T.ArrayType):
        return {"type": "array", "items": ["null", _type(name, kind.elementType)]}
    found = _PLAIN.get(type(kind))
    if found is None:
        raise UnsupportedError(
            f"column {name} is {kind.simpleString()}, for which there is no Avro type here",
            hint="give the schema to write with: schema=@rows.avsc, or write JSON",
        )
    return found
