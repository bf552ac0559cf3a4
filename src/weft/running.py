"""Running workloads: DataFrame in, DataFrame out, on the engine that fits the tables."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from weft.errors import QueryError, UnsupportedError, require
from weft.plan import ENGINES, Plan
from weft.query import Query, Workload
from weft.techniques import refused_technique

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column

    from weft.aggregates import AggregateCall
    from weft.binding import TableColumns
    from weft.engines.base import Engine
    from weft.engines.measures import Measures
    from weft.query import AnyQuery, AskedAggregates, AskedKeys, AskedWindows
    from weft.statistics import Statistics
    from weft.time import Duration

STREAM = "spark-stream"


def aggregate(
    data: Any,
    *,
    time: str | None = None,
    by: AskedKeys | Sequence[str | Column] | Mapping[str, str | Column] = (),
    windows: AskedWindows,
    aggs: AskedAggregates | Sequence[Column] | Mapping[str, AggregateCall | str | Column],
    where: str | Column | None = None,
    watermark: Duration | None = None,
    **options: Any,
) -> Any:
    """Aggregate one table over many windows at once; the result is of the table's own type.

    `by` is a column, a list of them, or expressions by name; a window that is a duration tumbles;
    aggregates are calls of `weft.agg` or SQL. Of a Spark DataFrame, keys, the filter and
    aggregates may be columns of Spark's, as in `by=[F.upper("city")]` and
    `aggs=[F.avg("temp").alias("mean")]`. `options` are those of `run`: engine, planner, statistics,
    strategy.

    >>> import pyarrow as pa
    >>> readings = pa.table({"ts": pa.array([0, 90], pa.timestamp("s")), "temp": [20.5, 21.5]})
    >>> aggregate(readings, windows={"1m": "1 minute", "1h": "1 hour"}, aggs={"mean": "avg(temp)"},
    ...           engine="reference").select(["window", "mean"]).to_pylist()[-1]
    {'window': '1h', 'mean': 21.0}
    """
    if hasattr(data, "sparkSession"):
        from weft.engines.spark.columns import computed

        data, by, where, aggs = computed(data, by, where, aggs)
    query = Query(
        "aggregate",
        source="data",
        time=time,
        keys=cast("Mapping[str, str]", by),
        where=cast("str | None", where),
        windows=windows,
        aggs=cast("AskedAggregates", aggs),
        watermark=watermark,
    )
    return run(Workload([query]), {"data": data}, **options)


def run(
    asked: Workload | Plan | AnyQuery,
    tables: Mapping[str, Any],
    engine: str | None = None,
    *,
    planner: str = "auto",
    statistics: Statistics | Mapping[str, Statistics] | None = None,
    strategy: str | None = None,
    technique: str | None = None,
) -> Any:
    """Run a workload, a query by itself, or a plan as it is, over tables given by name.

    A table is a DataFrame of Spark, pandas (whose time index is a column too) or Polars, a Polars
    LazyFrame, or whatever hands out Arrow by `__arrow_c_stream__`. One query gives one table of the
    type that came in, a DataFrame for a LazyFrame and else an Arrow table; several give a mapping
    of their names to tables. Without `engine` the tables decide: Spark for Spark DataFrames,
    in-process otherwise. `strategy` forces how Spark runs it, "native" or "columnar", `technique`
    how overlapping instances are put together; without them the plan decides.
    """
    from weft.frames import FrameKind, from_arrow, kind_of, to_arrow

    kinds = {name: kind_of(table) for name, table in tables.items()}
    kind: FrameKind = next(iter(kinds.values()), "arrow")
    chosen = engine_for(tables, engine, strategy)
    own = tables_for(chosen, tables)
    forced = {"strategy": strategy, "technique": technique}
    results = run_on(asked, own, chosen, planner, statistics=statistics, **forced)
    if family_of(chosen) != "spark" or kind != "spark":
        results = {name: from_arrow(to_arrow(table), kind) for name, table in results.items()}
    return next(iter(results.values())) if len(results) == 1 else results


def run_measured(
    asked: Workload | Plan | AnyQuery,
    tables: Mapping[str, Any],
    engine: str | None = None,
    **options: Any,
) -> tuple[dict[str, pa.Table], Measures]:
    """Run like `run`, to the end; return Arrow tables by query, and what the run did and took."""
    from weft.engines.measures import MeasuringEngine
    from weft.frames import to_arrow

    chosen = engine_for(tables, engine, options.get("strategy"))
    if not isinstance(chosen, MeasuringEngine):
        raise UnsupportedError(
            f"the {chosen.name} engine does not tell what a run took",
            hint="use engine 'local' or 'spark'",
        )
    own = tables_for(chosen, tables)
    plan = plan_for(asked, own, chosen, **options)
    results, measures = chosen.run_measured(plan, own)
    return {name: to_arrow(table) for name, table in results.items()}, measures


def tables_for(engine: Engine, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Hand tables of any library to an engine: DataFrames to Spark, Arrow to the others."""
    from weft.frames import kind_of, to_arrow

    if family_of(engine) != "spark":
        return {name: to_arrow(table) for name, table in tables.items()}
    from weft.engines.spark.session import current_session, to_spark

    frames = {name: table for name, table in tables.items() if kind_of(table) == "spark"}
    session = next((f.sparkSession for f in frames.values()), None) or current_session()
    others = {n: to_spark(to_arrow(t), session) for n, t in tables.items() if n not in frames}
    return frames | others


def default_engine(kinds: Iterable[str]) -> str:
    """Choose the engine by the kind of the tables.

    >>> default_engine(["arrow", "pandas"]), default_engine(["arrow", "spark"])
    ('local', 'spark')
    """
    return "spark" if "spark" in set(kinds) else "local"


def engine_for(
    tables: Mapping[str, Any], name: str | None = None, strategy: str | None = None
) -> Engine:
    """Choose the engine that is named, or fits the tables; streams need an engine for streams."""
    from weft.frames import kind_of

    chosen = name or default_engine(map(kind_of, tables.values()))
    streams = any(getattr(table, "isStreaming", False) for table in tables.values())
    return engine_named(STREAM if streams and chosen == "spark" else chosen, strategy)


def family_of(engine: Engine) -> str:
    """Name the engine that plans are made for: a stream is planned as a batch of Spark's is."""
    return engine.name.removesuffix("-stream")


def engine_named(name: str, strategy: str | None = None) -> Engine:
    """Return an engine by name; its library is loaded only now."""
    from weft.cost.strategies import check_strategy

    check_strategy(strategy, name.removesuffix("-stream"))
    if name == "reference":
        from weft.engines.reference.engine import ReferenceEngine

        return ReferenceEngine()
    if name == "local":
        from weft.engines.local.engine import LocalEngine

        return LocalEngine()
    if name in ("spark", STREAM):
        require("pyspark", "spark", "the engine spark")
    if name == "spark":
        from weft.engines.spark.engine import SparkEngine

        return SparkEngine(strategy)
    if name == STREAM:
        from weft.engines.spark.streaming.engine import SparkStreamEngine

        return SparkStreamEngine(strategy)
    raise QueryError(f"unknown engine {name!r}", hint=f"use one of {', '.join(ENGINES)}")


def bind_tables(workload: Workload, tables: Mapping[str, Any]) -> Workload:
    """Look up time columns, and check that every column that is read exists."""
    from weft.binding import bind

    return bind(workload, {name: columns_of_table(table) for name, table in tables.items()})


def columns_of_table(table: Any) -> TableColumns:
    """Describe an Arrow table or a Spark DataFrame to the binder."""
    import pyarrow as pa

    from weft.binding import TableColumns
    from weft.frames import kind_of

    if kind_of(table) == "spark":
        from weft.engines.spark.session import columns_of_frame

        return columns_of_frame(table)
    exact = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_boolean)
    return TableColumns(
        tuple(table.schema.names),
        tuple(f.name for f in table.schema if pa.types.is_timestamp(f.type)),
        frozenset(f.name for f in table.schema if any(test(f.type) for test in exact)),
    )


def run_on(
    asked: Workload | Plan | AnyQuery,
    tables: Mapping[str, Any],
    engine: Engine,
    planner: str = "auto",
    **options: Any,
) -> dict[str, Any]:
    """Run on an engine, over tables that are its own; return results by query."""
    from weft.engines.reference.engine import ReferenceEngine

    if isinstance(engine, ReferenceEngine) and not isinstance(asked, Plan) and planner == "auto":
        return engine.answer(bind_tables(Workload.of(asked), tables), tables)
    plan = plan_for(asked, tables, engine, planner, **options)
    if engine.name == STREAM and options.get("strategy") is options.get("technique") is None:
        plan = _for_stores(plan, asked, tables, engine, planner, **options)
    return engine.run(plan, tables)


def _for_stores(
    plan: Plan,
    asked: Workload | Plan | AnyQuery,
    tables: Mapping[str, Any],
    engine: Engine,
    planner: str,
    **options: Any,
) -> Plan:
    """Plan natively where a session has no place for the state of columns, and native can."""
    from weft.engines.spark.streaming.engine import SparkStreamEngine
    from weft.plan.body import NATIVE

    assert isinstance(engine, SparkStreamEngine)
    if isinstance(asked, Plan) or engine.has_stores(plan, tables):
        return plan
    try:
        return plan_for(asked, tables, engine, planner, **{**options, "strategy": NATIVE})
    except UnsupportedError:  # the engine will say what columns need
        return plan


def plan_for(
    asked: Workload | Plan | AnyQuery,
    tables: Mapping[str, Any],
    engine: Engine,
    planner: str = "auto",
    statistics: Statistics | Mapping[str, Statistics] | None = None,
    **forced: Any,
) -> Plan:
    """Bind to the tables and plan, or check the plan that is given; the engine can run it."""
    from weft.plan.validate import validate

    if not isinstance(asked, Plan):
        workload = bind_tables(Workload.of(asked), tables)
        plan = _plan(workload, tables, engine, planner, statistics, **forced)
    elif forced.get("technique") is not None:
        raise refused_technique(forced["technique"])
    else:
        read = [
            source
            for query in bind_tables(Workload((*asked.queries, *asked.joins)), tables)
            for source in ((query,) if isinstance(query, Query) else query.inputs)
        ]
        plan = asked.with_times(
            {source.source: source.time for source in read if source.time is not None}
        )
        validate(plan.nodes)  # it may come from a file, or from a planner that is not ours
    problems = engine.unsupported(plan)
    if problems:
        raise UnsupportedError(
            f"the {engine.name} engine cannot run this plan: {problems[0].reason}",
            hint="use another engine or another planner",
        )
    return plan


def _plan(
    workload: Workload,
    tables: Mapping[str, Any],
    engine: Engine,
    planner: str,
    statistics: Statistics | Mapping[str, Statistics] | None,
    **forced: Any,
) -> Plan:
    """Plan for an engine: of all plans that it can run, the cheapest."""
    from weft.cost.streams import CATCHING_UP_US
    from weft.engines.joins import loads_of_joins
    from weft.observation import completed, observed
    from weft.plan.body import NATIVE
    from weft.planners.portfolio import PLANNERS, optimize

    known = completed(statistics, observed(workload, tables))
    exact = {name: columns_of_table(table).exact for name, table in tables.items()}

    def planned(by: str, **more: Any) -> Plan:
        return optimize(
            workload,
            by,
            family_of(engine),
            known,
            exact_columns=exact,
            **{**forced, **more},
            micro_batch=CATCHING_UP_US if engine.name == STREAM else None,
            join_loads={} if statistics is not None else loads_of_joins(workload, tables),
        )

    plan = planned(planner)
    if not engine.unsupported(plan):
        return plan
    if engine.name == STREAM and forced.get("strategy") is forced.get("technique") is None:
        # An older Spark has no state for columns, which a plan takes where it costs less.
        with suppress(UnsupportedError):
            native = planned(planner, strategy=NATIVE)
            if not engine.unsupported(native):
                return native
    if planner != "auto":
        return plan
    others = [c.planner for c in sorted(plan.candidates, key=lambda c: c.cost)]
    for name in (other for other in others if other in PLANNERS):
        other = planned(name)
        if not engine.unsupported(other):
            return other
    return plan
