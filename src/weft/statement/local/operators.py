"""Operators that DuckDB computes to Spark's answer, with Spark's types and Spark's errors."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.statement.local.column_types import (
    INTEGERS,
    LENGTH,
    REALS,
    decimal_for,
    decimal_type,
    duck_name,
    is_number,
    is_plain,
    is_time,
    spark_name,
    widest,
)
from weft.statement.local.values import Value, cast, together, unless
from weft.statement.relations import Obstacle

if TYPE_CHECKING:
    from weft.statement.local.column_types import Decimals

BY_ZERO = "a division by zero, which Spark refuses as DIVIDE_BY_ZERO"


def _name(left: Value, sign: str, right: Value) -> str | None:
    if left.name is None or right.name is None:
        return None
    return f"({left.name} {sign} {right.name})"


def arithmetic(sign: str, left: Value, right: Value) -> Value:
    """Compute `+`, `-`, `*`, `/`, `%` or `div`."""
    name = _name(left, sign, right)
    if sign in "+-" and (
        is_time(left.type) or is_time(right.type) or LENGTH in _types(left, right)
    ):
        return _moved(sign, left, right)
    if not all(is_number(v.type) or pa.types.is_null(v.type) for v in (left, right)):
        kinds = f"{spark_name(left.type)} {sign} {spark_name(right.type)}"
        raise Obstacle(f"{kinds} is Spark's")
    if any(pa.types.is_decimal(v.type) for v in (left, right)) and not any(
        v.type in REALS for v in (left, right)
    ):
        return _of_decimals(sign, left, right).named(name)
    if sign == "/":
        return _divided(left, right).named(name)
    if sign == "div":
        one, two = (cast(v, pa.int64()) if v.type in INTEGERS else None for v in (left, right))
        if one is None or two is None:
            raise Obstacle("div is of integers here")
        made = unless(_zero(one, two), BY_ZERO, f"({one.sql} // {two.sql})")
        return Value(made, pa.int64(), name)
    one, two = together((left, right), sign)
    if sign == "%":
        made = unless(_zero(one, two), BY_ZERO, f"({one.sql} % {two.sql})")
        return Value(made, one.type, name)
    return Value(f"({one.sql} {sign} {two.sql})", one.type, name)


def _types(*values: Value) -> set[pa.DataType]:
    return {value.type for value in values}


def _zero(left: Value, right: Value) -> str:
    return f"{left.sql} IS NOT NULL AND {right.sql} = 0"


def _divided(left: Value, right: Value) -> Value:
    one, two = cast(left, pa.float64()), cast(right, pa.float64())
    if isinstance(right.literal, Decimal) and right.literal:
        return Value(f"({one.sql} / {two.sql})", pa.float64())
    return Value(unless(_zero(one, two), BY_ZERO, f"({one.sql} / {two.sql})"), pa.float64())


def _of_decimals(sign: str, left: Value, right: Value) -> Value:
    kinds = []
    for value in (left, right):
        exact = value.literal if isinstance(value.literal, Decimal) else None
        if pa.types.is_null(value.type):
            raise Obstacle("a decimal beside NULL is Spark's")
        kinds.append(decimal_for(value.type, exact))
    a, b = kinds
    one, two = cast(left, a), cast(right, b)
    if sign in "+-":
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale) + 1
        kind = decimal_type(whole + scale, scale)
        made = f"({cast(one, kind).sql} {sign} {cast(two, kind).sql})"
        return Value(f"CAST({made} AS {duck_name(kind)})", kind)
    if sign == "*":
        kind = decimal_type(a.precision + b.precision + 1, a.scale + b.scale)
        return Value(f"CAST(({one.sql} * {two.sql}) AS {duck_name(kind)})", kind)
    if sign == "/":
        return _quotient(one, a, two, b)
    raise Obstacle(f"{sign} of decimals is Spark's")


def _quotient(one: Value, a: Decimals, two: Value, b: Decimals) -> Value:
    """Divide decimals by their digits as integers, rounded half up as Spark rounds."""
    scale = max(6, a.scale + b.precision + 1)
    kind = decimal_type(a.precision - a.scale + b.scale + scale, scale)
    more = scale - a.scale + b.scale
    if a.precision + more + 1 > 37 or kind.precision + scale + 1 > 38:
        raise Obstacle(f"{spark_name(a)} / {spark_name(b)} has more digits than 38")
    top = f"({_digits(one.sql, a)} * {10**more}::HUGEINT)"
    low = _digits(two.sql, b)
    rounded = f"((2 * abs({top}) + abs({low})) // (2 * abs({low})))"
    sign = f"(CASE WHEN ({top} < 0) <> ({low} < 0) THEN -1 ELSE 1 END)"
    unit = f"CAST('1e-{scale}' AS DECIMAL({scale + 1},{scale}))"
    whole = f"CAST({sign} * {rounded} AS DECIMAL({37 - scale},0))"
    made = f"CAST({whole} * {unit} AS {duck_name(kind)})"
    return Value(unless(_zero(one, two), BY_ZERO, made), kind)


def _digits(sql: str, kind: Decimals) -> str:
    unit = 10**kind.scale
    wide = f"CAST({sql} AS DECIMAL(38,{kind.scale}))"
    return f"CAST({wide} * {unit} AS HUGEINT)" if kind.scale else f"CAST({sql} AS HUGEINT)"


def _moved(sign: str, left: Value, right: Value) -> Value:
    """Compute with times and lengths of time, in microseconds."""
    if is_time(left.type) and right.type == LENGTH:
        moved = f"epoch_us({left.sql}) {sign} {right.sql}"
        return Value(f"make_timestamp({moved})", left.type)
    if is_time(right.type) and left.type == LENGTH and sign == "+":
        return _moved(sign, right, left)
    if is_time(left.type) and right.type == left.type and sign == "-":
        return Value(f"(epoch_us({left.sql}) - epoch_us({right.sql}))", LENGTH)
    if left.type == right.type == LENGTH:
        return Value(f"({left.sql} {sign} {right.sql})", LENGTH)
    raise Obstacle(f"{spark_name(left.type)} {sign} {spark_name(right.type)} is Spark's")


def comparison(sign: str, left: Value, right: Value) -> Value:
    """Compare two values as one type; NULL beside `<=>` is a value like others."""
    one, two = alike(left, right, sign)
    if sign not in ("=", "<>", "<=>"):
        orderable(one.type, sign)
    if sign == "<=>":
        return Value(
            f"({one.sql} IS NOT DISTINCT FROM {two.sql})", pa.bool_(), _name(left, sign, right)
        )
    made = f"({one.sql} {sign} {two.sql})"
    if sign == "<>":
        names = _name(left, "=", right)
        return Value(made, pa.bool_(), f"(NOT {names})" if names else None)
    return Value(made, pa.bool_(), _name(left, sign, right))


def alike(left: Value, right: Value, what: str) -> tuple[Value, Value]:
    """Bring two values to the type that Spark compares them as."""
    for one, other in ((left, right), (right, left)):
        # A text beside a time is read as one.
        if one.type == pa.string() and (is_time(other.type) or pa.types.is_date(other.type)):
            read = cast(one, other.type)
            return (read, right) if one is left else (left, read)
    kind = comparable(widest((left.type, right.type), what), what)
    return cast(left, kind), cast(right, kind)


def comparable(kind: pa.DataType, what: str) -> pa.DataType:
    """Refuse a type whose values Spark and DuckDB may compare in different ways."""
    if pa.types.is_struct(kind):
        for field in kind:
            comparable(field.type, what)
    elif not is_plain(kind) and not pa.types.is_null(kind):
        raise Obstacle(f"{what} of {spark_name(kind)} is Spark's")
    return kind


def orderable(kind: pa.DataType, what: str) -> pa.DataType:
    """Refuse a type whose values may be in different orders: structs, where NULL is in them."""
    if pa.types.is_struct(kind):
        raise Obstacle(f"{what} of {spark_name(kind)} is Spark's")
    return comparable(kind, what)


def negated(value: Value) -> Value:
    """Compute `-x`."""
    if not (is_number(value.type) or value.type == LENGTH):
        raise Obstacle(f"- of {spark_name(value.type)} is Spark's")
    exact = -value.literal if isinstance(value.literal, Decimal) else None
    name = None if value.name is None else f"(- {value.name})"
    if exact is not None and value.type in INTEGERS:
        name = str(exact)
    return Value(f"(- {value.sql})", value.type, name, exact)


def literal_number(value: Value, what: str) -> int:
    """Return an integer that is written out."""
    if not isinstance(value.literal, Decimal) or value.type not in INTEGERS:
        raise Obstacle(f"{what} is not written out")
    return int(value.literal)
