"""A stream driven by hand: push batches, move the watermark, take the rows that closed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.local.archive import dump_session, load_session
from weft.engines.local.engine import scan_below
from weft.engines.local.stream import Results, SourceStream, instant_of
from weft.engines.measures import peak_resident_bytes
from weft.errors import QueryError, UnsupportedError
from weft.frames import to_arrow
from weft.plan import Emit, Join, Plan
from weft.plan.nodes import topological
from weft.query import JoinQuery, Query, Workload
from weft.time import Duration, duration_us

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a session has done and holds."""

    events: int  # taken by operators; an event that two sharing scopes read counts twice
    late: Mapping[str, int]  # events too late, by query
    timeless: int  # events without a time
    open_slices: int
    state_bytes: int
    combines: int  # partials combined, counted as the rows that every step reads
    watermarks_us: Mapping[str, int | None]  # by source
    seconds: float  # spent in this process on batches and on closing windows
    peak_bytes: int | None  # the most memory this process had so far; None where not told

    @property
    def events_per_second(self) -> float:
        """The throughput of this session while it works."""
        return self.events / self.seconds if self.seconds > 0 else 0.0


class LocalSession:
    """Runs a workload as a stream in this process.

    Windows close when the watermark passes their end; the watermark of a source is its latest
    event less the delay. Rows come out once, in the order of (end, window, start, key).

    >>> import weft
    >>> query = weft.Query("n", source="s", time="ts", windows={"10": weft.tumbling(10)},
    ...                    aggs={"n": weft.agg.count()})
    >>> session = LocalSession(weft.Workload([query]), watermark=5)
    >>> session.push("s", pa.table({"ts": [3, 8, 12]})).num_rows
    0
    >>> session.push("s", pa.table({"ts": [9, 15]}))["n"].to_pylist()
    [3]
    >>> session.finish()["n"].to_pylist()
    [2]
    """

    def __init__(
        self,
        workload: Workload | Plan,
        watermark: Duration | None = None,
        *,
        planner: str = "auto",
        statistics: Statistics | None = None,
    ) -> None:
        plans = _plans(workload, planner, statistics)
        queries = [query for plan in plans.values() for query in plan.queries]
        delay_us = _delay_us(workload, queries, watermark)
        self._streams = {
            source: SourceStream(source, plan, delay_us) for source, plan in plans.items()
        }
        self._one = len(queries) == 1
        self._finished = False

    def push(self, source: str, batch: Any) -> Any:
        """Take a batch of a source; return the rows it closed, by query where there are several.

        An error leaves the session as it was before the batch.
        """
        self._refuse_finished()
        if source not in self._streams:
            raise QueryError(
                f"no query reads {source!r}", hint=f"the sources are {', '.join(self._streams)}"
            )
        return self._given(self._streams[source].push(to_arrow(batch)))

    def advance(self, time: Any) -> Any:
        """Move the watermark of every source to a time, never back; return the rows that closed."""
        self._refuse_finished()
        to_us = instant_of(time)
        found: Results = {}
        for stream in self._streams.values():
            found |= stream.advance(to_us)
        return self._given(found)

    def finish(self) -> Any:
        """Close all windows: the input has ended. Nothing can be pushed afterwards."""
        self._refuse_finished()
        found: Results = {}
        for stream in self._streams.values():
            found |= stream.finish()
        self._finished = True
        return self._given(found)

    def snapshot(self) -> bytes:
        """Return the whole session as bytes, for `restore` here or in another process."""
        return dump_session(
            {name: stream.saved_state() for name, stream in self._streams.items()},
            one=self._one,
            finished=self._finished,
        )

    @staticmethod
    def restore(snapshot: bytes) -> LocalSession:
        """Return the session that `snapshot` wrote; it goes on with identical results.

        Custom aggregates and user-defined windows must be defined in this process. Partials of
        custom aggregates are Python pickles: restore only snapshots you trust.
        """
        streams, one, finished = load_session(snapshot)
        session = object.__new__(LocalSession)
        session._streams = {name: SourceStream.of_state(s) for name, s in streams.items()}
        session._one, session._finished = one, finished
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
            combines=sum(operator.plan.combines for operator in operators),
            watermarks_us={name: s.watermark_us for name, s in self._streams.items()},
            seconds=sum(stream.seconds for stream in streams),
            peak_bytes=peak_resident_bytes(),
        )

    def _given(self, found: Results) -> Any:
        if not self._one:
            return found
        # Before the first batch nothing is known of the columns.
        return next(iter(found.values()), pa.table({}))

    def _refuse_finished(self) -> None:
        if self._finished:
            raise QueryError("the session is finished", hint="start another one")


def _plans(
    workload: Workload | Plan, planner: str, statistics: Statistics | None
) -> dict[str, Plan]:
    """Plan the queries of each source; a plan that is given is taken as it is."""
    if isinstance(workload, Plan):
        emits: dict[str, list[Emit]] = {}
        for emit in workload.emits:
            emits.setdefault(scan_below(emit).source, []).append(emit)
        _refuse_joins(any(isinstance(node, Join) for node in workload.nodes))
        if len(emits) == 1:
            return dict.fromkeys(emits, workload)
        return {
            source: replace(workload, nodes=topological(tuple(own)), node_costs=())
            for source, own in emits.items()
        }
    from weft.planners.portfolio import optimize

    _refuse_joins(any(isinstance(query, JoinQuery) for query in workload))
    single = [query for query in workload if isinstance(query, Query)]
    return {
        source: optimize(
            Workload(query for query in single if query.source == source),
            planner,
            "local",
            statistics,
        )
        for source in workload.sources
    }


def _refuse_joins(any_join: bool) -> None:
    if any_join:
        raise UnsupportedError("a session does not run joins", hint="use engine='spark'")


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
