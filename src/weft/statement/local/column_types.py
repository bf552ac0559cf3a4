"""Types as Spark has them, in terms of Arrow, and the column of DuckDB that holds each.

Times of both kinds are a TIMESTAMP in UTC there, and lengths of time a BIGINT of microseconds:
no zone and no calendar of DuckDB's has a part in an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.frames import in_microseconds
from weft.statement.relations import Obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    Decimals = pa.Decimal128Type[Any, Any]

INSTANT = pa.timestamp("us", "UTC")  # Spark's TIMESTAMP
WALL_TIME = pa.timestamp("us")  # Spark's TIMESTAMP_NTZ
LENGTH = pa.duration("us")  # Spark's INTERVAL DAY TO SECOND
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
REALS = (pa.float32(), pa.float64())
_DIGITS: dict[pa.DataType, int] = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_NAMES: dict[pa.DataType, tuple[str, str]] = {  # in DuckDB, and in Spark
    pa.bool_(): ("BOOLEAN", "boolean"),
    pa.int8(): ("TINYINT", "tinyint"),
    pa.int16(): ("SMALLINT", "smallint"),
    pa.int32(): ("INTEGER", "int"),
    pa.int64(): ("BIGINT", "bigint"),
    pa.float32(): ("FLOAT", "float"),
    pa.float64(): ("DOUBLE", "double"),
    pa.string(): ("VARCHAR", "string"),
    pa.binary(): ("BLOB", "binary"),
    pa.date32(): ("DATE", "date"),
    INSTANT: ("TIMESTAMP", "timestamp"),
    WALL_TIME: ("TIMESTAMP", "timestamp_ntz"),
    LENGTH: ("BIGINT", "interval day to second"),
    pa.null(): ("INTEGER", "void"),
}


def duck_name(kind: pa.DataType) -> str:
    """Name the type of DuckDB that holds a type.

    >>> duck_name(pa.struct([("start", INSTANT)])), duck_name(pa.decimal128(12, 2))
    ('STRUCT("start" TIMESTAMP)', 'DECIMAL(12,2)')
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        fields = (f"{quoted(field.name)} {duck_name(field.type)}" for field in kind)
        return f"STRUCT({', '.join(fields)})"
    if pa.types.is_list(kind):
        return f"{duck_name(kind.value_type)}[]"
    return _NAMES[kind][0]


def spark_name(kind: pa.DataType) -> str:
    """Name a type as Spark does."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{spark_name(f.type)}' for f in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{spark_name(kind.value_type)}>"
    return _NAMES[kind][1] if kind in _NAMES else str(kind)


def quoted(name: str) -> str:
    """Write a name of DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def spark_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that Spark reads a column of Arrow as; None where that is not known here."""
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return INSTANT if kind.tz else WALL_TIME
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_struct(kind):
        found = [(field.name, spark_type(field.type)) for field in kind]
        fields = [(name, one) for name, one in found if one is not None]
        return pa.struct(fields) if len(fields) == len(found) else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = spark_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    known = kind in _NAMES and kind not in (pa.null(), LENGTH)
    return kind if known or pa.types.is_decimal128(kind) else None


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of Arrow in which DuckDB gets and gives values of a type."""
    if kind == INSTANT:
        return WALL_TIME
    if kind == LENGTH:
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, stored_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(stored_type(kind.value_type))
    return pa.int32() if pa.types.is_null(kind) else kind


def to_stored(column: Any, kind: pa.DataType) -> Any:
    """Return a column as DuckDB is to have it."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return in_microseconds(column).cast(stored_type(kind))


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a type is one of numbers."""
    return kind in INTEGERS or kind in REALS or pa.types.is_decimal(kind)


def is_time(kind: pa.DataType) -> bool:
    """Tell whether a type is one of times."""
    return pa.types.is_timestamp(kind)


def is_plain(kind: pa.DataType) -> bool:
    """Tell whether values of a type are compared, grouped and ordered alike by Spark and DuckDB."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind)) and kind != pa.binary()


def decimal_for(kind: pa.DataType, literal: Decimal | None = None) -> Decimals:
    """Return the decimal that an integer is taken for beside one; a literal is as it is written."""
    if pa.types.is_decimal128(kind):
        return kind
    if literal is not None:
        return pa.decimal128(max(1, len(str(abs(int(literal))))), 0)
    return pa.decimal128(_DIGITS[kind], 0)


def decimal_type(precision: int, scale: int) -> Decimals:
    """Return a decimal that holds every digit; more than 38 Spark would have to give up."""
    if precision > 38:
        raise Obstacle(
            f"decimal({precision},{scale}) has more than 38 digits, of which Spark drops"
        )
    return pa.decimal128(precision, scale)


def widest(kinds: Iterable[pa.DataType], what: str) -> pa.DataType:
    """Return the type that Spark brings values of some types to.

    >>> str(widest([pa.int32(), pa.null(), pa.float64()], "CASE"))
    'double'
    """
    found: pa.DataType = pa.null()
    for kind in kinds:
        wider = _wider(found, kind)
        if wider is None:
            raise Obstacle(f"{what} is of {spark_name(found)} and {spark_name(kind)} at once")
        found = wider
    return found


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.index)
    pair = {one, other}
    decimal = pa.types.is_decimal(one) or pa.types.is_decimal(other)
    if pa.float64() in pair and is_number(one) and is_number(other):
        return pa.float64()
    if pa.float32() in pair:
        return None
    if decimal and is_number(one) and is_number(other):
        left, right = decimal_for(one), decimal_for(other)
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        return decimal_type(whole + scale, scale)
    if pa.date32() in pair and (is_time(one) or is_time(other)):
        return one if is_time(one) else other
    return None
