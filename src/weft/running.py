"""Running workloads: DataFrame in, DataFrame out, on the engine that fits the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.errors import QueryError, UnsupportedError
from weft.query import Query, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from weft.aggregates import AggregateCall
    from weft.binding import TableColumns
    from weft.compare import Difference
    from weft.engines.base import Engine
    from weft.plan import Plan
    from weft.statistics import Statistics
    from weft.time import Duration
    from weft.window import Window

ENGINES = ("spark", "local", "reference")
_QUERY = "aggregate"


def aggregate(
    data: Any,
    *,
    time: str | None = None,
    by: Sequence[str] | Mapping[str, str] = (),
    windows: Mapping[str, Window],
    aggs: Mapping[str, AggregateCall],
    where: str | None = None,
    watermark: Duration | None = None,
    **options: Any,
) -> Any:
    """Aggregate one table over many windows at once; the result is of the table's own type.

    `options` are those of `run`: engine, planner, statistics.
    """
    query = Query(
        _QUERY,
        source="data",
        time=time,
        keys=by,
        where=where,
        windows=windows,
        aggs=aggs,
        watermark=watermark,
    )
    return run(Workload([query]), {"data": data}, **options)


def sql(sql_text: str, engine: str | None = None, planner: str = "auto", **tables: Any) -> Any:
    """Run SQL over tables given by name: one statement gives a table, several a mapping."""
    from weft.parsing import parse

    return run(parse(sql_text), tables, engine=engine, planner=planner)


def run(
    workload_or_plan: Workload | Plan,
    tables: Mapping[str, Any],
    engine: str | None = None,
    *,
    planner: str = "auto",
    statistics: Statistics | Mapping[str, Statistics] | None = None,
) -> Any:
    """Run a workload, or a plan as it is, over tables given by name.

    One query gives one table of the type that came in; several give a mapping of their names to
    tables. Without `engine` the tables decide: Spark for Spark DataFrames, in-process otherwise.
    """
    from weft.engines.frames import FrameKind, from_arrow, kind_of, to_arrow

    kinds = {name: kind_of(table) for name, table in tables.items()}
    chosen = engine_named(engine or default_engine(kinds.values()))
    arrow = {name: to_arrow(table) for name, table in tables.items()}
    results = _run(workload_or_plan, arrow, chosen, planner, statistics)
    kind: FrameKind = next(iter(kinds.values()), "arrow")
    converted = {name: from_arrow(table, kind) for name, table in results.items()}
    return next(iter(converted.values())) if len(converted) == 1 else converted


@dataclass(frozen=True, slots=True)
class Report:
    """What `verify` found: equal results on all engines, or the first difference of each query."""

    engines: tuple[str, ...]
    rows: int
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """True when every engine gave the same rows."""
        return not self.differences


def verify(
    workload: Workload,
    tables: Mapping[str, Any],
    engines: Sequence[str] = ("reference", "local", "spark"),
    *,
    planner: str = "auto",
) -> Report:
    """Run the workload on every engine and compare each result with the first engine's."""
    from weft.compare import first_difference
    from weft.engines.frames import to_arrow

    if len(engines) < 1:
        raise QueryError("no engine to verify", hint=f"name some of {', '.join(ENGINES)}")
    arrow = {name: to_arrow(table) for name, table in tables.items()}
    bound = bind_tables(workload, arrow)
    wanted, *others = [(name, _run(bound, arrow, engine_named(name), planner)) for name in engines]
    differences = [
        first_difference(query, results[query.name], wanted[1][query.name], name)
        for name, results in others
        for query in bound
        if isinstance(query, Query)
    ]
    rows = sum(table.num_rows for table in wanted[1].values())
    return Report(tuple(engines), rows, tuple(d for d in differences if d is not None))


def default_engine(kinds: Iterable[str]) -> str:
    """Choose the engine by the kind of the tables."""
    return "spark" if "spark" in set(kinds) else "reference"


def engine_named(name: str) -> Engine:
    """Return an engine by name; its library is loaded only now."""
    if name == "reference":
        from weft.engines.reference.engine import ReferenceEngine

        return ReferenceEngine()
    if name == "local":
        from weft.engines.local.engine import LocalEngine

        return LocalEngine()
    if name in ENGINES:
        raise UnsupportedError(
            f"the {name} engine is not part of this version", hint="use engine='reference'"
        )
    raise QueryError(f"unknown engine {name!r}", hint=f"use one of {', '.join(ENGINES)}")


def bind_tables(workload: Workload, tables: Mapping[str, pa.Table]) -> Workload:
    """Look up time columns, and check that every column that is read exists."""
    from weft.binding import bind

    return bind(workload, {name: columns_of_table(table) for name, table in tables.items()})


def columns_of_table(table: pa.Table) -> TableColumns:
    """Describe an Arrow table to the binder."""
    import pyarrow as pa

    from weft.binding import TableColumns

    exact = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_boolean)
    return TableColumns(
        tuple(table.schema.names),
        tuple(f.name for f in table.schema if pa.types.is_timestamp(f.type)),
        frozenset(f.name for f in table.schema if any(test(f.type) for test in exact)),
    )


def _run(
    workload_or_plan: Workload | Plan,
    tables: Mapping[str, pa.Table],
    engine: Engine,
    planner: str = "auto",
    statistics: Statistics | Mapping[str, Statistics] | None = None,
) -> dict[str, pa.Table]:
    from weft.engines.reference.engine import ReferenceEngine
    from weft.planners.portfolio import optimize

    if isinstance(workload_or_plan, Workload):
        workload = bind_tables(workload_or_plan, tables)
        if isinstance(engine, ReferenceEngine) and planner == "auto":
            return engine.answer(workload, tables)
        exact = {name: columns_of_table(table).exact for name, table in tables.items()}
        plan = optimize(workload, planner, engine.name, statistics, exact_columns=exact)
    else:
        bound = bind_tables(Workload(workload_or_plan.queries), tables)
        times = {q.source: q.time for q in bound if isinstance(q, Query) and q.time is not None}
        plan = workload_or_plan.with_times(times)
    problems = engine.unsupported(plan)
    if problems:
        raise UnsupportedError(
            f"the {engine.name} engine cannot run this plan: {problems[0].reason}",
            hint="use another engine or another planner",
        )
    return engine.run(plan, tables)
