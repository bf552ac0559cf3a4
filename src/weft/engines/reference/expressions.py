"""SQL expressions over one event, in plain Python: NULL spreads, as in Spark.

Compiles an expression once into nested functions; the reference engine calls it for every event.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlglot import exp

from weft.aggregates.extremes import order_key
from weft.errors import DataError, UnsupportedError
from weft.expression import tree

Row = Mapping[str, Any]
Evaluate = Callable[[Row], Any]


@lru_cache(maxsize=4096)
def compiled(text: str) -> Evaluate:
    """Return a function from an event to the value of the expression.

    >>> compiled("a + 1 > b")({"a": 1, "b": 1}), compiled("a + 1 > b")({"a": None, "b": 1})
    (True, None)
    """
    return _compile(tree(text))


def _compile(node: exp.Expr) -> Evaluate:
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node)
    strict = _STRICT.get(type(node))
    if strict is None:
        raise UnsupportedError(
            f"the reference engine cannot evaluate {node.sql(dialect='spark')}",
            hint="use arithmetic, comparisons, CASE, CAST, COALESCE and the documented functions",
        )
    parts = [_compile(part) for part in _operands(node)]

    def evaluate(row: Row) -> Any:
        values = [part(row) for part in parts]
        return None if any(value is None for value in values) else strict(*values)

    return evaluate


def _operands(node: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            found.append(value)
        elif isinstance(value, list):
            found.extend(v for v in value if isinstance(v, exp.Expr))
    return found


def _column(node: exp.Expr) -> Evaluate:
    name = node.name

    def read(row: Row) -> Any:
        try:
            return row[name]
        except KeyError:
            raise DataError(
                f"the events have no column {name!r}", hint=f"the columns are {', '.join(row)}"
            ) from None

    return read


def _literal(node: exp.Expr) -> Evaluate:
    text = node.name
    value: Any = text
    if not node.is_string:
        exact = re.fullmatch(r"\d+", text)
        value = int(text) if exact else float(text)
    return lambda row: value


def _constant(value: Any) -> Evaluate:
    return lambda row: value


def _and(node: exp.Expr) -> Evaluate:
    left, right = _compile(node.this), _compile(node.expression)

    def evaluate(row: Row) -> bool | None:
        a = left(row)
        if a is False:
            return False
        b = right(row)
        if b is False:
            return False
        return None if a is None or b is None else True

    return evaluate


def _or(node: exp.Expr) -> Evaluate:
    left, right = _compile(node.this), _compile(node.expression)

    def evaluate(row: Row) -> bool | None:
        a = left(row)
        if a is True:
            return True
        b = right(row)
        if b is True:
            return True
        return None if a is None or b is None else False

    return evaluate


def _is(node: exp.Expr) -> Evaluate:
    left, right = _compile(node.this), _compile(node.expression)
    return lambda row: left(row) is right(row)


def _null_safe_equal(node: exp.Expr) -> Evaluate:
    left, right = _compile(node.this), _compile(node.expression)
    return lambda row: order_key(left(row)) == order_key(right(row))


def _in(node: exp.Expr) -> Evaluate:
    value, options = _compile(node.this), [_compile(o) for o in node.expressions]

    def evaluate(row: Row) -> bool | None:
        v = value(row)
        if v is None:
            return None
        choices = [option(row) for option in options]
        if any(c is not None and order_key(c) == order_key(v) for c in choices):
            return True
        return None if any(c is None for c in choices) else False

    return evaluate


def _case(node: exp.Expr) -> Evaluate:
    base = _compile(node.this) if node.this is not None else None
    branches = [(_compile(i.this), _compile(i.args["true"])) for i in node.args["ifs"]]
    default = node.args.get("default")
    otherwise = _compile(default) if default is not None else _constant(None)

    def evaluate(row: Row) -> Any:
        for condition, result in branches:
            holds = condition(row)
            if holds is True if base is None else holds is not None and holds == base(row):
                return result(row)
        return otherwise(row)

    return evaluate


def _if(node: exp.Expr) -> Evaluate:
    condition, true = _compile(node.this), _compile(node.args["true"])
    false = _compile(node.args["false"]) if node.args.get("false") else _constant(None)
    return lambda row: true(row) if condition(row) is True else false(row)


def _coalesce(node: exp.Expr) -> Evaluate:
    options = [_compile(part) for part in _operands(node)]
    return lambda row: next((v for o in options if (v := o(row)) is not None), None)


def _extreme(pick: Callable[..., Any]) -> Callable[[exp.Expr], Evaluate]:
    def build(node: exp.Expr) -> Evaluate:
        options = [_compile(part) for part in _operands(node)]

        def evaluate(row: Row) -> Any:
            values = [v for o in options if (v := o(row)) is not None]
            return pick(values, key=order_key) if values else None

        return evaluate

    return build


def _nullif(node: exp.Expr) -> Evaluate:
    left, right = _compile(node.this), _compile(node.expression)

    def evaluate(row: Row) -> Any:
        a, b = left(row), right(row)
        return None if a is not None and b is not None and order_key(a) == order_key(b) else a

    return evaluate


def _cast(node: exp.Expr) -> Evaluate:
    value, to = _compile(node.this), node.args["to"].sql(dialect="spark").upper()
    convert = next((f for prefix, f in _CASTS.items() if to.startswith(prefix)), None)
    if convert is None:
        raise UnsupportedError(
            f"the reference engine cannot cast to {to}",
            hint=f"cast to one of {', '.join(_CASTS)}",
        )

    lenient = bool(node.args.get("safe"))

    def evaluate(row: Row) -> Any:
        v = value(row)
        try:
            return None if v is None else convert(v)
        except (ValueError, ArithmeticError, KeyError):
            if lenient:
                return None
            raise DataError(
                f"cannot cast {v!r} to {to}", hint="filter such events out with WHERE"
            ) from None

    return evaluate


def _to_boolean(value: Any) -> bool:
    if isinstance(value, str):
        return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}[
            value.strip().lower()
        ]
    return bool(value)


def _to_instant(value: Any) -> dt.datetime:
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value.strip())
    elif not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    aware: dt.datetime = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return aware


_CASTS: dict[str, Callable[[Any], Any]] = {
    "TINYINT": lambda v: int(v),
    "SMALLINT": lambda v: int(v),
    "BIGINT": lambda v: int(v),
    "INT": lambda v: int(v),
    "LONG": lambda v: int(v),
    "DOUBLE": float,
    "FLOAT": float,
    "STRING": lambda v: str(v).lower() if isinstance(v, bool) else str(v),
    "VARCHAR": str,
    "BOOLEAN": _to_boolean,
    "DECIMAL": lambda v: Decimal(str(v)),
    "TIMESTAMP": _to_instant,
}


def _divide(a: Any, b: Any) -> Any:
    if b == 0:
        raise DataError("division by zero", hint="guard it with NULLIF(divisor, 0)")
    return a / b


def _whole(a: Any, b: Any) -> int:
    if b == 0:
        raise DataError("division by zero", hint="guard it with NULLIF(divisor, 0)")
    return math.trunc(a / b) if isinstance(a, float) or isinstance(b, float) else _truncated(a, b)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        raise DataError("division by zero", hint="guard it with NULLIF(divisor, 0)")
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b)
    return a - b * _truncated(a, b)


def _compare(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(a: Any, b: Any) -> bool:
        if isinstance(a, dt.datetime) or isinstance(b, dt.datetime):
            a, b = _to_instant(a), _to_instant(b)
        return test(order_key(a), order_key(b))

    return compare


def _like(value: str, pattern: str) -> bool:
    wild = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(wild.get(c, re.escape(c)) for c in pattern), value, re.S))


def _substring(value: str, start: int, length: int | None = None) -> str:
    first = start - 1 if start > 0 else max(len(value) + start, 0) if start < 0 else 0
    return value[first:] if length is None else value[first : first + max(length, 0)]


def _round(value: Any, digits: int = 0) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    # Half away from zero, as SQL has it; Python rounds half to even.
    exact = Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), rounding="ROUND_HALF_UP")
    return type(value)(exact)


def _part(name: str) -> Callable[[dt.datetime], int]:
    return lambda value: int(getattr(value, name))


_SPECIAL: dict[type, Callable[[Any], Evaluate]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node: _constant(bool(node.this)),
    exp.Null: lambda node: _constant(None),
    exp.Paren: lambda node: _compile(node.this),
    exp.TsOrDsToDate: lambda node: _compile(node.this),
    exp.And: _and,
    exp.Or: _or,
    exp.Is: _is,
    exp.NullSafeEQ: _null_safe_equal,
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme(max),
    exp.Least: _extreme(min),
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
_STRICT: dict[type, Callable[..., Any]] = {
    exp.Neg: lambda a: -a,
    exp.Not: lambda a: not a,
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
    exp.Div: _divide,
    exp.IntDiv: _whole,
    exp.Mod: _remainder,
    exp.EQ: _compare(lambda a, b: a == b),
    exp.NEQ: _compare(lambda a, b: a != b),
    exp.GT: _compare(lambda a, b: a > b),
    exp.GTE: _compare(lambda a, b: a >= b),
    exp.LT: _compare(lambda a, b: a < b),
    exp.LTE: _compare(lambda a, b: a <= b),
    exp.Between: lambda a, low, high: order_key(low) <= order_key(a) <= order_key(high),
    exp.Like: _like,
    exp.Abs: abs,
    exp.Upper: str.upper,
    exp.Lower: str.lower,
    exp.Length: len,
    exp.Substring: _substring,
    exp.Concat: lambda *parts: "".join(str(p) for p in parts),
    exp.DPipe: lambda a, b: f"{a}{b}",
    exp.Round: _round,
    exp.Floor: math.floor,
    exp.Ceil: math.ceil,
    exp.Trim: str.strip,
    exp.Sqrt: math.sqrt,
    exp.Pow: lambda a, b: float(a) ** b,
    exp.Year: _part("year"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.BitwiseAnd: lambda a, b: a & b,
    exp.BitwiseOr: lambda a, b: a | b,
    exp.BitwiseXor: lambda a, b: a ^ b,
}
