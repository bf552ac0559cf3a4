"""Starting streams: a workload, its sources and sinks become one streaming query of Spark's."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.errors import DataError, QueryError, UnsupportedError
from weft.frames import kind_of
from weft.plan import Plan
from weft.query import Workload
from weft.time import Duration, duration_us

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from weft.engines.local.state.custom_partials import Trust
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint, Record
    from weft.engines.spark.streaming.sinks import SinkRoots
    from weft.query import AnyQuery
    from weft.sessions.sink_fan_out import FanOutBatches
    from weft.statistics import Statistics
    from weft.store import Store

    Planning = Statistics | Mapping[str, Statistics] | None

ONCE = "once"


def start(
    workload: Workload | Plan | AnyQuery,
    sources: Mapping[str, DataFrame],
    sinks: Any,
    checkpoint: str | os.PathLike[str],
    trigger: Duration | None = None,
    strategy: str | None = None,
    *,
    mode: str = "append",
    planner: str = "auto",
    statistics: Planning = None,
    technique: str | None = None,
    name: str | None = None,
    trust_pickle: bool = False,
    pickle_key: bytes | None = None,
    sink_roots: Sequence[str | os.PathLike[str]] | None = None,
    store: Store | None = None,
) -> StreamingQuery:
    """Start a workload, or a query by itself, as one streaming query that reads each source once.

    `sinks` is one sink for all queries, or a mapping of query names to sinks. A sink is a directory
    (parquet, each row exactly once), a table (`delta://path`, `iceberg://catalog.space.table`,
    `jdbc:postgresql://host/db?table=name`), a topic (`kafka://host:9092/topic`), a function of
    (rows, batch number), or any object with the `write` of
    `weft.engines.spark.streaming.sinks.Sink`. `trigger` is the time between micro-batches, or
    "once" for all that is there now; without it they follow one another. In `mode` "append" a
    window gives its row when it closes; in "update", which only columnar has, also after each
    micro-batch that changed it. `technique` forces the one that puts overlapping instances
    together; all but fan_out are columnar.

    Started again with the same `checkpoint`, the stream goes on where it was. With another
    workload it is refused, and the error names what changed; under the columnar strategy queries
    may be added and removed.

    Nothing in a checkpoint is code: custom aggregates and user-defined windows are those of this
    process, which names them there. Partials of custom aggregates that are no plain values are
    refused, unless `trust_pickle` says that nobody else can write into the checkpoint; with
    `pickle_key` their pickles are signed. Queries that are added while the stream runs write only
    under `sink_roots`, by default the directories that hold the stream's own sinks.

    With a `store`, a new stream begins with the slices that are kept there, as if it had read
    their events: its windows have history, and are closed with the rows of a run over all. Sources
    then begin where the store ends. It is columnar.

        stream = weft.start(workload, {"readings": df}, sinks="features", checkpoint="checkpoint")
        stream.awaitTermination()
    """
    from weft.engines.local.state.custom_partials import Trust
    from weft.engines.spark.streaming.checkpoint.occupancy import held
    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint
    from weft.engines.spark.streaming.columnar.strategy import stored_for
    from weft.engines.spark.streaming.journal import Journal, listener_of
    from weft.engines.spark.streaming.sinks import SinkRoots
    from weft.plan.body import COLUMNAR

    _check_streams(sources)
    trust = Trust(trust_pickle, pickle_key)
    kept = Checkpoint(Place.of(checkpoint))
    if store is not None and strategy is None:
        strategy = COLUMNAR
    record = record_for(workload, sources, kept, strategy, planner, statistics, mode, technique)
    session = next(iter(sources.values())).sparkSession
    with held(kept.own) as hold, stored_for(record.strategy, session):
        roots = SinkRoots.of(sink_roots, sinks)
        fan_out = _fan_out(record, sources, sinks, kept, roots, trust, store)
        writer = (
            fan_out.rows.writeStream.outputMode(mode)
            .foreachBatch(fan_out.write)
            .option("checkpointLocation", str(kept.place))
        )
        if name is not None:
            writer = writer.queryName(name)
        journal, listener = Journal(kept.own), listener_of(session)
        journal.tell_sinks(fan_out.routes)
        running = triggered(writer, trigger).start()
        listener.release_after(running, hold)
        listener.follow(str(running.runId), journal)
        return running


def _check_streams(sources: Mapping[str, Any]) -> None:
    """Refuse what is no DataFrame of Spark's, before anything is asked of it."""
    for name, source in sources.items():
        if kind_of(source) != "spark":
            raise DataError(
                f"the source {name!r} is a {type(source).__name__}, and a stream reads "
                "DataFrames of Spark",
                hint="give spark.readStream...load(), or use weft.run for a table that is whole",
            )


def record_for(
    workload: Workload | Plan | AnyQuery,
    sources: Mapping[str, DataFrame],
    checkpoint: Checkpoint,
    strategy: str | None = None,
    planner: str = "auto",
    statistics: Planning = None,
    mode: str = "append",
    technique: str | None = None,
) -> Record:
    """Return how a stream is to run: as its checkpoint says, or by a new plan without one."""
    from weft.engines.spark.streaming.checkpoint.record import changed_columns, refuse
    from weft.engines.spark.streaming.columnar.processor import MODES, UPDATE
    from weft.plan.body import COLUMNAR
    from weft.running import bind_tables
    from weft.sessions.migration import resumed

    if mode not in MODES:
        raise QueryError(f"unknown mode {mode!r}", hint=f"use one of {', '.join(MODES)}")
    if mode == UPDATE and strategy not in (None, COLUMNAR):
        raise UnsupportedError(
            f"the {strategy} strategy gives the row of a window when it closes, and no updates",
            hint="leave the strategy out, or use columnar",
        )
    before = checkpoint.read()
    if before is None:
        chosen = COLUMNAR if mode == UPDATE else strategy
        planned = _planned(workload, sources, chosen, planner, statistics, technique)
        return replace(planned, mode=mode, columns=_columns_read(planned.plan, sources))
    asked = (
        Workload((*workload.queries, *workload.joins))
        if isinstance(workload, Plan)
        else Workload.of(workload)
    )
    settings = {"mode": mode} if strategy is None else {"mode": mode, "strategy": strategy}
    refuse(checkpoint.place, changed_columns(before.columns, _columns_read(before.plan, sources)))
    queries = bind_tables(asked, sources).queries
    record = resumed(before, queries, settings, checkpoint.place)
    if record is before:
        return record
    return replace(record, columns=_columns_read(record.plan, sources))


def _columns_read(plan: Plan, sources: Mapping[str, DataFrame]) -> dict[str, dict[str, str]]:
    """Return the types of the columns that a plan reads, by source."""
    found: dict[str, dict[str, str]] = {}
    for scan in plan.scans:
        frame = sources.get(scan.source)
        if frame is not None:
            types = {f.name: f.dataType.simpleString() for f in frame.schema}
            names = types if scan.whole_events else (*scan.columns, scan.time)
            own = {name: types[name] for name in names if name in types}
            found[scan.source] = found.get(scan.source, {}) | own
    return found


def _planned(
    workload: Workload | Plan | AnyQuery,
    sources: Mapping[str, DataFrame],
    strategy: str | None,
    planner: str,
    statistics: Planning,
    technique: str | None,
) -> Record:
    from weft.engines.spark.streaming.checkpoint.record import Record
    from weft.engines.spark.streaming.columnar.parcels import Parcel
    from weft.engines.spark.streaming.columnar.strategy import buckets_of
    from weft.engines.spark.streaming.engine import SparkStreamEngine
    from weft.engines.spark.streaming.streams import streams_of
    from weft.plan.body import COLUMNAR, NATIVE
    from weft.planners.portfolio import strategy_of
    from weft.running import plan_for

    if technique is not None:
        strategy = strategy or strategy_of(technique)
    engine = SparkStreamEngine(strategy)
    forced = {"strategy": strategy, "technique": technique}
    plan = plan_for(workload, sources, engine, planner, statistics, **forced)
    names = {engine.choice(stream, plan).name for stream in streams_of(plan)}
    if plan.joins and COLUMNAR in names and strategy is None:  # joins have native states
        forced = {"strategy": NATIVE, "technique": technique}
        with suppress(UnsupportedError):  # of some window, which native cannot run
            plan = plan_for(workload, sources, engine, planner, statistics, **forced)
        names = {engine.choice(stream, plan).name for stream in streams_of(plan)}
    if plan.joins and COLUMNAR in names:
        raise UnsupportedError(
            f"join {plan.joins[0].name!r} and queries of the columnar strategy keep different "
            "states, and one stream has one kind",
            hint="start them as two streams, or all with strategy='native'",
        )
    names |= {NATIVE} if plan.joins else set()
    if len(names) > 1:  # one streaming query has one kind of state store
        engine = SparkStreamEngine(COLUMNAR)
    plan = engine.chosen(plan)
    if COLUMNAR not in names:
        return Record(plan, names.pop())
    buckets = buckets_of(next(iter(sources.values())).sparkSession)
    parcels = {s.name: tuple(map(Parcel.of, s.scopes)) for s in streams_of(plan)}
    return Record(plan, COLUMNAR, buckets, parcels)


def _fan_out(
    record: Record,
    sources: Mapping[str, DataFrame],
    sinks: Any,
    checkpoint: Checkpoint,
    roots: SinkRoots,
    trust: Trust,
    store: Store | None,
) -> FanOutBatches:
    """Compile a stream, and write down how it runs before it does."""
    from weft.engines.spark.streaming.engine import SparkStreamEngine
    from weft.engines.spark.streaming.sinks import routes_with
    from weft.plan.body import COLUMNAR
    from weft.sessions.live_stream import LiveWorkload
    from weft.sessions.sink_fan_out import FanOutBatches
    from weft.store.stream_seeds import beginning, stream_seeds

    queries = [*dict.fromkeys(emit.query for emit in record.plan.emits), *record.suspended]
    routes = routes_with(sinks, queries, record.live_sinks, roots)
    for name, route in routes.items():
        route.check(record.query(name))
    is_new = checkpoint.is_new(record)
    if record.strategy != COLUMNAR:
        if store is not None:
            raise UnsupportedError(
                "a stream of the native strategy cannot begin with the slices of a store",
                hint="leave the strategy out, or use columnar",
            )
        compiled = SparkStreamEngine(record.strategy).compile(record.plan, sources)
        if is_new:
            checkpoint.write(record, checkpoint.next_batch, {})
        return FanOutBatches(compiled, routes, checkpoint, record)
    live = LiveWorkload(checkpoint, record, sources, routes, trust, roots)
    if is_new:
        live.announce(record, checkpoint.next_batch)
    history = beginning(store, checkpoint)
    seeds = None if history is None else stream_seeds(history, live)
    return FanOutBatches(live.compiled(seeds), routes, checkpoint, record, live)


def triggered(writer: DataStreamWriter, trigger: Duration | None) -> DataStreamWriter:
    """Say when micro-batches follow one another; "once" takes all that is there now."""
    if trigger is None:
        return writer
    if trigger == ONCE:
        return writer.trigger(availableNow=True)
    pause_us = duration_us(trigger)
    if pause_us < 0:
        raise QueryError("a trigger cannot lie in the past", hint="give a time of zero or more")
    return writer.trigger(processingTime=f"{pause_us // 1000} milliseconds")
