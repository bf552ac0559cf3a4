"""Declarative Pipelines of Spark 4.1 and newer: a workload as tables that a pipeline keeps.

Events are read once, as they come, and become rows of slices in a streaming table. Every query is
a materialized view over the slices, which are far fewer than the events. Neither needs a
watermark: nothing is late, and a view has what a run over all events so far has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.aggregates.base import is_built_in
from weft.errors import DataError, QueryError, UnsupportedError, require
from weft.query import Query, Workload
from weft.store.kept import START, refuse_events
from weft.store.planning import planned
from weft.store.serving import grain, served, with_stored_times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from weft.query import AnyQuery
    from weft.store.kept import SliceSet
    from weft.store.manifest import Manifest

    Events = Callable[[], DataFrame]


def pipeline_table(
    workload: Workload | AnyQuery,
    *,
    name: str | None = None,
    schema: StructType | str | None = None,
    table_properties: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Callable[[Events], None]:
    """Turn the queries over one source into tables of a declarative pipeline.

    Decorates a function that is named as the source and returns its events as a streaming
    DataFrame. The pipeline gets a streaming table of slices, `name` or the name of the source
    and "_slices", and for each query a materialized view of the query's name; queries whose
    filters differ read slices of their own, in tables with a number behind the name. Each has its
    plan as its description. `schema` tells the columns of events that come from a table of the
    same pipeline, which cannot be asked before the pipeline runs.

    In a file that `spark-pipelines run` loads, where `spark` is known::

        @weft.pipeline_table(weft.parse(open("features.sql").read()))
        def readings():
            return spark.readStream.schema("device STRING, ts TIMESTAMP, temp DOUBLE").json("in")

    Windows that events delimit have no slices and are refused, as are joins and custom aggregates.
    """
    asked = Workload.of(workload)
    refuse_events(asked)

    def register(events: Events) -> None:
        source = events.__name__
        own = _queries_of(asked, source)
        _refuse_customs(own)
        pipelines = _pipelines()
        from weft.store.spark_files import slice_rows_of

        frame = events()
        manifest = _slices_of(own, source, frame, schema)
        table = name or f"{source}_slices"
        names = [table if not n else f"{table}_{n + 1}" for n in range(len(manifest.sets))]
        _refuse_same_names([*names, *(query.name for query in own)])
        options = {"table_properties": dict(table_properties or {}), "format": format}
        for kept, target in zip(manifest.sets, names, strict=True):
            about = _about_slices(kept, own, manifest)
            rows = slice_rows_of(kept).wherever_read(frame, manifest.schemas[source], START)
            pipelines.table(name=target, comment=about, **options)(_constant(rows))
        for query in with_stored_times(manifest, own):
            assert isinstance(query, Query)
            table = names[served(manifest, query).number]
            slices = frame.sparkSession.read.table(table)
            about = f"{planned(manifest, Workload([query])).explain()}\n\nmade of {table}"
            answer = _constant(_answer(slices, query, manifest))
            pipelines.materialized_view(name=query.name, comment=about, **options)(answer)

    return register


def _constant(frame: DataFrame) -> Events:
    # Spark takes functions, and lets none of them ask for a schema: what they return is made before
    return lambda: frame


def _pipelines() -> Any:
    require("pyspark", "spark", "a declarative pipeline")
    try:
        from pyspark import pipelines
    except ImportError:
        import pyspark

        raise UnsupportedError(
            f"Spark {pyspark.__version__} has no declarative pipelines, which Spark 4.1 and newer "
            "have",
            hint="install pyspark[pipelines] of 4.1 or newer, or run the workload as a stream with "
            "weft.start",
        ) from None
    return pipelines


def _queries_of(workload: Workload, source: str) -> Workload:
    found = [q for q in workload if isinstance(q, Query) and q.source == source]
    if not found:
        raise QueryError(
            f"no query reads {source!r}, as the decorated function is named",
            hint=f"name it as the source: {', '.join(workload.sources)}",
        )
    return Workload(found)


def _refuse_customs(workload: Workload) -> None:
    for query in workload:
        for alias, call in query.aggs:
            if not is_built_in(call.function):
                raise UnsupportedError(
                    f"{alias!r} of query {query.name!r} is an aggregate of your own, "
                    f"{call.function!r}, which the server of a pipeline does not know",
                    hint="run the workload as a stream with weft.start, which takes it along",
                )


def _refuse_same_names(names: list[str]) -> None:
    folded = [name.casefold() for name in names]
    twice = next((n for n, own in zip(names, folded, strict=True) if folded.count(own) > 1), None)
    if twice is not None:
        raise QueryError(
            f"two tables of the pipeline would be named {twice!r}",
            hint="name the table of slices otherwise: weft.pipeline_table(workload, name='...')",
        )


def _slices_of(
    workload: Workload, source: str, frame: DataFrame, schema: StructType | str | None
) -> Manifest:
    """Choose the slices, by the columns that events have."""
    from pyspark.sql.types import StructType

    from weft.engines.spark.session import arrow_schema
    from weft.store.store import slices_elsewhere

    if schema is None:
        if not frame.isStreaming:
            raise DataError(
                f"the events of {source!r} are no stream, and slices are added as events come",
                hint="read them with spark.readStream",
            )
        schema = frame.schema
    told: Any = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    return slices_elsewhere(workload, {source: arrow_schema(told)})


def _answer(slices: DataFrame, query: Query, manifest: Manifest) -> DataFrame:
    from weft.store.spark_files import answer_of_rows, slice_rows_of

    kept = served(manifest, query).kept
    columns = slice_rows_of(kept).schema(manifest.schemas[query.source], START)
    return answer_of_rows(slices, query, manifest, columns=columns)


def _about_slices(kept: SliceSet, workload: Workload, manifest: Manifest) -> str:
    by = ", ".join(text for _, text in kept.keys) or "no key"
    head = f"slices of {kept.source} by {by}, cut {grain(kept.levels[0])}"
    return f"{head}\n\n{planned(manifest, workload).explain()}"
