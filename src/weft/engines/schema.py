"""Types of results: what each column of a result holds, known before any row is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weft.engines.kinds import is_number
from weft.engines.types import require_condition, type_of
from weft.errors import DataError, QueryError
from weft.expression import canonical, column, tree
from weft.window import PunctuatedWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import AggregateCall
    from weft.engines.types import Types
    from weft.query import Query


def result_schema(query: Query, source: pa.Schema) -> pa.Schema:
    """Return the columns of a query's result over a source of this schema, with their types."""
    if query.time is None:
        raise QueryError(f"query {query.name!r} has no time column", hint="name it with time=")
    check_filter(query.where, source)
    for _, window in query.windows:
        if isinstance(window, PunctuatedWindow):
            check_filter(window.predicate, source)
    instant = time_type(source.field(query.time).type, query.time)
    label, start, end = query.window_columns
    return pa.schema(
        [
            *(pa.field(name, expression_type(e, source)) for name, e in query.keys),
            pa.field(label, pa.string()),
            pa.field(start, instant),
            pa.field(end, instant),
            *(pa.field(alias, call_type(call, source)) for alias, call in query.aggs),
        ]
    )


def check_filter(where: str | None, source: pa.Schema) -> None:
    """Refuse a filter that is neither true nor false for an event, before any event is read.

    >>> check_filter("x > 1", pa.schema([("x", pa.int64())]))
    >>> check_filter("x", pa.schema([("x", pa.int64())]))
    Traceback (most recent call last):
    weft.errors.QueryError: cannot compute x: x is of type int64, not a condition
    hint: compare it, such as x <> 0
    """
    if where is not None:
        require_condition(tree(canonical(where)), columns_by_name(source))


def columns_by_name(source: pa.Schema) -> Types:
    """Return the types of a source's columns under their names."""
    return dict(zip(source.names, source.types, strict=True))


def time_type(source: pa.DataType, name: str) -> pa.DataType:
    """Return the type of window bounds: the zone of the event time, or UTC, in microseconds."""
    if pa.types.is_timestamp(source):
        return pa.timestamp("us", source.tz)
    if pa.types.is_date(source):
        return pa.timestamp("us")
    if pa.types.is_integer(source):
        return pa.timestamp("us", "UTC")
    raise DataError(
        f"the time column {name!r} is of type {source}",
        hint="use a timestamp, a date, or an integer of microseconds since 1970 UTC",
    )


def call_type(call: AggregateCall, source: pa.Schema) -> pa.DataType:
    """Return the type of an aggregate's result, or say why the function cannot take its input."""
    first = expression_type(call.args[0], source) if call.args else pa.int64()
    fits = {
        "anything": True,
        "plain values": not pa.types.is_nested(first),
        "numbers": is_number(first),
        "integers": pa.types.is_integer(first),
        "booleans": pa.types.is_boolean(first),
    }
    if not pa.types.is_null(first):
        check_input(call, str(first), fits)
    fixed: dict[str, pa.DataType] = {
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "any": pa.null(),
        "list": pa.list_(first),
        "same": first,
    }
    kind = call.aggregate.result
    if kind in fixed:
        return fixed[kind]
    if pa.types.is_decimal(first):
        more = 10 if kind == "sum" else 4
        scale = first.scale if kind == "sum" else min(first.scale + 4, 38)
        return pa.decimal128(min(first.precision + more, 38), scale)
    return pa.int64() if kind == "sum" and pa.types.is_integer(first) else pa.float64()


def check_input(call: AggregateCall, given: str, fits: Mapping[str, bool]) -> None:
    """Refuse an input of a type that is none of those which a function takes."""
    needed = call.aggregate.accepts
    if not fits[needed]:
        raise QueryError(
            f"{call} cannot be computed: {call.args[0]} is of type {given}",
            hint=f"{call.function} needs {needed}; cast the column, or use another aggregate",
        )


def expression_type(text: str, source: pa.Schema) -> pa.DataType:
    """Infer the type of an expression over the columns of a source.

    >>> schema = pa.schema([("a", pa.int32()), ("b", pa.float64())])
    >>> [str(expression_type(e, schema)) for e in ("a", "a + 1", "a / 2", "a > b", "upper('x')")]
    ['int32', 'int64', 'double', 'bool', 'string']
    """
    for field in source:
        if column(field.name) == text:
            found: pa.DataType = field.type
            return found
    return type_of(tree(canonical(text)), columns_by_name(source))
