"""Functions that DuckDB computes to Spark's answer; every other one is refused.

Each is compared with Spark by a test, over a table of values that includes NULL, NaN, both zeros,
text that is not ASCII and times before 1970. Where the two agree on some values only, the others
end the run with an error instead of an answer.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.statement.local.column_types import INTEGERS, REALS, is_number, spark_name
from weft.statement.local.operators import alike, arithmetic, literal_number, orderable
from weft.statement.local.rules import Mismatch, Rule, need
from weft.statement.local.text_functions import TEXT_FUNCTIONS
from weft.statement.local.time_functions import TIME_FUNCTIONS
from weft.statement.local.values import Value, cast, together, unless
from weft.statement.relations import Obstacle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def called(name: str, values: Sequence[Value]) -> Value:
    """Call a function of Spark's, or say that it is not among those that agree."""
    rule = FUNCTIONS.get(name)
    if rule is None:
        raise Obstacle(f"the function {name} is not among those that agree with Spark's here")
    try:
        made = rule(values)
    except (Mismatch, ValueError, IndexError) as error:
        kinds = ", ".join(spark_name(value.type) for value in values)
        raise Obstacle(f"{name}({kinds}) is Spark's") from error
    names = [value.name for value in values]
    if made.name is not None or None in names or name not in _NAMED:
        return made
    return made.named(f"{_WRITTEN.get(name, name)}({', '.join(map(str, names))})")


# Functions that name a column as they are called, and those that Spark writes in capitals; of any
# other one the column is to be named by the user.
_NAMED = frozenset(
    {"abs", "char_length", "coalesce", "concat", "concat_ws", "contains", "endswith", "exp"}
    | {"greatest", "ifnull", "isnan", "lcase", "least", "length", "ln", "lower", "mod", "nullif"}
    | {"nvl", "pmod", "pow", "power", "replace", "sqrt", "startswith", "substring", "to_timestamp"}
    | {"trim", "ucase", "upper"}
)
_WRITTEN = {"exp": "EXP", "power": "POWER", "sqrt": "SQRT"}


def _coalesce(values: Sequence[Value]) -> Value:
    same = together(values, "coalesce")
    return Value(f"coalesce({', '.join(v.sql for v in same)})", same[0].type)


def _nullif(values: Sequence[Value]) -> Value:
    left, right = values
    one, two = alike(left, right, "nullif")
    return Value(f"CASE WHEN {one.sql} = {two.sql} THEN NULL ELSE {left.sql} END", left.type)


def _if(values: Sequence[Value]) -> Value:
    condition, *branches = values
    need(condition.type == pa.bool_() and len(branches) == 2)
    yes, no = together(branches, "if")
    return Value(f"CASE WHEN {condition.sql} THEN {yes.sql} ELSE {no.sql} END", yes.type)


def _extreme(function: str) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        need(len(values) > 1)
        same = together(values, function)
        orderable(same[0].type, function)
        return Value(f"{function}({', '.join(v.sql for v in same)})", same[0].type)

    return rule


def _is_null(sign: str) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        (one,) = values
        name = None if one.name is None else f"({one.name} {sign})"
        return Value(f"({one.sql} {sign})", pa.bool_(), name)

    return rule


def _is_nan(values: Sequence[Value]) -> Value:
    (one,) = values
    need(one.type in REALS)
    return Value(f"coalesce(isnan({one.sql}), FALSE)", pa.bool_())


def _absolute(values: Sequence[Value]) -> Value:
    (one,) = values
    need(is_number(one.type))
    if one.type in INTEGERS:
        return Value(f"CASE WHEN {one.sql} < 0 THEN - {one.sql} ELSE {one.sql} END", one.type)
    return Value(f"abs({one.sql})", one.type)


def _real(template: str) -> Rule:
    """A function of doubles, which other numbers are read as."""

    def rule(values: Sequence[Value]) -> Value:
        need(all(is_number(value.type) for value in values))
        sqls = [cast(value, pa.float64()).sql for value in values]
        need(template.count("{1}") == 0 or len(sqls) == 2)
        need("{1}" in template or len(sqls) == 1)
        return Value(template.format(*sqls), pa.float64())

    return rule


def _whole(function: str, name: str) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        (one,) = values
        if one.type in INTEGERS:
            return Value(cast(one, pa.int64()).sql, pa.int64(), _name_of(name, one))
        need(one.type == pa.float64())
        rounded = f"{function}({one.sql})"
        outside = f"isnan({one.sql}) OR abs({rounded}) >= 9223372036854775808::DOUBLE"
        made = unless(
            outside, "a number is out of the range of bigint", f"CAST({rounded} AS BIGINT)"
        )
        return Value(made, pa.int64(), _name_of(name, one))

    return rule


def _name_of(function: str, one: Value) -> str | None:
    return None if one.name is None else f"{function}({one.name})"


def _round(values: Sequence[Value]) -> Value:
    """Round half up by the digits that are written, as Spark does, and not by those of binary."""
    one = values[0]
    places = literal_number(values[1], "the places of round") if len(values) > 1 else 0
    name = None if one.name is None else f"round({one.name}, {places})"
    if one.type in INTEGERS and places >= 0:
        return Value(one.sql, one.type, name)
    need(one.type == pa.float64() and 0 <= places <= 5)
    digits = f"CAST(CAST({one.sql} AS VARCHAR) AS DECIMAL(38,22))"
    rounded = f"CAST(round({digits}, {places}) AS DECIMAL(38,{places}))"
    made = f"CAST(CAST({rounded} AS VARCHAR) AS DOUBLE)"
    huge = f"isnan({one.sql}) OR isinf({one.sql}) OR abs({one.sql}) >= 1e15::DOUBLE"
    return Value(f"CASE WHEN {huge} THEN {one.sql} ELSE {made} END", pa.float64(), name)


def _mod(values: Sequence[Value]) -> Value:
    return arithmetic("%", *values).named(None)  # and so it is named by its call


def _pmod(values: Sequence[Value]) -> Value:
    left, right = together(values, "pmod")
    need(left.type in INTEGERS)
    rest = arithmetic("%", left, right).sql
    again = arithmetic("%", Value(f"({rest} + {right.sql})", left.type), right).sql
    return Value(f"CASE WHEN {rest} < 0 THEN {again} ELSE {rest} END", left.type)


def _size(values: Sequence[Value]) -> Value:
    (one,) = values
    need(pa.types.is_list(one.type))
    return Value(f"CAST(len({one.sql}) AS INTEGER)", pa.int32())


def _array_contains(values: Sequence[Value]) -> Value:
    items, one = values
    need(pa.types.is_list(items.type) and items.type.value_type == one.type == pa.string())
    found = f"list_contains({items.sql}, {one.sql})"
    gap = f"len(list_filter({items.sql}, lambda x: x IS NULL)) > 0"
    made = f"CASE WHEN {found} THEN TRUE WHEN {one.sql} IS NULL OR {gap} THEN NULL ELSE {found} END"
    return Value(made, pa.bool_())


def _get(values: Sequence[Value]) -> Value:
    items, place = values
    if not pa.types.is_list(items.type):
        raise Mismatch
    at = literal_number(place, "the place in an array")
    need(at >= 0)
    return Value(f"list_extract({items.sql}, {at + 1})", items.type.value_type)


def _struct(values: Sequence[Value]) -> Value:
    names = [value.name for value in values]
    need(None not in names and len({str(n).casefold() for n in names}) == len(names))
    need(
        all(
            n and str(n).isidentifier() and v.literal is None
            for n, v in zip(names, values, strict=True)
        )
    )
    packed = ", ".join(f'"{v.name}" := {v.sql}' for v in values)
    kind = pa.struct([(str(v.name), v.type) for v in values])
    return Value(f"struct_pack({packed})", kind)


FUNCTIONS: Mapping[str, Rule] = MappingProxyType(
    {
        **TEXT_FUNCTIONS,
        **TIME_FUNCTIONS,
        "abs": _absolute,
        "array_contains": _array_contains,
        "ceil": _whole("ceil", "CEIL"),
        "ceiling": _whole("ceil", "ceiling"),
        "coalesce": _coalesce,
        "exp": _real("exp({0})"),
        "floor": _whole("floor", "FLOOR"),
        "get": _get,
        "greatest": _extreme("greatest"),
        "if": _if,
        "ifnull": _coalesce,
        "isnan": _is_nan,
        "isnotnull": _is_null("IS NOT NULL"),
        "isnull": _is_null("IS NULL"),
        "least": _extreme("least"),
        "ln": _real("CASE WHEN {0} <= 0 THEN NULL ELSE ln({0}) END"),
        "mod": _mod,
        "nullif": _nullif,
        "nvl": _coalesce,
        "pmod": _pmod,
        "pow": _real("pow({0}, {1})"),
        "power": _real("pow({0}, {1})"),
        "round": _round,
        "size": _size,
        "sqrt": _real("sqrt({0})"),
        "struct": _struct,
    }
)
