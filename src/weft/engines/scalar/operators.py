"""Arithmetic, comparison and the functions over numbers and times, on values of known types."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from weft.aggregates.extremes import order_key
from weft.engines.scalar.casts import WIDE, conformed, to_instant, within
from weft.errors import DataError

Binary = Callable[[Any, Any], Any]


def _refuse_zero(divisor: Any) -> None:
    if divisor == 0:
        raise DataError("division by zero", hint="guard it with NULLIF(divisor, 0)")


def _divided(a: Any, b: Any) -> float:
    _refuse_zero(b)
    return float(a) / float(b)


def _real_rest(a: float, b: float) -> float:
    _refuse_zero(b)
    return math.nan if math.isinf(a) or math.isnan(a + b) else math.fmod(a, b)


def _quotient(a: int, b: int) -> int:
    _refuse_zero(b)
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _decimal_quotient(a: Decimal, b: Decimal) -> Decimal:
    _refuse_zero(b)
    return WIDE.divide(a, b)


def _decimal_rest(a: Decimal, b: Decimal) -> Decimal:
    _refuse_zero(b)
    return WIDE.remainder(a, b)


_WHOLE: dict[type[exp.Expr], Binary] = {
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Mod: lambda a, b: a - b * _quotient(a, b),
}
_REAL: dict[type[exp.Expr], Binary] = {
    **_WHOLE,
    exp.Mod: _real_rest,
    exp.Div: _divided,
}
_EXACT: dict[type[exp.Expr], Binary] = {
    exp.Add: WIDE.add,
    exp.Sub: WIDE.subtract,
    exp.Mul: WIDE.multiply,
    exp.Mod: _decimal_rest,
    exp.Div: _decimal_quotient,
}


def arithmetic(operator: type[exp.Expr], result: pa.DataType) -> Binary:
    """Return an operator on values of one type; a result beyond its type is an error.

    >>> arithmetic(exp.Mul, pa.decimal128(21, 4))(Decimal("2.50"), Decimal("2.65"))
    Decimal('6.6250')
    """
    if pa.types.is_decimal(result):
        exact = _EXACT[operator]
        return lambda a, b: conformed(exact(a, b), result)
    if pa.types.is_integer(result):
        whole = _WHOLE[operator]
        return lambda a, b: within(whole(a, b), result)
    return _REAL[operator]


def divided_whole(a: Any, b: Any) -> int:
    """Divide whole numbers or decimals and cut the fraction off."""
    if isinstance(a, int) and isinstance(b, int):
        return within(_quotient(a, b), pa.int64())
    _refuse_zero(b)
    return within(int(WIDE.divide_int(a, b)), pa.int64())


_TESTS: dict[type[exp.Expr], Binary] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
}


def comparison(operator: type[exp.Expr]) -> Binary:
    """Return a comparison of two values of one type: NaN equals itself and is the greatest.

    >>> comparison(exp.GT)(math.nan, math.inf), comparison(exp.EQ)(math.nan, math.nan)
    (True, True)
    """
    test = _TESTS[operator]
    return lambda a, b: test(order_key(a), order_key(b))


def rounded(value: Any, digits: int, result: pa.DataType) -> Any:
    """Round half away from zero, as SQL has it.

    >>> rounded(2.5, 0, pa.float64()), rounded(-25, -1, pa.int64())
    (3.0, -30)
    """
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if isinstance(value, Decimal):
        return conformed(_at(value, min(digits, _scale(value))), result)
    if isinstance(value, int):
        return within(int(_at(Decimal(value), min(digits, 0))), result)
    exact = Decimal(repr(value))
    return value if digits >= _scale(exact) else float(_at(exact, digits))


def _scale(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _at(value: Decimal, digits: int) -> Decimal:
    # Shifted there and back: quantize alone refuses more digits than its context has.
    return WIDE.scaleb(WIDE.to_integral_value(WIDE.scaleb(value, digits)), -digits)


def floored(value: Any, result: pa.DataType, *, up: bool) -> Any:
    """Round down or up to a whole number."""
    if isinstance(value, Decimal):
        rounding = ROUND_CEILING if up else ROUND_FLOOR
        return conformed(value.to_integral_value(rounding, WIDE), result)
    return within(math.ceil(value) if up else math.floor(value), result)


def negated(value: Any) -> Any:
    """Change the sign; the least integer has no counterpart."""
    if isinstance(value, int):
        return within(-value, pa.int64())
    return value.copy_negate() if isinstance(value, Decimal) and value else -value


def magnitude(value: Any) -> Any:
    """Drop the sign; the least integer has no counterpart."""
    if isinstance(value, int):
        return within(abs(value), pa.int64())
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def root(value: float) -> float:
    """Take the square root; NaN below zero."""
    return math.nan if value < 0 else math.sqrt(value)


def power(base: float, exponent: float) -> float:
    """Raise as Java does: never an error, but NaN and infinities.

    >>> power(-8.0, 0.5), power(0.0, -1.0), power(10.0, 400.0)
    (nan, inf, inf)
    """
    odd = exponent % 2 == 1 if math.isfinite(exponent) else False
    sign = -1.0 if odd and math.copysign(1.0, base) < 0 else 1.0
    if abs(base) == 1 and math.isinf(exponent):
        return math.nan
    if math.isnan(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return sign * math.inf
    except ValueError:
        return sign * math.inf if base == 0 else math.nan


def exponential(value: float) -> float:
    """Raise e to a power; infinite where a double ends."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def logarithm(value: float) -> float | None:
    """Take the natural logarithm; NULL at zero and below, as in Spark."""
    return None if value <= 0 else math.log(value)


def sign(value: float) -> float:
    """Return -1.0, 0.0 or 1.0, and NaN for itself."""
    return value if math.isnan(value) or value == 0 else math.copysign(1.0, value)


def calendar_part(name: str) -> Callable[[Any], int]:
    """Return a reader of one part of an instant or a date, in UTC.

    >>> from datetime import date
    >>> calendar_part("quarter")(date(2024, 5, 1))
    2
    """
    if name == "quarter":
        return lambda value: (to_instant(value).month + 2) // 3
    return lambda value: int(getattr(to_instant(value), name))
