"""Types of results: what each column of a result holds, known before any row is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weft.errors import DataError, QueryError
from weft.expression import canonical, column, tree

if TYPE_CHECKING:
    from sqlglot import exp

    from weft.aggregates import AggregateCall
    from weft.query import Query

_CASTS: dict[str, pa.DataType] = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "INT": pa.int32(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "STRING": pa.string(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}
_TEXT = ("Upper", "Lower", "Substring", "Concat", "DPipe", "Trim")
_WHOLE = ("Length", "Year", "Month", "Day", "Hour", "Minute", "Second", "Floor", "Ceil", "IntDiv")
_TRUTH = ("And", "Or", "Not", "Is", "In", "Between", "Like", "EQ", "NEQ", "GT", "GTE", "LT", "LTE")


def result_schema(query: Query, source: pa.Schema) -> pa.Schema:
    """Return the columns of a query's result over a source of this schema, with their types."""
    if query.time is None:
        raise QueryError(f"query {query.name!r} has no time column", hint="name it with time=")
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
    _check_input(call, first)
    fixed: dict[str, pa.DataType] = {
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "any": pa.null(),
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


def _check_input(call: AggregateCall, given: pa.DataType) -> None:
    integer, boolean = pa.types.is_integer(given), pa.types.is_boolean(given)
    number = integer or pa.types.is_floating(given) or pa.types.is_decimal(given)
    fits = {"anything": True, "numbers": number, "integers": integer, "booleans": boolean}
    needed = call.aggregate.accepts
    if not fits[needed] and not pa.types.is_null(given):
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
    return _type(tree(canonical(text)), source)


def _type(node: exp.Expr, source: pa.Schema) -> pa.DataType:
    name = type(node).__name__
    if name == "Column":
        own: pa.DataType = source.field(node.name).type
        return own
    if name == "Literal":
        if node.is_string:
            return pa.string()
        return pa.int64() if node.name.isdigit() else pa.float64()
    if name in _TRUTH or name == "Boolean":
        return pa.bool_()
    if name in _TEXT:
        return pa.string()
    if name in _WHOLE:
        return pa.int64()
    if name in ("Cast", "TryCast"):
        to = node.args["to"].sql(dialect="spark").upper()
        return next((t for prefix, t in _CASTS.items() if to.startswith(prefix)), pa.null())
    parts = [_type(part, source) for part in _results(node, name)]
    if name in ("Div", "Sqrt", "Pow") and not any(map(pa.types.is_decimal, parts)):
        return pa.float64()
    return _common(parts, widen=name in ("Add", "Sub", "Mul", "Mod", "Neg", "Div"))


def _results(node: exp.Expr, name: str) -> list[exp.Expr]:
    """The parts of an expression that its value may come from."""
    if name == "Case":
        default = node.args.get("default")
        return [i.args["true"] for i in node.args["ifs"]] + ([default] if default else [])
    if name == "If":
        return [e for e in (node.args["true"], node.args.get("false")) if e is not None]
    if name in ("Round", "Nullif"):
        return [node.this]
    return list(node.iter_expressions())


def _common(types: list[pa.DataType], *, widen: bool) -> pa.DataType:
    known = [t for t in types if not pa.types.is_null(t)]
    if not known:
        return pa.null()
    if any(map(pa.types.is_floating, known)):
        return pa.float64()
    if all(map(pa.types.is_integer, known)) and (widen or len(set(known)) > 1):
        return pa.int64()
    return known[0]
