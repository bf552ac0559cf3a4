"""Kinds of types, the type in which two of them meet, and Spark's rules for decimals."""

from __future__ import annotations

from typing import Any
from typing import Literal as Word

import pyarrow as pa

Operator = Word["add", "sub", "mul", "div", "mod"]
INSTANT = pa.timestamp("us", "UTC")
MOST_DIGITS = 38
_LEAST_SCALE = 6  # what Spark keeps of the scale when a precision beyond 38 is cut
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def is_text(type: pa.DataType) -> bool:
    """Tell whether values of this type are text."""
    return bool(
        pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)
    )


def is_number(type: pa.DataType) -> bool:
    """Tell whether values of this type are numbers."""
    return bool(
        pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
    )


def kind_of(type: pa.DataType) -> str:
    """Name the family of a type.

    >>> kind_of(pa.int8()), kind_of(pa.date32())
    ('number', 'date')
    """
    if is_number(type):
        return "number"
    if is_text(type):
        return "text"
    if pa.types.is_boolean(type):
        return "boolean"
    if pa.types.is_date(type):
        return "date"
    return "timestamp" if pa.types.is_timestamp(type) else "other"


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """Cut a precision beyond 38 as Spark does: digits before the point go first to the scale.

    >>> str(bounded_decimal(21, 4)), str(bounded_decimal(77, 41))
    ('decimal128(21, 4)', 'decimal128(38, 6)')
    """
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    kept = max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return pa.decimal128(MOST_DIGITS, kept)


def decimal_result(operator: Operator, a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """Return the type of an operation on two decimals.

    >>> p = pa.decimal128(10, 2)
    >>> [str(decimal_result(o, p, p)) for o in ("add", "mul", "div", "mod")]
    ['decimal128(11, 2)', 'decimal128(21, 4)', 'decimal128(23, 13)', 'decimal128(10, 2)']
    """
    x, y = as_decimal(a), as_decimal(b)
    whole = (x.precision - x.scale, y.precision - y.scale)
    scale = max(x.scale, y.scale)
    if operator == "mul":
        return bounded_decimal(x.precision + y.precision + 1, x.scale + y.scale)
    if operator == "div":
        scale = max(_LEAST_SCALE, x.scale + y.precision + 1)
        return bounded_decimal(whole[0] + y.scale + scale, scale)
    if operator == "mod":
        return bounded_decimal(min(whole) + scale, scale)
    return bounded_decimal(max(whole) + scale + 1, scale)


def as_decimal(type: pa.DataType) -> pa.Decimal128Type[Any, Any]:
    """Return the decimal that holds any number of a type.

    >>> str(as_decimal(pa.int32()))
    'decimal128(10, 0)'
    """
    if pa.types.is_decimal(type):
        # Beyond 38 digits there is no decimal in Spark; the widest stands for them.
        return pa.decimal128(min(type.precision, MOST_DIGITS), type.scale)
    return pa.decimal128(_DIGITS[type.bit_width], 0)


def wider_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the type that values of two types are brought to before they meet, if any.

    >>> str(wider_type(pa.int32(), pa.decimal128(10, 2))), wider_type(pa.bool_(), pa.int8())
    ('decimal128(12, 2)', None)
    """
    if a == b:
        return a
    if is_text(a) or is_text(b):
        other = b if is_text(a) else a
        if is_text(other):
            return pa.string()
        if is_number(other):
            return pa.int64() if pa.types.is_integer(other) else pa.float64()
        if not pa.types.is_nested(other):
            return other
    if is_number(a) and is_number(b):
        return _wider_number(a, b)
    if all(pa.types.is_date(t) or pa.types.is_timestamp(t) for t in (a, b)):
        if pa.types.is_timestamp(a) and pa.types.is_timestamp(b):
            return a if a.tz == b.tz else INSTANT
        stamp = a if pa.types.is_timestamp(a) else b
        return pa.timestamp("us", stamp.tz) if pa.types.is_timestamp(stamp) else pa.date32()
    return None


def _wider_number(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(a) or pa.types.is_floating(b):
        return pa.float64()
    if pa.types.is_integer(a) and pa.types.is_integer(b):
        return pa.int64()
    x, y = as_decimal(a), as_decimal(b)
    scale = max(x.scale, y.scale)
    whole = max(x.precision - x.scale, y.precision - y.scale)
    return pa.decimal128(min(whole + scale, MOST_DIGITS), scale)
