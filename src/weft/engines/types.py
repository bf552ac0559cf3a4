"""Types of SQL expressions: Spark's rules in ANSI mode, over Arrow's types.

Integers compute in 64 bits, whatever their width; decimals follow Spark's rules of precision and
scale; text next to another type is read as that type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from weft.engines.kinds import (
    INSTANT,
    MOST_DIGITS,
    as_decimal,
    decimal_result,
    is_number,
    is_text,
    kind_of,
    wider_type,
)
from weft.errors import DataError, QueryError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.kinds import Operator

Types = Mapping[str, pa.DataType]

_CASTS: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "CHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": INSTANT,
    "TIMESTAMPTZ": INSTANT,
    "TIMESTAMPLTZ": INSTANT,
    "TIMESTAMPNTZ": pa.timestamp("us"),
}
# What values of a kind can be cast to.
_CASTABLE = {
    "number": ("number", "text", "boolean", "timestamp"),
    "text": ("number", "text", "boolean", "timestamp", "date"),
    "boolean": ("number", "text", "boolean"),
    "date": ("date", "text", "timestamp"),
    "timestamp": ("timestamp", "date", "text", "number"),
}
_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.Mod: "mod",
}
ARITHMETIC = tuple(_OPERATORS)
COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ),
)
_REAL = (exp.Sqrt, exp.Pow, exp.Exp, exp.Ln, exp.Sign)
_CALENDAR = (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second)
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot)
_TEXT = (exp.Upper, exp.Lower, exp.Substring, exp.Concat, exp.DPipe, exp.Trim)


def common_type(types: Sequence[pa.DataType], asked: exp.Expr) -> pa.DataType:
    """Return the type that values of several types are brought to before they meet."""
    found: pa.DataType = pa.null()
    for type in types:
        if pa.types.is_null(found) or pa.types.is_null(type):
            found = type if pa.types.is_null(found) else found
            continue
        wider = wider_type(found, type)
        if wider is None:
            raise _mismatch(asked, f"{found} and {type} have no common type", "cast one of them")
        found = wider
    return found


def _mismatch(asked: exp.Expr, why: str, hint: str) -> QueryError:
    return QueryError(f"cannot compute {asked.sql(dialect='spark')}: {why}", hint=hint)


def cast_type(node: exp.Expr) -> pa.DataType:
    """Return the type that a CAST names."""
    to = node.args["to"]
    if to.this.name == "DECIMAL":
        given = [int(parameter.name) for parameter in to.expressions]
        precision, scale = (*given, 0)[:2] if given else (10, 0)
        if not 1 <= precision <= MOST_DIGITS or not 0 <= scale <= precision:
            raise _mismatch(node, "a decimal has 1 to 38 digits", "write such as DECIMAL(10, 2)")
        return pa.decimal128(precision, scale)
    found = _CASTS.get(to.this.name)
    if found is None:
        raise UnsupportedError(
            f"cannot cast to {to.sql(dialect='spark')}",
            hint="cast to INT, BIGINT, DOUBLE, DECIMAL(p, s), STRING, BOOLEAN, DATE or TIMESTAMP",
        )
    return found


def constant_integer(node: exp.Expr | None, default: int) -> int:
    """Read an argument that must be a whole number written out, such as the digits of ROUND."""
    if node is None:
        return default
    sign = -1 if isinstance(node, exp.Neg) else 1
    inner = node.this if isinstance(node, exp.Neg) else node
    if isinstance(inner, exp.Literal) and inner.name.isdigit() and not inner.is_string:
        return sign * int(inner.name)
    asked = node.parent or node
    raise _mismatch(asked, "its digits are not a whole number", "write them out, as in ROUND(x, 2)")


def parts_of(node: exp.Expr) -> list[exp.Expr]:
    """List the expressions that a node computes with, in order."""
    found: list[exp.Expr] = []
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            found.append(value)
        elif isinstance(value, list):
            found.extend(v for v in value if isinstance(v, exp.Expr))
    return found


def branches_of(node: exp.Expr) -> list[exp.Expr]:
    """List the expressions that the value of a CASE, an IF or a choice may come from."""
    match node:
        case exp.Case():
            default = node.args.get("default")
            return [i.args["true"] for i in node.args["ifs"]] + ([default] if default else [])
        case exp.If():
            return [e for e in (node.args["true"], node.args.get("false")) if e is not None]
        case _:
            return [node.this, *node.expressions]


def literal_type(node: exp.Expr) -> pa.DataType:
    """Return the type of a literal: 1.5 is a decimal and 1e3 a double, as in Spark."""
    if node.is_string:
        return pa.string()
    text = node.name.lower()
    if "e" in text:
        return pa.float64()
    whole, _, fraction = text.partition(".")
    if "." not in text and int(text) < 2**63:
        return pa.int64()
    digits = len(whole.lstrip("0")) + len(fraction)
    if digits > MOST_DIGITS:
        raise _mismatch(node, "it has more than 38 digits", f"write it as a double: {text}e0")
    return pa.decimal128(max(digits, 1), len(fraction))


def type_of(node: exp.Expr, columns: Types) -> pa.DataType:
    """Infer the type of an expression, or say which part of it makes no sense.

    >>> from weft.expression import tree
    >>> columns = {"p": pa.decimal128(10, 2), "x": pa.int32(), "s": pa.string()}
    >>> [str(type_of(tree(e), columns)) for e in ("p * p", "p / 3", "x + 1", "s <=> '2'")]
    ['decimal128(21, 4)', 'decimal128(14, 6)', 'int64', 'bool']
    >>> type_of(tree("x AND true"), columns)
    Traceback (most recent call last):
    weft.errors.QueryError: cannot compute x AND TRUE: x is of type int32, not a condition
    hint: compare it, such as x <> 0
    """
    if isinstance(node, exp.Column):
        if node.name not in columns:
            raise DataError(
                f"the events have no column {node.name!r}",
                hint=f"the columns are {', '.join(columns)}",
            )
        own = columns[node.name]
        return own.value_type if pa.types.is_dictionary(own) else own
    for kinds, rule in _RULES:
        if isinstance(node, kinds):
            return rule(node, columns)
    raise UnsupportedError(
        f"{node.sql(dialect='spark')} cannot be evaluated",
        hint="use arithmetic, comparisons, CASE, CAST and the functions of docs/sql.md",
    )


def require_condition(node: exp.Expr, columns: Types, asked: exp.Expr | None = None) -> None:
    """Refuse an expression that stands for a condition and is neither true nor false."""
    type = type_of(node, columns)
    if not pa.types.is_boolean(type) and not pa.types.is_null(type):
        written = node.sql(dialect="spark")
        hint = f"compare it, such as {written} <> {'0' if is_number(type) else repr('')}"
        raise _mismatch(asked or node, f"{written} is of type {type}, not a condition", hint)


def _truth(node: exp.Expr, columns: Types) -> pa.DataType:
    """Conditions over conditions."""
    for part in parts_of(node):
        require_condition(part, columns, node)
    return pa.bool_()


def _comparison(node: exp.Expr, columns: Types) -> pa.DataType:
    common_type([type_of(part, columns) for part in parts_of(node)], node)
    return pa.bool_()


def _is(node: exp.Expr, columns: Types) -> pa.DataType:
    if isinstance(node.expression, exp.Boolean):
        require_condition(node.this, columns, node)
    type_of(node.this, columns)
    return pa.bool_()


def _fixed(result: pa.DataType, *kinds: str) -> Callable[[Any, Types], pa.DataType]:
    def rule(node: exp.Expr, columns: Types) -> pa.DataType:
        for part in parts_of(node):
            type = type_of(part, columns)
            if not pa.types.is_null(type) and kind_of(type) not in kinds:
                why = f"{part.sql(dialect='spark')} is of type {type}"
                raise _mismatch(node, why, f"use a {' or a '.join(kinds)}")
        return result

    return rule


def _number(node: exp.Expr, columns: Types, asked: exp.Expr) -> pa.DataType:
    """The type that an operand computes as: text is read as a number."""
    type = type_of(node, columns)
    if is_number(type) or is_text(type) or pa.types.is_null(type):
        return type
    written = node.sql(dialect="spark")
    raise _mismatch(asked, f"{written} is of type {type}, not a number", "cast it first")


def operand_types(node: exp.Expr, columns: Types) -> tuple[pa.DataType, pa.DataType]:
    """Return the types to which both sides of an arithmetic operator are brought."""
    parts = (node.this, node.expression)
    a, b = (_number(part, columns, node) for part in parts)
    if pa.types.is_null(a) or pa.types.is_null(b):
        return a, b
    if is_text(a) and is_text(b):
        raise _mismatch(node, "both sides are text", "cast them to numbers")
    if is_text(a) or is_text(b):
        other = b if is_text(a) else a
        wide = pa.int64() if pa.types.is_integer(other) else pa.float64()
        return wide, wide
    if pa.types.is_floating(a) or pa.types.is_floating(b):
        return pa.float64(), pa.float64()
    if pa.types.is_decimal(a) or pa.types.is_decimal(b):
        return _exactly(a, parts[0]), _exactly(b, parts[1])
    return pa.int64(), pa.int64()


def _exactly(type: pa.DataType, node: exp.Expr) -> pa.DataType:
    """The decimal that holds an operand; an integer written out takes only its own digits."""
    written = isinstance(node, exp.Literal) and pa.types.is_integer(type)
    return pa.decimal128(len(node.name.lstrip("0")) or 1, 0) if written else as_decimal(type)


def _arithmetic(node: exp.Expr, columns: Types) -> pa.DataType:
    a, b = operand_types(node, columns)
    if pa.types.is_null(a) or pa.types.is_null(b):
        return pa.null()
    if pa.types.is_decimal(a):
        return decimal_result(_OPERATORS[type(node)], a, b)
    return pa.float64() if isinstance(node, exp.Div) else a


def _divided_whole(node: exp.Expr, columns: Types) -> pa.DataType:
    if any(map(pa.types.is_floating, operand_types(node, columns))):
        raise _mismatch(node, "DIV is for whole numbers and decimals", "write FLOOR(a / b)")
    return pa.int64()


def _signed(node: exp.Expr, columns: Types) -> pa.DataType:
    type = _number(node.this, columns, node)
    if pa.types.is_integer(type):
        return pa.int64()
    return pa.float64() if is_text(type) or pa.types.is_floating(type) else type


def _rounded(node: exp.Expr, columns: Types) -> pa.DataType:
    type = _signed(node, columns)
    if not pa.types.is_decimal(type):
        return type
    digits = constant_integer(node.args.get("decimals"), 0)
    scale = min(type.scale, max(digits, 0))
    whole = type.precision - type.scale + 1
    whole = whole if digits >= 0 else max(whole, 1 - digits)
    return pa.decimal128(min(whole + scale, MOST_DIGITS), scale)


def _floored(node: exp.Expr, columns: Types) -> pa.DataType:
    if node.args.get("decimals") is not None or node.args.get("to") is not None:
        raise UnsupportedError(
            f"{node.sql(dialect='spark')} cannot be evaluated", hint="give it one argument"
        )
    type = _signed(node, columns)
    if pa.types.is_decimal(type):
        whole = type.precision - type.scale + (type.scale > 0)
        return pa.decimal128(min(whole, MOST_DIGITS), 0)
    return type if pa.types.is_null(type) else pa.int64()


def _cast(node: exp.Expr, columns: Types) -> pa.DataType:
    source, target = type_of(node.this, columns), cast_type(node)
    kinds = _CASTABLE.get(kind_of(source), ())
    if source != target and not pa.types.is_null(source) and kind_of(target) not in kinds:
        why = f"{node.this.sql(dialect='spark')} is of type {source}"
        raise _mismatch(node, why, "such values have no counterpart there")
    return target


def _choice(node: exp.Expr, columns: Types) -> pa.DataType:
    if isinstance(node, exp.Case):
        for branch in node.args["ifs"]:
            if node.this is None:
                require_condition(branch.this, columns, node)
            else:
                common_type([type_of(node.this, columns), type_of(branch.this, columns)], node)
    elif isinstance(node, exp.If):
        require_condition(node.this, columns, node)
    parts = branches_of(node)
    types = [type_of(part, columns) for part in parts]
    if any(map(pa.types.is_decimal, types)):
        # Beside a decimal, a small whole number that is written out takes 10 digits, not 20.
        short = [isinstance(part, exp.Literal) and part.name.isdigit() for part in parts]
        small = [s and int(part.name) < 2**31 for s, part in zip(short, parts, strict=True)]
        types = [pa.int32() if s else t for s, t in zip(small, types, strict=True)]
    return common_type(types, node)


def _nullif(node: exp.Expr, columns: Types) -> pa.DataType:
    _comparison(node, columns)
    return type_of(node.this, columns)


def _inner(node: exp.Expr, columns: Types) -> pa.DataType:
    return type_of(node.this, columns)


_RULES: tuple[tuple[Any, Callable[[Any, Types], pa.DataType]], ...] = (
    (exp.Literal, lambda node, columns: literal_type(node)),
    (exp.Boolean, lambda node, columns: pa.bool_()),
    (exp.Null, lambda node, columns: pa.null()),
    ((exp.Paren, exp.TsOrDsToDate), _inner),
    ((exp.And, exp.Or, exp.Not), _truth),
    ((*COMPARISONS, exp.In, exp.Between), _comparison),
    (exp.Is, _is),
    (exp.Like, _fixed(pa.bool_(), *_CASTABLE)),
    (exp.Escape, _inner),
    (ARITHMETIC, _arithmetic),
    ((exp.Neg, exp.Abs), _signed),
    (exp.Round, _rounded),
    ((exp.Floor, exp.Ceil), _floored),
    (_REAL, _fixed(pa.float64(), "number", "text")),
    (exp.IntDiv, _divided_whole),
    (_BITS, _fixed(pa.int64(), "number")),
    (_CALENDAR, _fixed(pa.int64(), "timestamp", "date", "text")),
    (exp.Length, _fixed(pa.int64(), *_CASTABLE)),
    (_TEXT, _fixed(pa.string(), *_CASTABLE)),
    ((exp.Cast, exp.TryCast), _cast),
    ((exp.Case, exp.If, exp.Coalesce, exp.Greatest, exp.Least), _choice),
    (exp.Nullif, _nullif),
)
