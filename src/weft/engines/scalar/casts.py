"""Values from one SQL type to another, with Spark's ANSI rules: what does not fit is an error."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from weft.engines.kinds import as_decimal, is_text
from weft.engines.scalar.text import text_of, text_of_double
from weft.errors import DataError
from weft.time import instant, instant_us

Convert = Callable[[Any], Any]
WIDE = Context(prec=76, rounding=ROUND_HALF_UP)
_DATE = re.compile(r"(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](.*))?)?)?\Z")
_TRUTH = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}


def converter(source: pa.DataType, target: pa.DataType) -> Convert | None:
    """Return how values of one type become another, or None when they are already.

    >>> converter(pa.string(), pa.int64())(" 12 "), converter(pa.float64(), pa.string())(1e20)
    (12, '1.0E20')
    """
    if source == target or pa.types.is_null(target) or pa.types.is_null(source):
        return None
    found = _conversion(source, target)

    def convert(value: Any) -> Any:
        try:
            return None if value is None else found(value)
        except (ValueError, ArithmeticError, TypeError, KeyError, AttributeError):
            raise DataError(
                f"cannot cast {value!r} to {sql_name(target)}",
                hint="filter such events out with WHERE",
            ) from None

    return convert


def _conversion(source: pa.DataType, target: pa.DataType) -> Convert:
    if pa.types.is_integer(target):
        return lambda value: within(to_whole(value), target)
    if pa.types.is_float32(target):
        return lambda value: _single(_to_double(value))
    if pa.types.is_floating(target):
        return _to_double
    if pa.types.is_decimal(target):
        return lambda value: conformed(_to_decimal(value), target)
    if is_text(target):
        single = pa.types.is_float32(source)
        return (lambda value: text_of_double(value, single=True)) if single else text_of
    if pa.types.is_boolean(target):
        return _to_boolean
    if pa.types.is_date(target):
        return _to_date
    if pa.types.is_timestamp(target):
        return to_instant if target.tz is not None else to_naive
    return lambda value: value


def sql_name(type: pa.DataType) -> str:
    """Name a type as SQL does.

    >>> sql_name(pa.int64()), sql_name(pa.decimal128(5, 2))
    ('BIGINT', 'DECIMAL(5, 2)')
    """
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision}, {type.scale})"
    names = {
        "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
        "float": "FLOAT", "double": "DOUBLE", "bool": "BOOLEAN", "date32[day]": "DATE",
    }  # fmt: skip
    return names.get(str(type)) or ("TIMESTAMP" if pa.types.is_timestamp(type) else str(type))


def within(value: int, type: pa.DataType) -> int:
    """Refuse an integer that its type cannot hold."""
    bits = type.bit_width
    signed = pa.types.is_signed_integer(type)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    if not low <= value < high:
        raise OverflowError(f"{value} does not fit {sql_name(type)}")
    return value


def conformed(value: Decimal, type: pa.DataType) -> Decimal:
    """Round half up to the scale of a type, and refuse digits before the point that do not fit.

    >>> conformed(Decimal("2.345"), pa.decimal128(5, 2))
    Decimal('2.35')
    """
    wanted = as_decimal(type)
    rounded = value.quantize(Decimal(1).scaleb(-wanted.scale), context=WIDE)
    if len(rounded.as_tuple().digits) > wanted.precision:
        raise OverflowError(f"{value} does not fit {sql_name(type)}")
    return rounded


def to_whole(value: Any) -> int:
    """Cut the fraction off a number, or read text as one; an instant counts its seconds."""
    if isinstance(value, str):
        stripped = value.strip()
        if not re.fullmatch(r"[+-]?\d+", stripped):
            raise ValueError(stripped)
        return int(stripped)
    if isinstance(value, dt.datetime):
        return instant_us(value) // 1_000_000
    whole: int = math.trunc(value)
    return whole


def _to_double(value: Any) -> float:
    if isinstance(value, str):
        # Java reads a suffix of the type, and no underscores between digits.
        return float("_" if "_" in value else re.sub(r"(?<=[\d.])[dDfF]\s*\Z", "", value))
    if isinstance(value, dt.datetime):
        return instant_us(value) / 1_000_000
    return float(value)


def _single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _to_decimal(value: Any) -> Decimal:
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)
    if isinstance(value, float):
        return Decimal(repr(value))
    return Decimal(int(value) if isinstance(value, bool) else value)


def _to_boolean(value: Any) -> bool:
    return _TRUTH[value.strip().lower()] if isinstance(value, str) else value != 0


def _to_date(value: Any) -> dt.date:
    if isinstance(value, dt.datetime):
        return to_instant(value).date()
    if isinstance(value, dt.date):
        return value
    found = _DATE.match(value.strip())
    if found is None:
        raise ValueError(value)
    return dt.date(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def to_instant(value: Any) -> dt.datetime:
    """Read an instant in UTC from a timestamp, a date, text, or seconds since 1970."""
    if isinstance(value, str):
        value = _read_instant(value.strip())
    elif isinstance(value, bool):
        raise ValueError(value)
    elif isinstance(value, int | float | Decimal):
        return instant(math.floor(value * 1_000_000))
    elif not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    aware: dt.datetime = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return aware.astimezone(dt.UTC)


def _read_instant(text: str) -> dt.datetime:
    found = _DATE.match(text)
    if found is None:
        raise ValueError(text)
    day = f"{int(found[1]):04d}-{int(found[2] or 1):02d}-{int(found[3] or 1):02d}"
    return dt.datetime.fromisoformat(f"{day} {found[4]}" if found[4] else day)


def to_naive(value: Any) -> dt.datetime:
    """Read an instant and leave its zone, which is UTC, unsaid."""
    return to_instant(value).replace(tzinfo=None)
