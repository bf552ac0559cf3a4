"""One source of a session: its plan, its operators, its watermark."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.binding import TableColumns, bind
from weft.engines.local.engine import labels_of, types_of
from weft.engines.local.output.tables import result_table
from weft.engines.local.running_scopes import SlicedBatch, running_scopes
from weft.engines.local.state.snapshot import restore, snapshot
from weft.engines.local.values.frame import plain
from weft.engines.local.windows.events import read_scan, read_times
from weft.engines.schema import result_schema
from weft.errors import DataError
from weft.kernels.grouping.dense import bounds_of
from weft.query import Query, Workload
from weft.sessions.archive import StreamState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from weft.engines.local.operator import ScopeOperator
    from weft.engines.local.output.closed import Closed
    from weft.engines.local.running_scopes import Running
    from weft.engines.local.state.custom_partials import Trust
    from weft.engines.local.windows.close import Types
    from weft.plan import Plan, Scan

Results = dict[str, pa.Table]


@dataclass(slots=True)
class SourceStream:
    """The queries over one source, from the first batch on, which tells the types."""

    source: str
    plan: Plan
    delay_us: int
    schema: pa.Schema | None = None
    queries: dict[str, Query] = field(default_factory=dict)
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    scopes: dict[Scan, list[Running]] = field(default_factory=dict)
    types: Types = field(default_factory=dict)
    labels: dict[str, list[str]] = field(default_factory=dict)
    watermark_us: int | None = None
    timeless: int = 0
    seconds: float = 0.0  # spent on batches and on closing
    latest_us: dict[str, int] = field(default_factory=dict)  # the latest event, by time column

    @property
    def operators(self) -> list[ScopeOperator]:
        """All operators of this source."""
        return [one.operator for running in self.scopes.values() for one in running]

    def push(self, table: pa.Table) -> Results:
        """Take a batch and close what it closes; an error leaves everything as it was."""
        with self._working():
            if self.schema is None:
                self.start(table.schema)
            self._check(table.schema)
            latest: dict[str, int] = {}
            for scan, running in self.scopes.items():
                timed = read_scan(scan, table)
                self.timeless += timed.timeless
                batch = SlicedBatch(timed)
                for one in running:
                    one.process(batch)
                if scan.where is None and scan.time is not None and timed.times_us.size:
                    latest[scan.time] = timed.bounds_us[1]
            return self._advance(self._latest(table, latest))

    @contextmanager
    def _working(self) -> Iterator[None]:
        start = perf_counter()
        with self.unchanged_by_errors():
            yield
        self.seconds += perf_counter() - start

    @contextmanager
    def unchanged_by_errors(self) -> Iterator[None]:
        """Leave everything as it was when what is done inside fails."""
        before = {name: getattr(self, name) for name in _FIELDS}
        before["scopes"] = {scan: [o.saved() for o in own] for scan, own in self.scopes.items()}
        try:
            yield
        except BaseException:
            for name, value in before.items():
                setattr(self, name, value)
            raise

    def _latest(self, table: pa.Table, latest: dict[str, int]) -> int | None:
        """Return the watermark that a batch allows: its latest event less the delay.

        `latest` has the latest events that are known already, by time column.
        """
        # Times that suspended queries go by move on too.
        for name in dict.fromkeys((*self.latest_us, *(s.time for s in self.scopes if s.time))):
            if name in latest:
                continue
            times, valid = read_times(plain(table.column(name)), name)
            known = times if valid is None else times[valid]
            if known.size:
                latest[name] = bounds_of(known)[1]
        before = self.latest_us
        self.latest_us = before | {n: max(us, before.get(n, us)) for n, us in latest.items()}
        return min(latest.values()) - self.delay_us if latest else None

    def bound(self, query: Query) -> Query:
        """Look up the time column of a query, if the types of this source are known."""
        return query if self.schema is None else self._bound([query], self.schema)[query.name]

    def _bound(self, queries: Iterable[Query], schema: pa.Schema) -> dict[str, Query]:
        timestamps = tuple(f.name for f in schema if pa.types.is_timestamp(f.type))
        table = TableColumns(tuple(schema.names), timestamps)
        bound = bind(Workload(queries), {self.source: table})
        return {q.name: q for q in bound if isinstance(q, Query)}

    def start(self, schema: pa.Schema) -> None:
        """Look up time columns and types, and make the operators."""
        queries = self._bound(self.plan.queries, schema)
        time = next((q.time for q in queries.values() if q.time is not None), None)
        plan = self.plan if time is None else self.plan.with_times({self.source: time})
        schemas = {name: result_schema(query, schema) for name, query in queries.items()}
        scopes = running_scopes(plan)
        emits = tuple(e for own in scopes.values() for one in own for e in one.operator.emits)
        self.types = types_of(emits, schema)
        self.plan, self.schema, self.scopes = plan, schema, scopes
        self.queries, self.schemas = queries, schemas
        self.labels = {name: labels_of(plan, name) for name in queries}

    def _check(self, schema: pa.Schema) -> None:
        assert self.schema is not None
        check_batch(self.source, self.schema, schema, self.scopes)

    def advance(self, to_us: int) -> Results:
        """Move the watermark on, never back, and return what closed."""
        with self._working():
            return self._advance(to_us)

    def _advance(self, to_us: int | None) -> Results:
        if to_us is None or (self.watermark_us is not None and to_us <= self.watermark_us):
            return self._tables(())
        self.watermark_us = to_us
        return self._close(to_us)

    def finish(self) -> Results:
        """Close everything: the input has ended."""
        with self._working():
            return self._close(None)

    def _close(self, to_us: int | None) -> Results:
        found = [pair for one in self.operators for pair in one.advance(to_us, self.types)]
        return self._tables(found)

    def _tables(self, found: Iterable[Closed]) -> Results:
        closed: dict[str, list[Closed]] = {name: [] for name in self.queries}
        for one in found:
            closed[one.query].append(one)
        codes = {e.query: one.codes for one in self.operators for e in one.emits}
        return {
            name: result_table(self.schemas[name], self.labels[name], codes[name], parts)
            for name, parts in closed.items()
        }

    def saved_state(self, trust: Trust) -> StreamState:
        """Return plan, schema, watermark and the chunks of every operator."""
        return StreamState(
            self.source,
            self.plan,
            self.delay_us,
            self.schema,
            self.watermark_us,
            self.timeless,
            [snapshot(operator, trust) for operator in self.operators],
            self.latest_us,
        )

    @classmethod
    def of_state(cls, state: StreamState, trust: Trust) -> SourceStream:
        """Make the stream again that `saved_state` describes."""
        stream = cls(state.source, state.plan, state.delay_us)
        if state.schema is not None:
            stream.start(state.schema)
            for operator, chunks in zip(stream.operators, state.chunks, strict=True):
                restore(operator, chunks, trust)
        stream.watermark_us, stream.timeless = state.watermark_us, state.timeless
        stream.latest_us = state.latest_us
        return stream

    def late(self) -> dict[str, int]:
        """Return how many events came too late for each query."""
        return {
            emit.query: one.late - one.late_before.get(emit.query, 0)
            for one in self.operators
            for emit in one.emits
        }


def check_batch(source: str, known: pa.Schema, given: pa.Schema, scans: Collection[Scan]) -> None:
    """Refuse a batch whose columns are not those of the first one, as far as scans read them."""
    if given.equals(known):
        return
    read = {name for scan in scans for name in (*scan.columns, scan.time)}
    whole = any(scan.whole_events for scan in scans)
    for field_ in known:
        if field_.name not in read and not whole:
            continue
        at = given.get_field_index(field_.name)
        if at < 0:
            raise DataError(
                f"a batch of {source!r} has no column {field_.name!r}",
                hint=f"its columns are {', '.join(given.names)}",
            )
        if given.field(at).type != field_.type:
            raise DataError(
                f"column {field_.name!r} of {source!r} was {field_.type} and now is "
                f"{given.field(at).type}",
                hint="cast the batch to the types of the first one",
            )


_FIELDS = tuple(each.name for each in fields(SourceStream))


def instant_of(time: Any) -> int:
    """Read a point in time: microseconds since 1970 UTC, or a datetime."""
    from weft.engines.reference.events import time_us

    found = time_us(time, "time")
    if found is None:
        raise DataError("the watermark cannot move to NULL", hint="give a time")
    return found


__all__ = ["Results", "SourceStream", "check_batch", "instant_of"]
