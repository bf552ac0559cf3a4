"""A stream driven by hand: push batches, move the watermark, take the rows that closed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from weft.engines.local.state.custom_partials import Trust
from weft.engines.measures import peak_resident_bytes
from weft.errors import QueryError, UnsupportedError
from weft.frames import to_arrow
from weft.plan import Plan
from weft.planners.running_workload import embed_query, without_query
from weft.query import JoinQuery, Query, Workload
from weft.sessions.archive import (
    SessionState,
    check_plans,
    check_queries,
    dump_session,
    load_session,
)
from weft.sessions.join_archive import restored, saved
from weft.sessions.join_stream import JoinStream
from weft.sessions.registration import Registration, adopted, cut_plan, registrations_of
from weft.sessions.session_plans import join_plans, plans_of
from weft.sessions.source_stream import Results, SourceStream, instant_of
from weft.time import Duration, duration_us, format_us, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.query import AnyQuery
    from weft.sessions.join_stream import JoinMetrics
    from weft.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a session has done and holds."""

    events: int  # taken by operators; an event that two sharing scopes read counts twice
    late: Mapping[str, int]  # events too late, by query
    timeless: int  # events without a time
    open_slices: int
    state_bytes: int
    combines: int  # rows of partials combined with another
    watermarks_us: Mapping[str, int | None]  # by source
    seconds: float  # spent in this process on batches and on closing windows
    peak_bytes: int | None  # the most memory this process had so far; None where not told
    joins: Mapping[str, JoinMetrics] = field(default_factory=dict)  # placements and switches

    @property
    def events_per_second(self) -> float:
        """The throughput of this session while it works."""
        return self.events / self.seconds if self.seconds > 0 else 0.0


class History(Protocol):
    """What a session may begin with: slices of events that came before."""

    def seed(self, stream: SourceStream) -> None:
        """Give a source that has seen no event the slices of those before."""
        ...


class LocalSession:
    """Runs a workload, or a query by itself, as a stream in this process.

    Windows close when the watermark passes their end; the watermark of a source is its latest
    event less the delay. Rows come out once, in the order of (end, window, start, key). With a
    `store`, a `weft.Store`, a session begins with the events that were appended there.

    >>> import weft
    >>> query = weft.Query("n", source="s", time="ts", windows={"10": weft.tumbling(10)},
    ...                    aggs={"n": weft.agg.count()})
    >>> session = LocalSession(query, watermark=5)
    >>> session.push("s", pa.table({"ts": [3, 8, 12]})).num_rows
    0
    >>> session.push("s", pa.table({"ts": [9, 15]}))["n"].to_pylist()
    [3]
    >>> session.finish()["n"].to_pylist()
    [2]
    """

    def __init__(
        self,
        workload: Workload | Plan | AnyQuery,
        watermark: Duration | None = None,
        *,
        planner: str = "auto",
        statistics: Statistics | None = None,
        continuous: bool = False,
        technique: str | None = None,
        store: History | None = None,
    ) -> None:
        workload = workload if isinstance(workload, Plan) else Workload.of(workload)
        plans = plans_of(workload, planner, statistics, technique)
        joins = join_plans(workload, planner, statistics)
        queries = [query for plan in plans.values() for query in plan.queries]
        self._delay_us = _delay_us(workload, queries, watermark)
        self._streams = {
            source: SourceStream(source, plan, self._delay_us) for source, plan in plans.items()
        }
        self._technique = technique  # of queries that come later as well
        self._suspended: dict[str, Query] = {}
        self._joins = [JoinStream(plan, self._delay_us, continuous) for plan in joins]
        self._one = len(queries) + len(joins) == 1
        self._finished = False
        for stream in self._streams.values() if store is not None else ():
            assert store is not None
            store.seed(stream)

    def push(self, source: str, batch: Any) -> Any:
        """Take a batch of a source; return the rows it closed, by query where there are several.

        An error leaves the session as it was before the batch.
        """
        if self._joins or source not in self._streams:
            return self.push_together({source: batch})
        self._refuse_finished()
        return self._given(self._streams[source].push(to_arrow(batch)))

    def push_together(self, batches: Mapping[str, Any]) -> Any:
        """Take batches of several sources as one; return the rows they closed, as `push` does.

        Joins kept tuple by tuple take all of them in the order of time, so that batches of any
        size join as if events had come one by one.
        """
        self._refuse_finished()
        known = dict.fromkeys([*self._streams, *(s for j in self._joins for s in j.sources)])
        for source in batches:
            if source not in known:
                raise QueryError(
                    f"no query reads {source!r}", hint=f"the sources are {', '.join(known)}"
                )
        tables = {source: to_arrow(batch) for source, batch in batches.items()}
        streams = [self._streams[source] for source in tables if source in self._streams]
        joins = [join for join in self._joins if not tables.keys().isdisjoint(join.sources)]
        found: Results = {}
        with ExitStack() as undoing:
            if len(streams) + len(joins) > 1:
                taking: list[SourceStream | JoinStream] = [*streams, *joins]
                for one in taking:
                    undoing.enter_context(one.unchanged_by_errors())
            for stream in streams:
                found |= stream.push(tables[stream.source])
            found |= _results(joins, lambda join: join.push(_read_by(join, tables)))
        return self._given(found)

    def advance(self, time: Any) -> Any:
        """Move the watermark of every source to a time, never back; return the rows that closed."""
        self._refuse_finished()
        to_us = instant_of(time)
        found: Results = {}
        for stream in self._streams.values():
            found |= stream.advance(to_us)
        found |= _results(self._joins, lambda join: join.advance(to_us))
        return self._given(found)

    def finish(self) -> Any:
        """Close all windows: the input has ended. Nothing can be pushed afterwards."""
        self._refuse_finished()
        found: Results = {}
        for stream in self._streams.values():
            found |= stream.finish()
        found |= _results(self._joins, lambda join: join.advance(None))
        self._finished = True
        return self._given(found)

    def register(self, query: Query) -> Registration:
        """Add a query while the session runs; return from when each of its windows is complete.

        It reads the slices of other queries where these are cut at its edges and hold what it
        needs, so it can answer for the past they reach back to; other slices start with the next
        event. Other queries give the same rows as before. From the second query on, results come
        by query.

        >>> import weft
        >>> ask = {"source": "s", "time": "ts", "aggs": {"n": weft.agg.count()}}
        >>> hops = weft.Query("hops", windows={"20/5": weft.hopping(20, 5)}, **ask)
        >>> session = LocalSession(weft.Workload([hops]))
        >>> _ = session.push("s", pa.table({"ts": [1, 12, 23]}))
        >>> tens = weft.Query("tens", windows={"10": weft.tumbling(10)}, **ask)
        >>> session.register(tens).complete_from_us
        {'10': 10}
        >>> session.push("s", pa.table({"ts": [31]}))["tens"]["n"].to_pylist()
        [1]
        """
        self._refuse_finished()
        self._check_new(query)
        stream = self._streams.get(query.source)
        if stream is None:
            plan = plans_of(Workload([query]), "auto", None, self._technique)[query.source]
            made = SourceStream(query.source, plan, self._delay_us)
        else:
            plan = embed_query(cut_plan(stream), stream.bound(query), self._technique)
            made = adopted(stream, plan)
        self._streams[query.source] = made
        self._suspended.pop(query.name, None)
        self._one = self._one and query.name in self.queries and len(self.queries) == 1
        return self.queries[query.name]

    def suspend(self, name: str) -> None:
        """Stop a query's rows and free what it alone needs; `resume` brings it back."""
        self._refuse_finished()
        if any(join.emit.query == name for join in self._joins):
            raise UnsupportedError(
                f"{name!r} is a join, and joins are not suspended while a session runs",
                hint="keep joins that come and go in sessions of their own, with snapshots",
            )
        for source, stream in self._streams.items():
            query = next((q for q in stream.plan.queries if q.name == name), None)
            if query is not None:
                self._streams[source] = adopted(stream, without_query(cut_plan(stream), name))
                self._suspended[name] = query
                return
        raise self._unknown(name, "active", registrations_of(self._streams.values()))

    def resume(self, name: str) -> Registration:
        """Take a suspended query up again, as `register` does a new one."""
        self._refuse_finished()
        if name not in self._suspended:
            raise self._unknown(name, "suspended", self._suspended)
        return self.register(self._suspended[name])

    @property
    def queries(self) -> Mapping[str, Registration]:
        """All queries: whether they are active, and from when their windows are complete."""
        idle = {
            name: Registration(name, False, dict.fromkeys(label for label, _ in query.windows))
            for name, query in self._suspended.items()
        }
        return registrations_of(self._streams.values()) | idle

    def snapshot(self, *, trust_pickle: bool = False, key: bytes | None = None) -> bytes:
        """Return the whole session as bytes, for `restore` here or in another process.

        Partials of custom aggregates are written as plain values. Those that are none, such as
        instances of your own classes, are refused; with `trust_pickle` they are pickled, and with
        a `key` their pickles are signed.
        """
        trust = Trust(trust_pickle, key)
        alone = [
            plans_of(Workload([query]), "independent", None) for query in self._suspended.values()
        ]
        return dump_session(
            SessionState(
                {name: stream.saved_state(trust) for name, stream in self._streams.items()},
                tuple(plan for plans in alone for plan in plans.values()),
                self._delay_us,
                self._one,
                self._finished,
                tuple(saved(join, trust) for join in self._joins),
                self._technique,
            )
        )

    @staticmethod
    def restore(
        snapshot: bytes,
        workload: Workload | Plan | AnyQuery | None = None,
        *,
        trust_pickle: bool = False,
        key: bytes | None = None,
    ) -> LocalSession:
        """Return the session that `snapshot` wrote; it goes on with identical results.

        With a workload or a plan, a snapshot of anything else is refused. Custom aggregates and
        user-defined windows are those of this process, or of the modules that defined them; no
        code comes out of a snapshot. One with pickles is refused unless you trust it: whoever
        wrote it can then run code here. With a `key`, only pickles that were signed with it are
        read.
        """
        trust = Trust(trust_pickle, key)
        state = load_session(snapshot)
        if isinstance(workload, Plan):
            joins = join_plans(workload, "auto", None)
            check_plans(state, plans_of(workload, "auto", None), joins)
        elif workload is not None:
            check_queries(state, Workload.of(workload))
        session = object.__new__(LocalSession)
        session._streams = {
            name: SourceStream.of_state(s, trust) for name, s in state.streams.items()
        }
        session._suspended = {q.name: q for plan in state.suspended for q in plan.queries}
        session._delay_us, session._one = state.delay_us, state.one
        session._finished, session._technique = state.finished, state.technique
        session._joins = [restored(join, trust) for join in state.joins]
        return session

    @property
    def metrics(self) -> Metrics:
        """Return counts and sizes as they are now."""
        streams = self._streams.values()
        operators = [operator for stream in streams for operator in stream.operators]
        return Metrics(
            events=sum(operator.events for operator in operators),
            late={name: late for stream in streams for name, late in stream.late().items()},
            timeless=sum(stream.timeless for stream in streams),
            open_slices=sum(operator.open_slices for operator in operators),
            state_bytes=sum(operator.nbytes for operator in operators),
            combines=sum(operator.combines for operator in operators),
            watermarks_us={name: s.watermark_us for name, s in self._streams.items()},
            seconds=sum(stream.seconds for stream in streams),
            peak_bytes=peak_resident_bytes(),
            joins={join.emit.query: join.metrics for join in self._joins},
        )

    def _repr_html_(self) -> str:
        """Show the session in a notebook: what it has done, and its queries."""
        from weft.plan.render.notebook import grid_html

        told = self.metrics
        behind = (
            f"{source}: {instant(us):%Y-%m-%d %H:%M:%S}"
            for source, us in told.watermarks_us.items()
            if us is not None
        )
        figures = {
            "events": f"{told.events:,}",
            "events per second": f"{told.events_per_second:,.0f}",
            "watermark": ", ".join(behind) or "none yet",
            "open slices": f"{told.open_slices:,}",
            "bytes of state": f"{told.state_bytes:,}",
            "late": f"{sum(told.late.values()):,}",
        }
        queries = [
            (name, "active" if q.active else "suspended") for name, q in self.queries.items()
        ]
        done = grid_html(list(figures), [list(figures.values())])
        return f"{done}{grid_html(('query', 'state'), queries)}"

    def _given(self, found: Results) -> Any:
        if not self._one:
            return found
        # Before the first batch nothing is known of the columns.
        return next(iter(found.values()), pa.table({}))

    def _check_new(self, query: Query) -> None:
        if isinstance(query, JoinQuery):
            raise UnsupportedError(
                "a join cannot be added to a session that runs", hint="start another session"
            )
        if query.name in registrations_of(self._streams.values()):
            raise QueryError(
                f"the session has a query {query.name!r} already",
                hint="give it another name, or suspend that one first",
            )
        if query.watermark_us is not None and query.watermark_us > self._delay_us:
            raise QueryError(
                f"query {query.name!r} waits {format_us(query.watermark_us)} for late events, and "
                f"this session {format_us(self._delay_us)}",
                hint="start the session with a longer watermark",
            )

    def _unknown(self, name: str, state: str, known: Mapping[str, object]) -> QueryError:
        listed = ", ".join(known) or "there are none"
        return QueryError(f"no {state} query is named {name!r}", hint=f"{state} queries: {listed}")

    def _refuse_finished(self) -> None:
        if self._finished:
            raise QueryError("the session is finished", hint="start another one")


def _read_by(join: JoinStream, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {source: table for source, table in tables.items() if source in join.sources}


def _results(joins: Sequence[JoinStream], step: Callable[[JoinStream], pa.Table | None]) -> Results:
    """Take a step with every join; one that has not started yet has no columns to show."""
    found = {join.emit.query: step(join) for join in joins}
    return {name: table for name, table in found.items() if table is not None}


def _delay_us(workload: Workload | Plan, planned: list[Query], watermark: Duration | None) -> int:
    """Return how far the watermark stays behind: as given, or the longest that a query asks for."""
    asked = planned if isinstance(workload, Plan) else [*workload]
    delays = [query.watermark_us for query in asked if isinstance(query, Query)]
    longest = max((delay for delay in delays if delay is not None), default=0)
    delay_us = longest if watermark is None else duration_us(watermark)
    if delay_us < 0:
        raise QueryError(
            "a watermark cannot run ahead of the events", hint="give a delay of zero or more"
        )
    return delay_us
