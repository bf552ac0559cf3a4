"""The reference engine behind the common interface: Arrow tables in, Arrow tables out."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.features import feature_schema
from weft.engines.joins import join_schema, variable_types
from weft.engines.reference.anchors import interpret_features
from weft.engines.reference.interpreter import Interpreter
from weft.engines.reference.joins import evaluate_join
from weft.engines.reference.oracle import ResultRow, evaluate
from weft.engines.scalar.rows import EventRow, rows_of
from weft.engines.schema import result_schema
from weft.errors import DataError
from weft.frames import in_microseconds
from weft.query import Query, Workload
from weft.time import instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.base import Unsupported
    from weft.plan import Plan
    from weft.plan.anchors import FeaturePlan
    from weft.query import AnyQuery


_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


class ReferenceEngine:
    """Runs plans with the interpreter, and workloads with the oracle, which knows no plan."""

    name = "reference"

    def unsupported(self, plan: Plan) -> tuple[Unsupported, ...]:
        """Every plan is interpreted."""
        return ()

    def run(self, plan: Plan, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Interpret the plan, node by node."""
        asked: tuple[AnyQuery, ...] = (*plan.queries, *plan.joins)
        schemas = {q.name: _schema(q, sources) for q in asked}
        types = {q.name: variable_types(q, _schemas(sources)) for q in plan.joins}
        results = Interpreter(plan, _rows(sources), types).run()
        return {name: result_table(schema, results[name]) for name, schema in schemas.items()}

    def answer(self, workload: Workload, sources: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """Evaluate every query directly, without any plan: the oracle."""
        schemas = {q.name: _schema(q, sources) for q in workload.queries}
        rows = _rows(sources)
        return {
            q.name: result_table(
                schemas[q.name],
                evaluate(q, rows[q.source])
                if isinstance(q, Query)
                else evaluate_join(q, rows, variable_types(q, _schemas(sources))),
            )
            for q in workload.queries
        }

    def features(self, plan: FeaturePlan, sources: Mapping[str, pa.Table]) -> pa.Table:
        """Fold the windows of every point; return the feature columns, in the points' order."""
        schema = feature_schema(plan, _schemas(sources))
        rows = interpret_features(plan, _rows(sources))
        values = zip(*rows, strict=True) if rows else ([] for _ in schema)
        columns = zip(values, schema, strict=True)
        return pa.table({field.name: _array(list(own), field.type) for own, field in columns})


def _schema(query: AnyQuery, sources: Mapping[str, pa.Table]) -> pa.Schema:
    if isinstance(query, Query):
        return result_schema(query, sources[query.source].schema)
    return join_schema(query, _schemas(sources))


def _schemas(sources: Mapping[str, pa.Table]) -> dict[str, pa.Schema]:
    return {name: table.schema for name, table in sources.items()}


def _rows(sources: Mapping[str, pa.Table]) -> dict[str, list[EventRow]]:
    return {name: event_rows(table) for name, table in sources.items()}


def event_rows(table: pa.Table) -> list[EventRow]:
    """Read events; nanoseconds become microseconds, the finest time there is here."""
    columns = [in_microseconds(column) for column in table.columns]
    return rows_of(pa.table(columns, names=table.column_names))


def result_table(schema: pa.Schema, rows: list[ResultRow]) -> pa.Table:
    """Return results as a table of their query's schema."""
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
    if isinstance(type, pa.StructType):
        values = [_by_name(v, type) for v in values]
    return pa.array(values, type)


def _by_name(value: Any, type: pa.DataType) -> Any:
    """Return the struct whose fields are a tuple, as keys have them."""
    if not isinstance(value, tuple) or not isinstance(type, pa.StructType):
        return value
    return {own.name: _by_name(v, own.type) for own, v in zip(type, value, strict=True)}


def _at_scale(value: Decimal, type: Any) -> Decimal:
    exact = value.quantize(Decimal(1).scaleb(-type.scale), context=_WIDE)
    if exact.adjusted() >= type.precision - type.scale:
        raise DataError(
            f"a decimal result of {value} does not fit {type}", hint="aggregate a cast to double"
        )
    return exact
