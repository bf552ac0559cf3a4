"""Whether engines agree: results of workloads, and features of rows, compared to the last column.

Features are computed in more ways than engines: what a model was trained on must be what it is
served, by a stream as by a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.errors import QueryError
from weft.plan import ENGINES
from weft.plan.anchors import FeaturePlan
from weft.query import JoinQuery, Query, Workload
from weft.running import STREAM, bind_tables, engine_named, plan_for, run_on, tables_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weft.compare import Difference
    from weft.query import AnyQuery


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
    workload: Workload | AnyQuery | FeaturePlan,
    tables: Mapping[str, Any],
    engines: Sequence[str] = ("reference", "local", "spark"),
    *,
    planner: str = "auto",
) -> Report:
    """Run the workload on every engine and compare each result with the first engine's.

    "spark-stream" plays the tables back as streams; it is compared by the windows that have closed
    when they end, so another engine comes first.

    A plan of features, which `weft.rolling` and `weft.as_of` return when they `explain`, is run on
    every engine too, and as it is served: from a `weft.FeatureSession` that gets events as time
    goes on, and rows of `rolling` by `as_of` of their own times. Rows of one instant are compared
    like all others. Tables are named as in the plan: `events` and `points`.

    >>> import pyarrow as pa, weft
    >>> paid = pa.table({"ts": [0, 10, 10], "user": ["a", "b", "a"], "amount": [1.0, 2.0, 4.0]})
    >>> plan = weft.rolling(paid, time="ts", by=["user"], windows={"5us": 5, "last": weft.rows(2)},
    ...                     aggs={"spend": weft.agg.sum("amount")}, explain=True)
    >>> report = weft.verify(plan, {"events": paid}, engines=("reference", "local"))
    >>> report.ok, report.engines, report.rows
    (True, ('reference', 'local', 'as_of', 'session'), 3)
    """
    from weft.compare import first_difference
    from weft.frames import to_arrow

    if len(engines) < 1:
        raise QueryError("no engine to verify", hint=f"name some of {', '.join(ENGINES)}")
    if isinstance(workload, FeaturePlan):
        from weft.verification.features import feature_differences

        return Report(*feature_differences(workload, tables, engines))
    arrow = {name: to_arrow(table) for name, table in tables.items()}
    bound = bind_tables(Workload.of(workload), arrow)
    wanted, *others = [(name, _answer(bound, arrow, name, planner)) for name in engines]
    differences = [
        first_difference(
            query, results[query.name], _comparable(query, wanted[1][query.name], arrow, name), name
        )
        for name, results in others
        for query in bound
    ]
    rows = sum(table.num_rows for table in wanted[1].values())
    return Report(tuple(engines), rows, tuple(d for d in differences if d is not None))


def _answer(
    workload: Workload, tables: Mapping[str, pa.Table], engine: str, planner: str
) -> dict[str, pa.Table]:
    from weft.frames import to_arrow

    if engine == STREAM:
        return _streamed(workload, tables, planner)
    chosen = engine_named(engine)
    results = run_on(workload, tables_for(chosen, tables), chosen, planner)
    return {name: to_arrow(table) for name, table in results.items()}


def _streamed(
    workload: Workload, tables: Mapping[str, pa.Table], planner: str
) -> dict[str, pa.Table]:
    """Play the tables back as streams; without a watermark of their own nothing is late in them."""
    from weft.engines.spark.session import current_session, to_spark
    from weft.engines.spark.streaming.columnar.strategy import ROCKS_STORE, stored_in
    from weft.engines.spark.streaming.engine import SparkStreamEngine
    from weft.sessions.replay import collected, replayed

    session = current_session()
    timed = Workload(
        query
        if isinstance(query, Query) and query.watermark_us is not None
        else query.with_watermark(0)
        for query in workload
    )
    read = [i for q in timed for i in ((q,) if isinstance(q, Query) else q.inputs)]
    times = {one.source: one.time for one in read if one.time is not None}
    # What a join reads without a window is a table, and stays one.
    still = {name: to_spark(table, session) for name, table in tables.items() if name not in times}
    moving = {name: table for name, table in tables.items() if name in times}
    with replayed(moving, times, session) as streams, stored_in(ROCKS_STORE, session):
        sources, engine = {**still, **streams}, SparkStreamEngine()
        parts = engine.compile(plan_for(timed, sources, engine, planner), sources)
        return {k: v for one in parts for k, v in collected(one.rows, one.results).items()}


def _comparable(
    query: AnyQuery, rows: pa.Table, tables: Mapping[str, pa.Table], engine: str
) -> pa.Table:
    """Leave out what a stream still holds open when its input ends."""
    if engine != STREAM:
        return rows
    from weft.sessions.replay import closed_join_rows, closed_rows

    if isinstance(query, JoinQuery):
        return closed_join_rows(query, rows, tables)
    return closed_rows(query, rows, tables[query.source])
