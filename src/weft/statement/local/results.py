"""Tables of results in this process: what weft computed for a block, as Spark would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.statement.local.aggregates import sum_type
from weft.statement.local.column_types import INSTANT, REALS, is_plain, spark_name
from weft.statement.local.scope import Column, Rows
from weft.statement.local.values import text
from weft.statement.sharing import PRESENT, WINDOW_COLUMNS

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall
    from weft.statement.sharing import Group, Member

_SAME = frozenset({"min", "max", "min_by", "max_by", "bit_and", "bit_or", "bit_xor"})
_ORDERED = ("min_by", "max_by")
_LOGIC = frozenset({"bool_and", "bool_or"})
_MOMENTS = frozenset({"stddev", "stddev_pop", "var", "var_pop"})
# What the local engine computes to Spark's answer; any other aggregate of a block is refused.
COMPUTED = frozenset({"count", "count_distinct", "sum", "avg"}) | _SAME | _LOGIC | _MOMENTS


def with_ordinals(rows: Rows, group: Group) -> Rows:
    """Number structs that only order the events of MIN_BY and MAX_BY, as Spark orders structs.

    Fields are compared one after another, a NULL before every value; a struct that is NULL itself
    orders nothing.
    """
    calls = [call for member in group.members for _, call in group.query(member).aggs]
    keys = {key for member in group.members for _, key in group.query(member).keys}
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
    query = group.query(member)
    for _, key in query.keys:
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
    return None


def table_of(group: Group, member: Member, result: pa.Table, events: pa.Schema) -> pa.Table:
    """Return the results of a block: keys, the window as Spark has it, aggregates."""
    if group.own_conditions(member):
        result = result.filter(pc.field(PRESENT) > 0)
    query = group.query(member)
    made: dict[str, Any] = {}
    for name, key in query.keys:
        made[name] = result[name].cast(events.field(key).type)
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
    return pa.table(made)


def _result_type(call: AggregateCall, events: pa.Schema) -> pa.DataType:
    """Return the type that Spark gives an aggregate."""
    if call.function.startswith("count"):
        return pa.int64()
    kind: pa.DataType = events.field(call.args[0]).type
    if call.function in _SAME:
        return kind
    if call.function in _LOGIC:
        return pa.bool_()
    if call.function == "sum":
        return sum_type(kind)
    if call.function == "avg" and pa.types.is_decimal(kind):
        precision, scale = min(38, kind.precision + 4), min(38, kind.scale + 4)
        return pa.decimal128(precision, scale)
    return pa.float64()
