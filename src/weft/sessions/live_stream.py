"""A running stream whose queries come and go: requests are taken between micro-batches.

A request is a file in the checkpoint's `weft/control`. The driver looks there after each
micro-batch, plans, and announces a version of the workload for the next one. Executors' operators
then take over the state they have: slices that both plans cut alike go on as they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from weft.aggregates.base import custom_names, is_built_in
from weft.binding import bind
from weft.engines.spark.columnar.user_code import code_of
from weft.engines.spark.session import columns_of_frame
from weft.engines.spark.streaming.checkpoint.control import Answer, Control
from weft.engines.spark.streaming.checkpoint.versions import Versions, version_at
from weft.engines.spark.streaming.columnar.processor import COMPLETE
from weft.engines.spark.streaming.columnar.strategy import (
    hosted_of,
    posted,
    results_of,
    transformed,
)
from weft.engines.spark.streaming.journal import Journal
from weft.engines.spark.streaming.sinks import Route, SinkRoots, as_sink
from weft.engines.spark.streaming.streams import CompiledStream, streams_of
from weft.errors import QueryError, WeftError
from weft.plan.custom_json import customs_of
from weft.planners.portfolio import optimize
from weft.planners.running_workload import embed_query, without_query
from weft.query import Query, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame

    from weft.engines.local.state.custom_partials import Trust
    from weft.engines.spark.columnar.hosted_operator import HostedScope
    from weft.engines.spark.streaming.checkpoint.control import Request
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint, Record
    from weft.engines.spark.streaming.columnar.parcels import Parcel, Post
    from weft.engines.spark.streaming.streams import Picked, Stream
    from weft.plan import Plan

    Hosted = dict[str, dict[int, HostedScope]]  # by stream, and by the number of the parcel


@dataclass
class LiveWorkload:
    """The driver's side of a running workload: its plan, its sinks, its versions."""

    checkpoint: Checkpoint
    record: Record
    sources: Mapping[str, DataFrame]
    routes: dict[str, Route]
    trust: Trust
    roots: SinkRoots
    _posts: dict[str, Post] = field(default_factory=dict)
    _results: dict[int, list[dict[str, Picked]]] = field(default_factory=dict)  # by version
    _sent: frozenset[str] = frozenset()  # custom aggregates whose code executors have

    def __post_init__(self) -> None:
        self._control = Control(self.checkpoint.own)
        for stream in streams_of(self.record.plan):
            parcels = self.record.parcels[stream.name]
            source = self.sources[stream.source]
            post = posted(stream, source, parcels, self.record.buckets)
            self._posts[stream.name] = post
        self._keep_results(self.record, self.hosted(self.record))

    def hosted(self, record: Record) -> Hosted:
        """Return what executors run of a version."""
        return {s.name: hosted_of(s, self._posts[s.name]) for s in streams_of(record.plan)}

    def announce(self, record: Record, from_batch: int) -> None:
        """Let micro-batches from `from_batch` on run by a version."""
        hosted = self.hosted(record)
        for one in (one for own in hosted.values() for one in own.values()):
            one.check_kept(self.trust)
        self._keep_results(record, hosted)
        self.checkpoint.write(record, from_batch, hosted)
        self.record = record

    def posts(self) -> Iterator[tuple[Stream, Post, dict[int, HostedScope]]]:
        """Yield the streams of the workload, what is sent for each, and what executors run."""
        hosted = self.hosted(self.record)
        for stream in streams_of(self.record.plan):
            yield stream, self._posts[stream.name], hosted[stream.name]

    def compiled(self, seeds: Mapping[str, DataFrame] | None = None) -> list[CompiledStream]:
        """Return the blobs of closed windows of each stream; a new one may begin with seeds."""
        begun = seeds or {}
        delays = {s.name: s.watermark_us for s in streams_of(self.record.plan)}
        directory, mode = self.checkpoint.versions, self.record.mode
        nodes = self.record.plan.nodes
        self._sent = frozenset(custom_names())
        code = code_of((*nodes, *self.checkpoint.hosted_nodes()), customs_of(nodes))
        return [
            CompiledStream(
                transformed(
                    post,
                    Versions(directory, name, code=code),
                    delays[name],
                    mode,
                    self.trust,
                    begun.get(name),
                )
            )
            for name, post in self._posts.items()
        ]

    def _keep_results(self, record: Record, hosted: Hosted) -> None:
        by_name: dict[str, Stream] = {s.name: s for s in streams_of(record.plan)}
        self._results[record.version] = [
            results_of(by_name[name], hosted[name], post.time_type) if name in by_name else {}
            for name, post in self._posts.items()
        ]

    def results(self, at: int, batch_id: int) -> dict[str, Picked]:
        """Return how results are read off the rows of a stream in a micro-batch."""
        number = version_at(self.checkpoint.versions, batch_id)
        if number not in self._results:
            # The micro-batch had begun before the restart that brought another version.
            before = self.checkpoint.record_of(number)
            self._keep_results(before, self.hosted(before))
        return self._results[number][at]

    def hear(self, rows: DataFrame) -> None:
        """Keep what operators that took over say: from when the windows of a query are complete."""
        if self.record.version == 0:
            return
        told = rows.where(f"{COMPLETE} IS NOT NULL").select(COMPLETE).distinct().collect()
        limits = [limit for row in told for limit in json.loads(row[0])]
        self._control.heard(limits)

    def poll(self, batch_id: int) -> None:
        """Take the requests that have come; they hold from the next micro-batch on."""
        for request in self._control.requests():
            try:
                # One whose version is there was cut off before it was answered.
                if request.id != self.record.request:
                    changed = self._after(request)
                    number = self.record.version + 1
                    made = replace(changed, version=number, request=request.id)
                    self.announce(made, batch_id + 1)
            except WeftError as error:
                answer = Answer.refusal(error)
            else:
                answer = Answer(True, from_batch=batch_id + 1)
            self._control.answer(request, answer)

    def _after(self, request: Request) -> Record:
        record = self.record
        if request.action == "suspend":
            return self._suspended(request.query)
        if request.action == "resume":
            idle = record.suspended.get(request.query)
            if idle is None:
                raise _unknown(request.query, "suspended", record.suspended)
            left = {n: own for n, own in record.suspended.items() if n != request.query}
            return replace(record, plan=self._embedded(idle.queries[0]), suspended=left)
        if request.action != "add":
            raise QueryError(
                f"a request asks for {request.action}", hint="leave requests with weft queries"
            )
        query = request.parsed()
        plan = self._embedded(query)
        self._route(query, request.sink)
        sinks = {**record.live_sinks, query.name: request.sink or ""}
        return replace(record, plan=plan, live_sinks=sinks)

    def _suspended(self, name: str) -> Record:
        known = {query.name: query for query in self.record.plan.queries}
        if name not in known:
            raise _unknown(name, "active", known)
        if len(known) == 1:
            raise QueryError(
                f"{name!r} is the only query that is active", hint="stop the stream instead"
            )
        plan = without_query(self.record.plan, name)
        idle = optimize(Workload([known[name]]), "independent")
        return replace(self.record, plan=plan, suspended={**self.record.suspended, name: idle})

    def _embedded(self, query: Query) -> Plan:
        record = self.record
        if query.name in {q.name for q in record.plan.queries}:
            raise QueryError(
                f"a query named {query.name!r} is already in the workload",
                hint="give it another name, or suspend the other one first",
            )
        if query.source not in self.sources:
            raise QueryError(
                f"the stream does not read {query.source!r}",
                hint=f"it reads {', '.join(self.sources)}; another source needs another stream",
            )
        own = [call.function for _, call in query.aggs if not is_built_in(call.function)]
        for function in own:
            if function not in self._sent:
                raise QueryError(
                    f"{function!r} was defined after the stream had started, and executors do not "
                    "have it",
                    hint="restart the stream: it goes on from its checkpoint",
                )
        columns = {query.source: columns_of_frame(self.sources[query.source])}
        (bound,) = bind(Workload([query]), columns)
        assert isinstance(bound, Query)
        plan = embed_query(record.plan, bound)
        for stream in streams_of(plan):
            parcels = self._posts[stream.name].parcels if stream.name in self._posts else ()
            _check_served(bound, stream, tuple(parcels))
        return plan

    def _route(self, query: Query, sink: str | None) -> None:
        shared = next((route for route in self.routes.values() if route.shared), None)
        if sink:
            self.routes[query.name] = Route(as_sink(self.roots.checked(sink)), shared=False)
        elif shared is not None:
            shared.check(query)
            self.routes[query.name] = shared
        elif query.name not in self.routes:
            raise QueryError(
                f"query {query.name!r} has no sink: every query of this stream has its own",
                hint="name one: --sink PATH",
            )
        Journal(self.checkpoint.own).tell_sinks(self.routes)


def _check_served(query: Query, stream: Stream, parcels: tuple[Parcel, ...]) -> None:
    """Refuse a query that needs what the running stream does not send to its operators."""
    restart = "restart the stream with it in the workload: it goes on from its checkpoint"
    for scope in stream.scopes:
        if query.name not in scope.queries:
            continue
        own = [parcel for parcel in parcels if parcel.serves(scope)]
        if not own:
            raise QueryError(
                f"no running query reads the events of {query.name!r} by the same keys",
                hint=restart,
            )
        missing = own[0].missing(scope)
        if missing:
            raise QueryError(
                f"{query.name!r} needs {', '.join(missing)}, which is not sent to operators",
                hint=restart,
            )


def _unknown(name: str, state: str, known: Mapping[str, object]) -> QueryError:
    listed = ", ".join(known) or "none"
    return QueryError(f"no {state} query is named {name!r}", hint=f"the {state} ones are {listed}")
