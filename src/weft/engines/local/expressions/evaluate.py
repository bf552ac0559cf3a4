"""SQL expressions over whole columns, with the values that the reference engine gives row by row.

Arithmetic, comparisons, logic, CASE and the common functions run on Arrow. What has no exact
counterpart there (decimals, text functions beyond ASCII, odd casts) is evaluated by the reference
engine once per distinct combination of the columns it reads. Like there, a branch that is not
taken is not evaluated, so it cannot fail.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from weft.engines.local.expressions.functions import FUNCTIONS, compare
from weft.engines.local.expressions.numbers import NotColumnar, Value, unified
from weft.engines.local.values.arrow import NOTHING, Array, pc, repeated
from weft.engines.scalar.expressions import compiled
from weft.engines.scalar.rows import rows_of
from weft.engines.schema import expression_type
from weft.errors import DataError
from weft.expression import columns_of, tree

if TYPE_CHECKING:
    from weft.engines.local.values.frame import Frame

# What can raise an error; everything else may be evaluated for rows that do not need it.
_FAILING = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Cast,
    exp.Sqrt, exp.Pow, exp.Floor, exp.Ceil,
)  # fmt: skip
_ARROW_GAPS = (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError)


def evaluate(text: str, frame: Frame) -> Array:
    """Return the values of an expression, one per row, of the type the schema promises.

    >>> from weft.engines.local.values.frame import Frame
    >>> frame = Frame({"a": pa.array([6, None, 1]), "b": pa.array([3, 0, 2])}, 3)
    >>> evaluate("CASE WHEN b > 0 THEN a / b END", frame).to_pylist()
    [2.0, None, 0.5]
    """
    name = _column_named(text)
    if name is not None and name in frame.columns:
        return frame.columns[name]
    node = tree(text)
    wanted = expression_type(text, frame.schema)
    try:
        found = _full(_value(node, frame), frame.rows)
    except (NotColumnar, *_ARROW_GAPS):
        return _per_distinct(text, frame, wanted)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{text} cannot be computed: {str(error).splitlines()[0]}",
            hint="cast to double, or filter such events out with where=",
        ) from None
    return _typed(found, wanted)


@lru_cache(maxsize=1 << 12)
def _column_named(text: str) -> str | None:
    node = tree(text)
    return node.name if isinstance(node, exp.Column) else None


def _typed(array: Array, wanted: pa.DataType) -> Array:
    if pa.types.is_null(wanted) or array.type == wanted:
        return array
    if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(array.type):
        return array
    return array.cast(wanted, safe=not pa.types.is_floating(wanted))


def _full(value: Value, rows: int) -> Array:
    if isinstance(value, pa.Scalar):
        return repeated(value, rows)
    return value


def _value(node: exp.Expr, frame: Frame) -> Value:
    match node:
        case exp.Column():
            if node.name not in frame.columns:
                raise DataError(
                    f"the events have no column {node.name!r}",
                    hint=f"the columns are {', '.join(frame.columns)}",
                )
            return frame.columns[node.name]
        case exp.Paren() | exp.TsOrDsToDate():
            return _value(node.this, frame)
        case exp.And() | exp.Or():
            return _logic(node, frame)
        case exp.Case():
            return _case(node, frame)
        case exp.If():
            branches = [(node.this, node.args["true"])]
            return _branches(branches, node.args.get("false"), frame)
        case exp.Coalesce():
            return _coalesce([node.this, *node.expressions], frame)
        case _:
            function = FUNCTIONS.get(type(node))
            if function is None:
                raise NotColumnar
            return function(node, lambda part: _value(part, frame))


def _fails(node: exp.Expr) -> bool:
    return node.find(*_FAILING) is not None


def _truth(value: Value, rows: int) -> Array:
    """Take a condition as a mask: NULL is not true."""
    if not pa.types.is_boolean(value.type):
        if pa.types.is_null(value.type):
            return repeated(pa.scalar(False), rows)
        raise NotColumnar
    return pc.fill_null(_full(value, rows), False)


def _on(node: exp.Expr, frame: Frame, mask: Array) -> Value:
    """Evaluate for the rows of a mask alone where the expression could fail; NULL elsewhere."""
    if not _fails(node):
        return _value(node, frame)
    if not pc.any(mask).as_py():
        return NOTHING
    if pc.all(mask).as_py():
        return _value(node, frame)
    part = frame.filter(mask)
    values = _full(_value(node, part), part.rows)
    places = np.cumsum(mask.to_numpy(zero_copy_only=False)) - 1
    return values.take(pa.array(places, mask=~mask.to_numpy(zero_copy_only=False)))


def _logic(node: exp.Expr, frame: Frame) -> Value:
    left = _value(node.this, frame)
    if not (pa.types.is_boolean(left.type) or pa.types.is_null(left.type)):
        raise NotColumnar
    left = left.cast(pa.bool_())
    both = isinstance(node, exp.And)
    decided = pc.fill_null(_full(left, frame.rows), not both)
    right = _on(node.expression, frame, decided if both else pc.invert(decided))
    if not (pa.types.is_boolean(right.type) or pa.types.is_null(right.type)):
        raise NotColumnar
    combine = pc.and_kleene if both else pc.or_kleene
    return combine(left, right.cast(pa.bool_()))


def _case(node: exp.Expr, frame: Frame) -> Value:
    branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
    if node.this is not None:
        branches = [(exp.EQ(this=node.this.copy(), expression=w.copy()), v) for w, v in branches]
    return _branches(branches, node.args.get("default"), frame)


def _branches(
    branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None, frame: Frame
) -> Value:
    waiting = repeated(pa.scalar(True), frame.rows)
    chosen: list[tuple[Array, Value]] = []
    for condition, result in branches:
        holds = pc.and_(waiting, _truth(_on(condition, frame, waiting), frame.rows))
        chosen.append((holds, _on(result, frame, holds)))
        waiting = pc.and_not(waiting, holds)
    otherwise = NOTHING if default is None else _on(default, frame, waiting)
    values = unified([otherwise, *(value for _, value in chosen)])
    out = values[0]
    for (mask, _), value in zip(chosen, values[1:], strict=True):
        out = pc.if_else(mask, value, out)
    return out


def _coalesce(parts: list[exp.Expr], frame: Frame) -> Value:
    options: list[Value] = []
    missing = repeated(pa.scalar(True), frame.rows)
    for part in parts:
        value = _on(part, frame, missing)
        options.append(value)
        missing = pc.and_(missing, pc.is_null(_full(value, frame.rows)))
    return pc.coalesce(*unified(options))


def _per_distinct(text: str, frame: Frame, type: pa.DataType) -> Array:
    """Ask the reference engine once for each distinct combination of the columns read."""
    names = [name for name in columns_of(text) if name in frame.columns]
    first, inverse = _distinct(frame, names)
    read = compiled(text)
    rows = frame.take(first)
    told = rows_of(pa.table({name: rows.columns[name] for name in names}))
    values = [read(event) for event in told] if names else [read({}) for _ in first]
    found: Array = pa.array(values, None if pa.types.is_null(type) else type)
    return found.take(pa.array(inverse))


def _distinct(frame: Frame, names: list[str]) -> tuple[Any, Any]:
    """Return the first row of each distinct combination, and the combination of every row."""
    codes = np.zeros(frame.rows, np.int64)
    for name in names:
        array = frame.columns[name]
        if pa.types.is_floating(array.type):
            # By their bits: text, for one, tells -0.0 from 0.0.
            array = array.cast(pa.float64()).view(pa.int64())
        encoded = array.dictionary_encode(null_encoding="encode")
        own = encoded.indices.to_numpy(zero_copy_only=False)
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + own, return_inverse=True)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return first, inverse


__all__ = ["compare", "evaluate"]
