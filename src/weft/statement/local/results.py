"""Tables of results in this process: what weft computed for a block, as Spark would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.statement.local.aggregates import sum_type
from weft.statement.local.column_types import INSTANT, REALS, is_plain, spark_name
from weft.statement.local.scope import Column, Rows
from weft.statement.local.values import text
from weft.statement.projection import GROUPING_ID, grouping_column
from weft.statement.sharing import PRESENT, WINDOW_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.aggregates import AggregateCall
    from weft.query import Query
    from weft.statement.sharing import Group, Member

_SAME = frozenset({"min", "max", "min_by", "max_by", "bit_and", "bit_or", "bit_xor"})
_ORDERED = ("min_by", "max_by")
_LOGIC = frozenset({"bool_and", "bool_or"})
_MOMENTS = frozenset({"stddev", "stddev_pop", "var", "var_pop"})
_PAIRS = frozenset(
    {
        *("corr", "covar_pop", "covar_samp", "kurtosis", "skewness"),
        *("regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
    }
)
_DISTINCT = frozenset({"sum_distinct", "avg_distinct"})
# What the local engine computes to Spark's answer; any other aggregate of a block is refused.
COMPUTED = (
    frozenset({"count", "count_distinct", "sum", "avg"})
    | _SAME
    | _LOGIC
    | _MOMENTS
    | _PAIRS
    | _DISTINCT
)


def with_ordinals(rows: Rows, group: Group) -> Rows:
    """Number structs that only order the events of MIN_BY and MAX_BY, as Spark orders structs.

    Fields are compared one after another, a NULL before every value; a struct that is NULL itself
    orders nothing.
    """
    queries = [query for member in group.members for query in group.queries(member)]
    calls = [call for query in queries for _, call in query.aggs]
    keys = {key for query in queries for _, key in query.keys}
    ordering = {c.args[1] for c in calls if c.function in _ORDERED}
    others = {a for c in calls for a in c.args[: 1 if c.function in _ORDERED else None]}
    items, columns = [], []
    for at, column in enumerate(rows.columns):
        name = str(column.name)
        names = _fields_in_order(column.type) if name in ordering - others - keys else ()
        if names:
            fields = (f"struct_extract(c{at}, {text(field)})" for field in names)
            order = ", ".join(f"{field} ASC NULLS FIRST" for field in fields)
            ordinal = f"dense_rank() OVER (ORDER BY {order})"
            items.append(f"CASE WHEN c{at} IS NOT NULL THEN {ordinal} END AS c{at}")
            columns.append(Column(column.name, pa.int64()))
        else:
            items.append(f"c{at}")
            columns.append(column)
    if tuple(columns) == rows.columns:
        return rows
    return Rows(f"SELECT {', '.join(items)} FROM ({rows.sql}) AS e", tuple(columns))


def _fields_in_order(kind: pa.DataType) -> tuple[str, ...]:
    """Name the fields of a struct whose values Spark and DuckDB order alike."""
    if not pa.types.is_struct(kind) or not all(is_plain(field.type) for field in kind):
        return ()
    return tuple(field.name for field in kind)


def obstacle_of(group: Group, member: Member, events: pa.Schema) -> str | None:
    """Say which type of a key or an argument keeps a block from being computed here."""
    query, *_ = group.queries(member)
    for key in group.key_names(member).values():
        kind = events.field(key).type
        if not is_plain(kind) or kind in REALS:
            return f"a key is of type {spark_name(kind)}"
    for _, call in query.aggs:
        if call.function not in COMPUTED:
            return f"{call.function} is not computed here"
        for argument in call.args:
            kind = events.field(argument).type
            if call.function != "count" and not is_plain(kind):
                return f"{call.function} is over type {spark_name(kind)}"
            if call.function in _PAIRS | _DISTINCT and not _is_number(kind):
                return f"{call.function} is over type {spark_name(kind)}"
    return None


def _is_number(kind: pa.DataType) -> bool:
    return kind in REALS or pa.types.is_integer(kind) or pa.types.is_decimal(kind)


def table_of(
    group: Group, member: Member, results: Mapping[str, pa.Table], events: pa.Schema
) -> pa.Table:
    """Return the results of a block: keys, the window as Spark has it, aggregates."""
    queries = zip(group.queries(member), member.grouping_bits or ((),), strict=True)
    parts = [_of_set(group, member, results[query.name], query, events, b) for query, b in queries]
    return pa.concat_tables(parts)


def _of_set(
    group: Group,
    member: Member,
    result: pa.Table,
    query: Query,
    events: pa.Schema,
    bits: Sequence[int],
) -> pa.Table:
    """Return the results of one set that a block groups by; keys that it leaves out are NULL."""
    if group.own_conditions(member):
        result = result.filter(pc.field(PRESENT) > 0)
    made: dict[str, Any] = {}
    own = dict(query.keys)
    for name, key in group.key_names(member).items():
        kind, rows = events.field(key).type, result.num_rows
        made[name] = result[name].cast(kind) if name in own else pa.nulls(rows, kind)
    window = member.block.window.name
    _, start, end = WINDOW_COLUMNS
    if window in ("window", "session_window"):
        bounds = [result[name].combine_chunks() for name in (start, end)]
        made[window] = pa.chunked_array([pa.StructArray.from_arrays(bounds, ["start", "end"])])
    else:
        made[window] = result[start].cast(INSTANT)  # as date_trunc gives it
    for name, call in query.aggs:
        if name != PRESENT:
            made[name] = result[name].cast(_result_type(call, events))
    for number, bit in enumerate(bits):
        made[grouping_column(number)] = _repeated(bit, pa.int8(), result.num_rows)
    if bits:
        whole = int("".join(map(str, bits)), 2)
        made[GROUPING_ID] = _repeated(whole, pa.int64(), result.num_rows)
    return pa.table(made)


def _repeated(value: int, kind: pa.DataType, rows: int) -> Any:
    return pa.array(np.full(rows, value), kind)


def _result_type(call: AggregateCall, events: pa.Schema) -> pa.DataType:
    """Return the type that Spark gives an aggregate."""
    if call.function.startswith("count"):
        return pa.int64()
    kind: pa.DataType = events.field(call.args[0]).type
    if call.function in _SAME:
        return kind
    if call.function in _LOGIC:
        return pa.bool_()
    if call.function in ("sum", "sum_distinct"):
        return sum_type(kind)
    if call.function in ("avg", "avg_distinct") and pa.types.is_decimal(kind):
        precision, scale = min(38, kind.precision + 4), min(38, kind.scale + 4)
        return pa.decimal128(precision, scale)
    return pa.float64()
