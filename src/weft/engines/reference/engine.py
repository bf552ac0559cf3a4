"""The reference engine behind the common interface: Arrow tables in, Arrow tables out."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.base import Unsupported
from weft.engines.reference.interpreter import Interpreter
from weft.engines.reference.oracle import ResultRow, evaluate
from weft.engines.reference.rows import EventRow, rows_of
from weft.engines.schema import result_schema
from weft.errors import DataError
from weft.frames import in_microseconds
from weft.plan import Join, Plan
from weft.query import JoinQuery, Query, Workload
from weft.time import instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weft.query import AnyQuery


_WIDE = Context(prec=100)


class ReferenceEngine:
    """Runs plans with the interpreter, and workloads with the oracle, which knows no plan."""

    name = "reference"

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Joins are not interpreted."""
        return tuple(
            Unsupported(node, "the reference engine does not run joins")
            for node in plan.nodes
            if isinstance(node, Join)
        )

    def run(self, plan: Plan, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Interpret the plan, node by node."""
        schemas = {q.name: result_schema(q, sources[q.source].schema) for q in plan.queries}
        results = Interpreter(plan, _rows(sources)).run()
        return {name: _table(schema, results[name]) for name, schema in schemas.items()}

    def answer(self, workload: Workload, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Evaluate every query directly, without any plan: the oracle."""
        queries = list(_single(workload.queries))
        schemas = {q.name: result_schema(q, sources[q.source].schema) for q in queries}
        rows = _rows(sources)
        return {q.name: _table(schemas[q.name], evaluate(q, rows[q.source])) for q in queries}


def _single(queries: Sequence[AnyQuery]) -> Iterator[Query]:
    for query in queries:
        assert not isinstance(query, JoinQuery)
        yield query


def _rows(sources: Mapping[str, pa.Table]) -> dict[str, list[EventRow]]:
    return {name: rows_of(_with_exact_times(table)) for name, table in sources.items()}


def _with_exact_times(table: pa.Table) -> pa.Table:
    """Nanoseconds become microseconds, the finest time there is here."""
    columns = [in_microseconds(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _table(schema: pa.Schema, rows: list[ResultRow]) -> pa.Table:
    columns: list[list[Any]] = [[] for _ in schema]
    for row in rows:
        bounds = (row.label, instant(row.start_us), instant(row.end_us))
        for values, value in zip(columns, (*row.key, *bounds, *row.values), strict=True):
            values.append(value)
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


def _array(values: list[Any], type: pa.DataType) -> pa.Array[Any]:
    if pa.types.is_null(type):
        told: pa.Array[Any] = pa.array(values)  # a custom aggregate: the values themselves tell
        return told
    if pa.types.is_timestamp(type) and type.tz is None:
        values = [None if v is None else v.replace(tzinfo=None) for v in values]
    if pa.types.is_decimal(type):
        values = [None if v is None else _at_scale(v, type) for v in values]
    return pa.array(values, type)


def _at_scale(value: Decimal, type: Any) -> Decimal:
    exact = value.quantize(Decimal(1).scaleb(-type.scale), context=_WIDE)
    if exact.adjusted() >= type.precision - type.scale:
        raise DataError(
            f"a decimal result of {value} does not fit {type}", hint="aggregate a cast to double"
        )
    return exact
