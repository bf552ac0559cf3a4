"""Queries of features meet tables: bound, planned, run, and put beside the points."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.errors import QueryError, suggest
from weft.running import columns_of_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weft.plan.anchors import FeaturePlan, FeatureQuery


def bind_features(query: FeatureQuery, tables: Mapping[str, Any]) -> FeatureQuery:
    """Look up time columns, and check that every column that is read exists."""
    known = {name: columns_of_table(table) for name, table in tables.items()}

    def time_of(source: str, given: str | None, argument: str) -> str:
        stamps = known[source].timestamps
        if given is None and len(stamps) != 1:
            found = f"there are several: {', '.join(stamps)}" if stamps else "there is none"
            raise QueryError(
                f"which timestamp of the {source} counts is not said, and {found}",
                hint=f"name it: {argument}='...'",
            )
        return stamps[0] if given is None else given

    inputs = tuple(replace(i, time=time_of(i.source, i.time, "time")) for i in query.inputs)
    at = inputs[0].time if query.rolling else time_of(query.points, query.at, "at")
    read = [(query.points, at)] + [(i.source, i.time) for i in inputs]
    read += [(i.source, name) for i in inputs for name in i.inputs]
    if not query.rolling:
        read += [(query.points, name) for i in inputs for name, _ in i.keys]
    for source, name in read:
        names = known[source].names
        if name not in names:
            hint = suggest(str(name), names, f"the columns are {', '.join(names) or 'none'}")
            raise QueryError(f"the {source} have no column {name!r}", hint=hint)
    query.check_names(known[query.points].names)
    return replace(query, at=at, inputs=inputs)


def plan_bound(query: FeatureQuery, tables: Mapping[str, Any], engine: str) -> FeaturePlan:
    """Plan a bound query over tables of an engine."""
    from weft.planners.anchors import SourceFacts, plan_features

    facts = {}
    for asked in query.inputs:
        table = tables[asked.source]
        arguments = list({a for _, _, call in asked.outputs for p in call.partials for a in p.args})
        types = zip(arguments, _types(table, arguments), strict=True)
        exact = frozenset(text for text, type in types if _is_exact(type))
        facts[asked.source] = SourceFacts(getattr(table, "num_rows", None), exact)
    points = getattr(tables[query.points], "num_rows", None)
    return plan_features(query, facts, points, engine)


def _types(table: Any, expressions: list[str]) -> list[pa.DataType]:
    from weft.frames import kind_of

    if kind_of(table) == "spark":
        from weft.engines.spark.session import types_of

        return types_of(table, expressions)
    from weft.engines.schema import expression_type

    return [expression_type(text, table.schema) for text in expressions]


def _is_exact(type: pa.DataType) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(type) for test in tests)


def run_plan(
    plan: FeaturePlan,
    tables: Mapping[str, Any],
    own: Mapping[str, Any],
    engine: str,
    handed: Sequence[str] | None = None,
) -> Any:
    """Run a plan over tables of an engine; the result is of the type that the points came in.

    On Spark `handed` names the columns of the points that are handed on, if not all of them.
    """
    from weft.frames import from_arrow, kind_of, to_arrow

    points = tables[plan.points.source]
    kind = kind_of(points)
    if engine == "spark" and plan.points.rolling and own[plan.points.source].isStreaming:
        from weft.engines.spark.streaming.anchors.compile import rolling_stream

        return rolling_stream(plan, own[plan.points.source], handed)
    if engine == "spark":
        from weft.engines.spark.anchors import run_features as on_spark

        found = on_spark(plan, own, handed)
        return found if kind == "spark" else from_arrow(to_arrow(found), kind)
    if engine == "local":
        from weft.engines.local.anchors import run_features

        features = run_features(plan, own)
    else:
        from weft.engines.reference.engine import ReferenceEngine

        features = ReferenceEngine().features(plan, own)
    return _beside(points, own[plan.points.source], features)


def _beside(points: Any, arrow: pa.Table, features: pa.Table) -> Any:
    """Put the features beside the points, whose own columns stay as they are."""
    from weft.frames import from_arrow, kind_of

    kind = kind_of(points)
    if kind == "pandas":
        found, columns = points.copy(deep=False), features.to_pandas()
        for name in columns:
            found[name] = columns[name].array  # by place: an index may repeat itself
        return found
    if kind == "polars" and not hasattr(points, "collect"):
        return points.hstack(from_arrow(features, "polars"))
    for name in features.column_names:
        arrow = arrow.append_column(features.schema.field(name), features.column(name))
    return from_arrow(arrow, kind)
