"""The operators and functions of SQL over Arrow columns, with Spark's NULL, NaN and ANSI rules.

A function gets its node and a way to evaluate the parts. It raises `NotColumnar` for types on
which Arrow and the reference engine would differ.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from weft.engines.local.expressions.numbers import (
    NotColumnar,
    Value,
    are_exact,
    cast,
    exact_arithmetic,
    exact_numbers,
    is_binary,
    is_whole,
    literal,
    numbers,
    to_whole,
    unified,
)
from weft.engines.local.values.arrow import NOTHING, Array, pc, repeated
from weft.errors import DataError
from weft.time import instant_us

_ISO_8601 = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")

Evaluate = Callable[[exp.Expr], Value]
Function = Callable[[Any, Evaluate], Value]


def _null(*values: Value) -> bool:
    return any(pa.types.is_null(value.type) for value in values)


def _arithmetic(whole: Callable[..., Value], real: Callable[..., Value]) -> Function:
    def function(node: exp.Expr, evaluate: Evaluate) -> Value:
        parts = [evaluate(p) for p in (node.this, node.args.get("expression")) if p is not None]
        if _null(*parts):
            return NOTHING
        if are_exact(*parts):
            return exact_arithmetic(node, parts)
        parts = numbers(*parts)
        return (whole if is_whole(parts[0].type) else real)(*parts)

    return function


def _refuse_zero(a: Value, b: Value) -> None:
    zero = pc.and_(pc.equal(b, pa.scalar(0, b.type)), pc.is_valid(a))
    if pc.any(zero).as_py() if isinstance(zero, pa.Array) else zero.as_py():
        raise DataError("division by zero", hint="guard it with NULLIF(divisor, 0)")


def _division(divide: Callable[[Value, Value], Value]) -> Function:
    def function(node: exp.Expr, evaluate: Evaluate) -> Value:
        a, b = evaluate(node.this), evaluate(node.expression)
        if _null(a, b):
            return NOTHING
        a, b = numbers(a, b)
        _refuse_zero(a, b)
        return divide(a, b)

    return function


def _divide(a: Value, b: Value) -> Value:
    return pc.divide(a.cast(pa.float64(), safe=False), b.cast(pa.float64(), safe=False))


def _divide_whole(a: Value, b: Value) -> Value:
    if not is_whole(a.type):
        raise NotColumnar
    return pc.divide_checked(a, _without_zero(b))


def _without_zero(b: Value) -> Value:
    """Replace the zeros beside a NULL, which Arrow would still divide by."""
    return pc.if_else(pc.equal(b, pa.scalar(0, b.type)), pa.scalar(1, b.type), b)


def _remainder(a: Value, b: Value) -> Value:
    if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar):
        raise NotColumnar
    rows = len(a) if isinstance(a, pa.Array) else len(b)
    a, b = (repeated(v, rows) if isinstance(v, pa.Scalar) else v for v in (a, b))
    missing = pc.or_(pc.is_null(a), pc.is_null(b)).to_numpy(zero_copy_only=False)
    x, y = (v.fill_null(1).to_numpy(zero_copy_only=False) for v in (a, b))
    with np.errstate(invalid="ignore", divide="ignore"):
        rests = np.fmod(x, np.where(y == 0, np.ones_like(y), y))
    return pa.array(rests, mask=missing)


def _instant(text: str) -> pa.Scalar[Any]:
    if not _ISO_8601.fullmatch(text.strip()):
        raise NotColumnar  # there are more spellings, which the reference engine reads
    try:
        value = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise NotColumnar from None
    return pa.scalar(instant_us(value), pa.int64()).cast(pa.timestamp("us", "UTC"))


def _comparable(a: Value, b: Value) -> tuple[Value, Value]:
    instants = [pa.types.is_timestamp(v.type) for v in (a, b)]
    if any(instants):
        return _as_instant(a), _as_instant(b)
    if a.type == b.type:
        if pa.types.is_nested(a.type):
            raise NotColumnar
        return a, b
    if are_exact(a, b):
        return exact_numbers(a, b)
    x, y = numbers(a, b)
    return x, y


def _as_instant(value: Value) -> Value:
    if pa.types.is_string(value.type) and isinstance(value, pa.Scalar) and value.is_valid:
        return _instant(value.as_py())
    if not pa.types.is_timestamp(value.type):
        raise NotColumnar
    return value.cast(pa.timestamp("us", "UTC"), safe=False)


def compare(a: Value, b: Value, test: str) -> Value:
    """Compare as Spark does: NULL spreads, NaN equals itself and is greater than every number.

    >>> nan = float("nan")
    >>> compare(pa.array([nan, 1.0, None]), pa.array([nan, nan, 1.0]), "less").to_pylist()
    [False, True, None]
    """
    if _null(a, b):
        return pa.scalar(None, pa.bool_())
    a, b = _comparable(a, b)
    found = getattr(pc, test)(a, b)
    if not pa.types.is_floating(a.type):
        return found
    nan_a, nan_b = pc.is_nan(a), pc.is_nan(b)
    either = pc.or_(nan_a, nan_b)
    if not (pc.any(either).as_py() if isinstance(either, pa.Array) else either.as_py()):
        return found
    # As integers, 1 where NaN and 0 elsewhere, NaN compares as wanted.
    ranks = [n.cast(pa.int8()) for n in (nan_a, nan_b)]
    return pc.if_else(either, getattr(pc, test)(*ranks), found)


def _comparison(test: str) -> Function:
    return lambda node, evaluate: compare(evaluate(node.this), evaluate(node.expression), test)


def _between(node: exp.Expr, evaluate: Evaluate) -> Value:
    value, low, high = (evaluate(node.args[name]) for name in ("this", "low", "high"))
    above, below = compare(value, low, "greater_equal"), compare(value, high, "less_equal")
    return pc.and_kleene(above, below)


def _in(node: exp.Expr, evaluate: Evaluate) -> Value:
    value = evaluate(node.this)
    if pa.types.is_timestamp(value.type) or not node.expressions:
        raise NotColumnar
    options = [evaluate(option) for option in node.expressions]
    if pa.types.is_floating(value.type) is not any(
        pa.types.is_floating(v.type) for v in (value, *options)
    ):
        raise NotColumnar  # all of them meet as doubles, not each with the value alone
    tests = [compare(value, option, "equal") for option in options]
    found = tests[0]
    for test in tests[1:]:
        found = pc.or_kleene(found, test)
    return found


def _not(node: exp.Expr, evaluate: Evaluate) -> Value:
    value = evaluate(node.this)
    if not (pa.types.is_boolean(value.type) or pa.types.is_null(value.type)):
        raise NotColumnar
    return pc.invert(value.cast(pa.bool_()))


def _is(node: exp.Expr, evaluate: Evaluate) -> Value:
    value = evaluate(node.this)
    if isinstance(node.expression, exp.Null):
        return pc.is_null(value)
    if isinstance(node.expression, exp.Boolean) and pa.types.is_boolean(value.type):
        return pc.fill_null(pc.equal(value, pa.scalar(bool(node.expression.this))), False)
    raise NotColumnar


def _nullif(node: exp.Expr, evaluate: Evaluate) -> Value:
    a, b = evaluate(node.this), evaluate(node.expression)
    if _null(a, b):
        return a
    if pa.types.is_timestamp(a.type):
        raise NotColumnar
    same = pc.fill_null(compare(a, b, "equal"), False)
    return pc.if_else(same, pa.scalar(None, a.type), a)


def _extreme(test: str) -> Function:
    def function(node: exp.Expr, evaluate: Evaluate) -> Value:
        options = unified([evaluate(part) for part in (node.this, *node.expressions)])
        if pa.types.is_timestamp(options[0].type):
            raise NotColumnar
        best = options[0]
        for option in options[1:]:
            better = pc.fill_null(compare(option, best, test), False)
            best = pc.coalesce(pc.if_else(better, option, best), option)
        return best

    return function


def _floor(round_: Callable[..., Value]) -> Function:
    def function(node: exp.Expr, evaluate: Evaluate) -> Value:
        value = evaluate(node.this)
        if _null(value):
            return value
        extra = any(node.args.get(name) is not None for name in ("decimals", "to"))
        if extra or isinstance(value, pa.Scalar) or not is_binary(value.type):
            raise NotColumnar
        return value if is_whole(value.type) else to_whole(round_(value.cast(pa.float64())))

    return function


def _sqrt(node: exp.Expr, evaluate: Evaluate) -> Value:
    (value,) = numbers(evaluate(node.this))
    return pc.sqrt(value.cast(pa.float64(), safe=False))


def _text(value: Value) -> Array:
    if not isinstance(value, pa.Array) or not pa.types.is_string(value.type):
        raise NotColumnar
    return value


def _ascii(function: Callable[..., Value]) -> Function:
    def apply(node: exp.Expr, evaluate: Evaluate) -> Value:
        value = _text(evaluate(node.this))
        if pc.all(pc.string_is_ascii(value)).as_py() is False:
            raise NotColumnar
        return function(value)

    return apply


def _like(node: exp.Expr, evaluate: Evaluate) -> Value:
    value, pattern = _text(evaluate(node.this)), node.expression
    plain = isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.name
    if not plain or node.args.get("negate"):
        raise NotColumnar
    return pc.match_like(value, pattern.name)


def _part(function: Callable[..., Value]) -> Function:
    def apply(node: exp.Expr, evaluate: Evaluate) -> Value:
        value = evaluate(node.this)
        if not pa.types.is_timestamp(value.type):
            raise NotColumnar
        return function(value.cast(pa.timestamp("us", "UTC")))

    return apply


FUNCTIONS: dict[type, Function] = {
    exp.Literal: lambda node, evaluate: literal(node),
    exp.Boolean: lambda node, evaluate: pa.scalar(bool(node.this)),
    exp.Null: lambda node, evaluate: NOTHING,
    exp.Neg: _arithmetic(pc.negate_checked, pc.negate),
    exp.Add: _arithmetic(pc.add_checked, pc.add),
    exp.Sub: _arithmetic(pc.subtract_checked, pc.subtract),
    exp.Mul: _arithmetic(pc.multiply_checked, pc.multiply),
    exp.Abs: _arithmetic(pc.abs_checked, pc.abs),
    exp.Div: _division(_divide),
    exp.IntDiv: _division(_divide_whole),
    exp.Mod: _division(_remainder),
    exp.EQ: _comparison("equal"),
    exp.NEQ: _comparison("not_equal"),
    exp.GT: _comparison("greater"),
    exp.GTE: _comparison("greater_equal"),
    exp.LT: _comparison("less"),
    exp.LTE: _comparison("less_equal"),
    exp.Between: _between,
    exp.In: _in,
    exp.Not: _not,
    exp.Is: _is,
    exp.Nullif: _nullif,
    exp.Greatest: _extreme("greater"),
    exp.Least: _extreme("less"),
    **dict.fromkeys(
        (exp.Cast, exp.TryCast), lambda node, evaluate: cast(node, evaluate(node.this))
    ),
    exp.Floor: _floor(pc.floor),
    exp.Ceil: _floor(pc.ceil),
    exp.Sqrt: _sqrt,
    exp.Upper: _ascii(pc.ascii_upper),
    exp.Lower: _ascii(pc.ascii_lower),
    exp.Length: lambda n, evaluate: pc.utf8_length(_text(evaluate(n.this))).cast(pa.int64()),
    exp.Like: _like,
    exp.Year: _part(pc.year),
    exp.Month: _part(pc.month),
    exp.Day: _part(pc.day),
    exp.Hour: _part(pc.hour),
    exp.Minute: _part(pc.minute),
    exp.Second: _part(pc.second),
}
