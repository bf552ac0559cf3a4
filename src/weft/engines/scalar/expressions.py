"""SQL expressions over one event, in plain Python: NULL spreads, as in Spark.

Compiles an expression once, for the types of the columns it reads, into nested functions; the
reference engine calls it for every event.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
from sqlglot import exp

from weft.aggregates.extremes import order_key
from weft.engines.scalar import operators as op
from weft.engines.scalar import text as texts
from weft.engines.scalar.casts import converter
from weft.engines.scalar.rows import EventRow, Row, guessed_types
from weft.engines.types import (
    ARITHMETIC,
    Types,
    branches_of,
    common_type,
    constant_integer,
    literal_type,
    operand_types,
    parts_of,
    type_of,
)
from weft.errors import DataError, WeftError
from weft.expression import columns_of, tree

Evaluate = Callable[[Row], Any]
_Build = Callable[[Any, Types], Evaluate]


@lru_cache(maxsize=4096)
def compiled(text: str) -> Evaluate:
    """Return a function from an event to the value of the expression.

    An event of a table knows the types of its columns; those of a plain mapping are guessed.

    >>> compiled("a + 1 > b")({"a": 1, "b": 1}), compiled("a + 1 > b")({"a": None, "b": 1})
    (True, None)
    """
    names = columns_of(text)
    # The events of a table share one mapping of types: what was compiled for it last is kept.
    types: Types | None = None
    current: Evaluate = _constant(None)

    def evaluate(row: Row) -> Any:
        nonlocal types, current
        try:
            if not isinstance(row, EventRow):
                return _typed(text, guessed_types(row, names))(row)
            if row.types is not types:
                own = tuple((name, row.types[name]) for name in names if name in row.types)
                types, current = row.types, _typed(text, own)
            return current(row)
        except WeftError:
            raise
        except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
            read = ", ".join(f"{name} = {row.get(name)!r}" for name in names)
            raise DataError(
                f"cannot compute {text} where {read}: {error}" if read else f"{text}: {error}",
                hint="filter such events out with where=, or cast to a wider type",
            ) from None

    return evaluate


@lru_cache(maxsize=4096)
def _typed(text: str, types: tuple[tuple[str, pa.DataType], ...]) -> Evaluate:
    node, columns = tree(text), dict(types)
    type_of(node, columns)
    return _compile(node, columns)


def _compile(node: exp.Expr, columns: Types) -> Evaluate:
    return _BUILDERS[type(node)](node, columns)


def _as(node: exp.Expr, target: pa.DataType, columns: Types) -> Evaluate:
    """Compile an expression and bring its values to a type."""
    read, convert = _compile(node, columns), converter(type_of(node, columns), target)
    return read if convert is None else lambda row: convert(read(row))


def _strict(function: Callable[..., Any], parts: list[Evaluate]) -> Evaluate:
    def evaluate(row: Row) -> Any:
        values = [part(row) for part in parts]
        return None if any(value is None for value in values) else function(*values)

    return evaluate


def _column(node: exp.Expr, columns: Types) -> Evaluate:
    name = node.name
    return lambda row: row[name]


def _literal(node: exp.Expr, columns: Types) -> Evaluate:
    type = literal_type(node)
    if node.is_string:
        return _constant(node.name)
    if pa.types.is_decimal(type):
        return _constant(Decimal(node.name))
    return _constant(int(node.name) if pa.types.is_integer(type) else float(node.name))


def _constant(value: Any) -> Evaluate:
    return lambda row: value


def _inner(node: exp.Expr, columns: Types) -> Evaluate:
    return _compile(node.this, columns)


def _logic(*, decides: bool) -> _Build:
    """AND, which one False decides, or OR, which one True does."""

    def build(node: exp.Expr, columns: Types) -> Evaluate:
        left, right = _compile(node.this, columns), _compile(node.expression, columns)

        def evaluate(row: Row) -> Any:
            a = left(row)
            if a is decides:
                return decides
            b = right(row)
            if b is decides:
                return decides
            return None if a is None or b is None else not decides

        return evaluate

    return build


def _is(node: exp.Expr, columns: Types) -> Evaluate:
    left, right = _compile(node.this, columns), _compile(node.expression, columns)
    return lambda row: left(row) is right(row)


def _met(nodes: list[exp.Expr], columns: Types, asked: exp.Expr) -> list[Evaluate]:
    """Compile expressions whose values meet, all brought to their common type."""
    target = _comparable(common_type([type_of(node, columns) for node in nodes], asked))
    return [_as(node, target, columns) for node in nodes]


def _comparable(type: pa.DataType) -> pa.DataType:
    # One spelling of an instant, with its zone: Python refuses to compare it with one without.
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(type) else type


def _compare(node: exp.Expr, columns: Types) -> Evaluate:
    return _strict(op.comparison(type(node)), _met([node.this, node.expression], columns, node))


def _null_safe(node: exp.Expr, columns: Types) -> Evaluate:
    left, right = _met([node.this, node.expression], columns, node)
    equal = isinstance(node, exp.NullSafeEQ)
    return lambda row: (order_key(left(row)) == order_key(right(row))) is equal


def _between(node: exp.Expr, columns: Types) -> Evaluate:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    return _compile(exp.And(this=low, expression=high), columns)


def _in(node: exp.Expr, columns: Types) -> Evaluate:
    value, *options = _met([node.this, *node.expressions], columns, node)

    def evaluate(row: Row) -> bool | None:
        v = value(row)
        if v is None:
            return None
        choices = [option(row) for option in options]
        if any(c is not None and order_key(c) == order_key(v) for c in choices):
            return True
        return None if any(c is None for c in choices) else False

    return evaluate


def _branches(node: exp.Expr, columns: Types) -> list[Evaluate]:
    """Compile what a value may come from, all of the type of the whole."""
    target = type_of(node, columns)
    return [_as(branch, target, columns) for branch in branches_of(node)]


def _case(node: exp.Expr, columns: Types) -> Evaluate:
    results = _branches(node, columns)
    conditions = []
    for branch in node.args["ifs"]:
        when = branch.this
        if node.this is not None:
            when = exp.EQ(this=node.this.copy(), expression=when.copy())
        conditions.append(_compile(when, columns))
    otherwise = results[len(conditions)] if len(results) > len(conditions) else _constant(None)

    def evaluate(row: Row) -> Any:
        for condition, result in zip(conditions, results, strict=False):
            if condition(row) is True:
                return result(row)
        return otherwise(row)

    return evaluate


def _if(node: exp.Expr, columns: Types) -> Evaluate:
    condition = _compile(node.this, columns)
    true, false = (*_branches(node, columns), _constant(None))[:2]
    return lambda row: true(row) if condition(row) is True else false(row)


def _coalesce(node: exp.Expr, columns: Types) -> Evaluate:
    options = _branches(node, columns)
    return lambda row: next((v for o in options if (v := o(row)) is not None), None)


def _extreme(pick: Callable[..., Any]) -> _Build:
    def build(node: exp.Expr, columns: Types) -> Evaluate:
        options = _branches(node, columns)

        def evaluate(row: Row) -> Any:
            values = [v for o in options if (v := o(row)) is not None]
            return pick(values, key=order_key) if values else None

        return evaluate

    return build


def _nullif(node: exp.Expr, columns: Types) -> Evaluate:
    value = _compile(node.this, columns)
    same = _compile(exp.EQ(this=node.this.copy(), expression=node.expression.copy()), columns)
    return lambda row: None if same(row) is True else value(row)


def _cast(node: exp.Expr, columns: Types) -> Evaluate:
    convert = _as(node.this, type_of(node, columns), columns)
    if not node.args.get("safe"):
        return convert

    def evaluate(row: Row) -> Any:
        read(row)  # what fails inside is an error all the same
        try:
            return convert(row)
        except DataError:
            return None

    read = _compile(node.this, columns)
    return evaluate


def _arithmetic(node: exp.Expr, columns: Types) -> Evaluate:
    result = type_of(node, columns)
    if pa.types.is_null(result):
        return _constant(None)
    parts = (node.this, node.expression)
    sides = [_as(p, t, columns) for p, t in zip(parts, operand_types(node, columns), strict=True)]
    return _strict(op.arithmetic(type(node), result), sides)


def _whole(node: exp.Expr, columns: Types) -> Evaluate:
    parts = (node.this, node.expression)
    types = operand_types(node, columns)
    return _strict(
        op.divided_whole, [_as(p, t, columns) for p, t in zip(parts, types, strict=True)]
    )


def _number(function: Callable[..., Any]) -> _Build:
    """A function of one number, which keeps its type."""

    def build(node: exp.Expr, columns: Types) -> Evaluate:
        return _strict(function, [_as(node.this, type_of(node, columns), columns)])

    return build


def _round(node: exp.Expr, columns: Types) -> Evaluate:
    result, digits = type_of(node, columns), constant_integer(node.args.get("decimals"), 0)
    kept = type_of(node.this, columns) if pa.types.is_decimal(result) else result
    return _strict(lambda value: op.rounded(value, digits, result), [_as(node.this, kept, columns)])


def _floor(*, up: bool) -> _Build:
    def build(node: exp.Expr, columns: Types) -> Evaluate:
        result, given = type_of(node, columns), type_of(node.this, columns)
        read = _as(node.this, pa.float64() if pa.types.is_string(given) else given, columns)
        return _strict(lambda value: op.floored(value, result, up=up), [read])

    return build


def _all_as(target: pa.DataType, function: Callable[..., Any]) -> _Build:
    """A function whose arguments are all of one type."""

    def build(node: exp.Expr, columns: Types) -> Evaluate:
        return _strict(function, [_as(part, target, columns) for part in parts_of(node)])

    return build


def _any(function: Callable[..., Any]) -> _Build:
    def build(node: exp.Expr, columns: Types) -> Evaluate:
        return _strict(function, [_compile(part, columns) for part in parts_of(node)])

    return build


def _like(node: exp.Expr, columns: Types, escape: str = "\\") -> Evaluate:
    sides = [_as(part, pa.string(), columns) for part in (node.this, node.expression)]
    wanted = not node.args.get("negate")
    return _strict(lambda value, by: texts.like(value, by, escape) is wanted, sides)


def _escaped(node: exp.Expr, columns: Types) -> Evaluate:
    return _like(node.this, columns, node.expression.name)


def _substring(node: exp.Expr, columns: Types) -> Evaluate:
    numbers = [node.args[name] for name in ("start", "length") if node.args.get(name) is not None]
    return _strict(
        texts.substring,
        [
            _as(node.this, pa.string(), columns),
            *(_as(number, pa.int64(), columns) for number in numbers),
        ],
    )


def _trim(node: exp.Expr, columns: Types) -> Evaluate:
    letters = node.args.get("expression") or exp.Literal.string(" ")
    position = node.args.get("position") or "BOTH"
    return _strict(
        lambda value, strip: texts.trim(value, strip, position),
        [_as(part, pa.string(), columns) for part in (node.this, letters)],
    )


_DOUBLE, _LONG, _STRING = pa.float64(), pa.int64(), pa.string()
_BUILDERS: dict[type, _Build] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, columns: _constant(bool(node.this)),
    exp.Null: lambda node, columns: _constant(None),
    exp.Paren: _inner,
    exp.TsOrDsToDate: _inner,
    exp.And: _logic(decides=False),
    exp.Or: _logic(decides=True),
    exp.Not: _any(lambda a: not a),
    exp.Is: _is,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _compare),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _null_safe),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.Escape: _escaped,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme(max),
    exp.Least: _extreme(min),
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    exp.IntDiv: _whole,
    exp.Neg: _number(op.negated),
    exp.Abs: _number(op.magnitude),
    exp.Round: _round,
    exp.Floor: _floor(up=False),
    exp.Ceil: _floor(up=True),
    exp.Sqrt: _all_as(_DOUBLE, op.root),
    exp.Pow: _all_as(_DOUBLE, op.power),
    exp.Exp: _all_as(_DOUBLE, op.exponential),
    exp.Ln: _all_as(_DOUBLE, op.logarithm),
    exp.Sign: _all_as(_DOUBLE, op.sign),
    exp.BitwiseAnd: _all_as(_LONG, lambda a, b: a & b),
    exp.BitwiseOr: _all_as(_LONG, lambda a, b: a | b),
    exp.BitwiseXor: _all_as(_LONG, lambda a, b: a ^ b),
    exp.BitwiseNot: _all_as(_LONG, lambda a: ~a),
    exp.Upper: _all_as(_STRING, str.upper),
    exp.Lower: _all_as(_STRING, str.lower),
    exp.Length: _all_as(_STRING, len),
    exp.Concat: _all_as(_STRING, lambda *parts: "".join(parts)),
    exp.DPipe: _all_as(_STRING, lambda a, b: a + b),
    exp.Substring: _substring,
    exp.Trim: _trim,
    **{
        kind: _any(op.calendar_part(kind.__name__.lower()))
        for kind in (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second)
    },
}
