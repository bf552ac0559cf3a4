"""Numbers in Arrow columns: brought to one type, cast, and computed exactly where they are decimal.

What Arrow would compute otherwise than the reference engine is refused with `NotColumnar`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from weft.engines.kinds import MOST_DIGITS
from weft.engines.local.values.arrow import pc
from weft.engines.types import cast_type, literal_type

if TYPE_CHECKING:
    from collections.abc import Sequence

Value = Any  # an Arrow array, or a scalar that stands for every row


class NotColumnar(Exception):
    """This expression has no exact counterpart on whole columns."""


def is_whole(type: pa.DataType) -> bool:
    """Tell whether values fit 64 signed bits."""
    return bool(pa.types.is_integer(type) and not pa.types.is_uint64(type))


def is_binary(type: pa.DataType) -> bool:
    """Tell whether values are integers or floating numbers, which processors compute with."""
    return is_whole(type) or bool(pa.types.is_floating(type))


def literal(node: exp.Expr) -> Value:
    """Return what a literal stands for: 1.5 is a decimal, 1.5e0 a double."""
    type, text = literal_type(node), node.name
    if node.is_string:
        return pa.scalar(text, type)
    if pa.types.is_decimal(type):
        return pa.scalar(Decimal(text), type)
    return pa.scalar(int(text) if is_whole(type) else float(text), type)


def as_double(value: Value) -> Value:
    """Round numbers to doubles, each to the nearest.

    >>> as_double(pa.array(["2.50", None]).cast(pa.decimal128(10, 2))).to_pylist()
    [2.5, None]
    """
    type = value.type
    if is_binary(type):
        return value if type == pa.float64() else value.cast(pa.float64(), safe=False)
    if not pa.types.is_decimal(type):
        raise NotColumnar
    if isinstance(value, pa.Scalar):
        known = value.as_py()
        return pa.scalar(None if known is None else float(known), pa.float64())
    # Both the digits and the power of ten are exact doubles: one division rounds once.
    if type.precision > 15 or not 0 <= type.scale <= 22 or type.bit_width != 128:
        raise NotColumnar
    words = np.frombuffer(value.buffers()[1], np.int64)[2 * value.offset :: 2][: len(value)]
    missing = value.is_null().to_numpy(zero_copy_only=False)
    return pa.array(words / 10.0**type.scale, mask=missing)


def numbers(*values: Value) -> list[Value]:
    """Bring numbers to int64, or all to double where one is."""
    types = [value.type for value in values]
    if all(map(is_whole, types)):
        return [v if v.type == pa.int64() else v.cast(pa.int64()) for v in values]
    if not any(map(pa.types.is_floating, types)):
        raise NotColumnar
    return [as_double(value) for value in values]


def unified(values: Sequence[Value]) -> list[Value]:
    """Bring the values of several branches to one type."""
    types = {value.type for value in values if not pa.types.is_null(value.type)}
    if not types:
        return list(values)
    if len(types) == 1:
        (wide,) = types
        return [value if value.type == wide else value.cast(wide) for value in values]
    if not all(is_binary(t) or pa.types.is_decimal(t) for t in types):
        raise NotColumnar
    known = iter(numbers(*(value for value in values if not pa.types.is_null(value.type))))
    brought = [value if pa.types.is_null(value.type) else next(known) for value in values]
    return unified(brought)


def are_exact(*values: Value) -> bool:
    """Tell whether some of the numbers are decimals and none is a double."""
    types = [value.type for value in values]
    return any(map(pa.types.is_decimal, types)) and not any(map(pa.types.is_floating, types))


def exact_numbers(a: Value, b: Value) -> tuple[Value, Value]:
    """Bring decimals and integers to decimals that Arrow compares without losing a digit."""
    x, y = (_as_decimal(value) for value in (a, b))
    whole = max(v.type.precision - v.type.scale for v in (x, y))
    if whole + max(v.type.scale for v in (x, y)) > MOST_DIGITS:
        raise NotColumnar
    return x, y


def _as_decimal(value: Value, written: exp.Expr | None = None) -> Value:
    if pa.types.is_decimal128(value.type):
        return value
    if not is_whole(value.type):
        raise NotColumnar
    if isinstance(written, exp.Literal):
        return pa.scalar(
            Decimal(written.name), pa.decimal128(len(written.name.lstrip("0")) or 1, 0)
        )
    return value.cast(pa.int64()).cast(pa.decimal128(20, 0))


_EXACT: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
}


def exact_arithmetic(node: exp.Expr, operands: Sequence[Value]) -> Value:
    """Add, subtract or multiply decimals where all digits of the result are kept."""
    if type(node) not in _EXACT:
        raise NotColumnar
    parts = (node.this, node.expression)
    a, b = (_as_decimal(v, part) for v, part in zip(operands, parts, strict=True))
    product = isinstance(node, exp.Mul)
    scale = a.type.scale + b.type.scale if product else max(a.type.scale, b.type.scale)
    whole = [v.type.precision - v.type.scale for v in (a, b)]
    digits = a.type.precision + b.type.precision if product else max(whole) + scale
    if digits + 1 > MOST_DIGITS:
        raise NotColumnar  # Spark gives up digits of the scale, which Arrow does not
    return getattr(pc, _EXACT[type(node)])(a, b)


def cast(node: exp.Expr, value: Value) -> Value:
    """Cast a column as CAST does; what TRY_CAST would make NULL is left to the reference."""
    if pa.types.is_null(value.type):
        return value
    if node.args.get("safe"):
        raise NotColumnar
    source, target = value.type, cast_type(node)
    if is_whole(target):
        return to_whole(value).cast(target)
    if pa.types.is_floating(target):
        return as_double(value).cast(target, safe=False)
    if pa.types.is_boolean(source) and (target in (source, pa.string())):
        return value.cast(target)
    if target == pa.string() and (pa.types.is_string(source) or is_whole(source)):
        return value.cast(target)
    if pa.types.is_boolean(target) and is_binary(source):
        return pc.not_equal(value, pa.scalar(0, source))
    raise NotColumnar


def to_whole(value: Value) -> Value:
    """Cut the fractions off; NaN and infinities are left to the reference, which names them."""
    if pa.types.is_boolean(value.type) or is_whole(value.type):
        return value.cast(pa.int64())
    if not pa.types.is_floating(value.type) or isinstance(value, pa.Scalar):
        raise NotColumnar
    bounded = pc.less(pc.abs(value), pa.scalar(2.0**63, pa.float64()))
    if not pc.all(bounded).as_py():
        raise NotColumnar
    return pc.trunc(value).cast(pa.int64(), safe=False)
