"""Aggregates and functions OVER rows that DuckDB computes to Spark's answer, with Spark's types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weft.statement.local.column_types import INTEGERS, REALS, duck_name, is_number, spark_name
from weft.statement.local.operators import comparable, literal_number, orderable
from weft.statement.local.values import Value, cast
from weft.statement.relations import Obstacle

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOMENTS = {
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
}
_LOGIC = {"any": "bool_or", "some": "bool_or", "bool_or": "bool_or", "every": "bool_and"}
_LOGIC["bool_and"] = "bool_and"
_RANKS = ("row_number", "rank", "dense_rank", "ntile")
_SHARES = ("percent_rank", "cume_dist")
OVER_ALONE = frozenset({*_RANKS, *_SHARES, "lag", "lead"})


def sum_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a sum, as Spark has it."""
    if kind in INTEGERS:
        return pa.int64()
    if kind in REALS:
        return pa.float64()
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(38, kind.precision + 10), kind.scale)
    raise Obstacle(f"sum of {spark_name(kind)} is Spark's")


def aggregated(name: str, values: Sequence[Value], distinct: bool, rest: str) -> Value:
    """Call an aggregate; `rest` is what follows the call: FILTER and OVER."""
    made = _aggregate(name, values, "DISTINCT " if distinct else "", rest)
    names = [value.name for value in values]
    if not values and name == "count":
        names = ["1"]
    said = f"{name}({'DISTINCT ' if distinct else ''}{', '.join(map(str, names))})"
    return made.named(None if None in names or rest or name not in _PLAIN_NAMES else said)


# Aggregates that name a column as they are called; of another one the user names it.
_PLAIN_NAMES = frozenset({"avg", "count", "max", "min", "sum"})


def _aggregate(name: str, values: Sequence[Value], distinct: str, rest: str) -> Value:
    if name == "count":
        return _count(values, distinct, rest)
    if len(values) != 1:
        raise Obstacle(f"{name} of {len(values)} arguments is Spark's")
    (one,) = values
    if name == "count_if" and one.type == pa.bool_() and not distinct:
        return Value(f"count(CASE WHEN {one.sql} THEN 1 END){rest}", pa.int64())
    if name in ("min", "max"):
        orderable(one.type, name)
        return Value(f"{name}({one.sql}){rest}", one.type)
    if name == "sum":
        kind = sum_type(one.type)
        wide = cast(one, pa.float64()).sql if kind == pa.float64() else one.sql
        return Value(f"CAST(sum({distinct}{wide}){rest} AS {duck_name(kind)})", kind)
    if name in ("avg", "mean") and (one.type in INTEGERS or one.type in REALS):
        return Value(f"avg({distinct}{cast(one, pa.float64()).sql}){rest}", pa.float64())
    if name in _MOMENTS and is_number(one.type) and not distinct:
        return Value(f"{_MOMENTS[name]}({cast(one, pa.float64()).sql}){rest}", pa.float64())
    if name in _LOGIC and one.type == pa.bool_():
        return Value(f"{_LOGIC[name]}({one.sql}){rest}", pa.bool_())
    if name in ("bit_and", "bit_or", "bit_xor") and one.type in INTEGERS and not distinct:
        return Value(f"{name}({one.sql}){rest}", one.type)
    raise Obstacle(f"{name} of {spark_name(one.type)} is not among those that agree with Spark's")


def _count(values: Sequence[Value], distinct: str, rest: str) -> Value:
    if not values:
        return Value(f"count(*){rest}", pa.int64())
    if len(values) > 1:
        known = " AND ".join(f"{value.sql} IS NOT NULL" for value in values)
        if distinct:
            raise Obstacle("count(DISTINCT a, b) is Spark's")
        return Value(f"count(CASE WHEN {known} THEN 1 END){rest}", pa.int64())
    if distinct:
        comparable(values[0].type, "count(DISTINCT)")
    return Value(f"count({distinct}{values[0].sql}){rest}", pa.int64())


def ranked(name: str, values: Sequence[Value], rest: str) -> Value:
    """Call a function that is computed OVER rows alone."""
    if name in _RANKS:
        places = ", ".join(str(literal_number(v, f"the argument of {name}")) for v in values)
        return Value(f"CAST({name}({places}){rest} AS INTEGER)", pa.int32())
    if name in _SHARES and not values:
        return Value(f"{name}(){rest}", pa.float64())
    value, *more = values
    steps = literal_number(more[0], f"the distance of {name}") if more else 1
    if len(more) == 2:
        other = cast(more[1], value.type)
        return Value(f"{name}({value.sql}, {steps}, {other.sql}){rest}", value.type)
    return Value(f"{name}({value.sql}, {steps}){rest}", value.type)
