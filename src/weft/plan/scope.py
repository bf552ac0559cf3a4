"""Sharing scopes: the windows that may feed one another, and what is asked of each.

Queries share when they read the same source by the same time column and group by the same keys.
Those that keep the same events form a scope; scopes of different filters may be put together, and
then the partials of each query are under its own condition. Inside a scope every distinct partial
exists once per window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from weft.aggregates import AggregateCall, Partial, decompose, rows_where
from weft.aggregates.base import is_built_in
from weft.aggregates.spark_sketches import MERGED_BY
from weft.plan.conditions import cannot_fail, weakest
from weft.plan.nodes import FOLD, Emit, Roll, Scan
from weft.query import Keys, Query, Workload
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow, Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Calls = tuple[tuple[str, AggregateCall], ...]
_BY_THE_CLOCK = (PeriodicWindow, CumulatingWindow, CalendarWindow)


@dataclass(frozen=True, slots=True)
class Demand:
    """One window of one query, with the results wanted of it."""

    query: str
    label: str
    window: Window
    outputs: Calls
    window_columns: tuple[str, str, str]
    exists: Partial | None = None  # counts its events, where the scan keeps more than those

    @property
    def needed(self) -> tuple[Partial, ...]:
        """The partials that its rows are made of, each once."""
        found = decompose(call for _, call in self.outputs)
        return found if self.exists is None else tuple(dict.fromkeys((*found, self.exists)))

    def under(self, where: str | None) -> Demand:
        """Return the same demand on events of which a condition keeps some."""
        if where is None:
            return self
        outputs = tuple((alias, replace(call, where=where)) for alias, call in self.outputs)
        return replace(self, outputs=outputs, exists=rows_where(where))


@dataclass(frozen=True)
class Scope:
    """All demands on the same events under the same keys."""

    scan: Scan
    keys: Keys
    demands: tuple[Demand, ...]
    exact_columns: frozenset[str] = frozenset()  # columns known to hold integers or decimals

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The distinct windows asked for, in order of first demand."""
        return tuple(dict.fromkeys(demand.window for demand in self.demands))

    @cached_property
    def _partials(self) -> dict[tuple[Window, bool], tuple[Partial, ...]]:
        calls: dict[Window, dict[AggregateCall, None]] = {}
        counts: dict[Window, dict[Partial, None]] = {}
        for demand in self.demands:
            calls.setdefault(demand.window, {}).update((call, None) for _, call in demand.outputs)
            if demand.exists is not None:
                counts.setdefault(demand.window, {})[demand.exists] = None
        memo: dict[tuple[AggregateCall, ...], tuple[Partial, ...]] = {}
        found: dict[tuple[Window, bool], tuple[Partial, ...]] = {}
        for window, asked in calls.items():
            key = tuple(asked)
            if key not in memo:
                memo[key] = decompose(key)
            own = tuple(dict.fromkeys((*memo[key], *counts.get(window, ()))))
            found[window, False] = tuple(p for p in own if not p.laws().holistic)
            found[window, True] = tuple(p for p in own if p.laws().holistic)
        return found

    def shareable_partials(self, window: Window) -> tuple[Partial, ...]:
        """The decomposable partials asked of a window."""
        return self._partials[window, False]

    def holistic_partials(self, window: Window) -> tuple[Partial, ...]:
        """The partials asked of a window that grow with its events; they are not shared."""
        return self._partials[window, True]

    @cached_property
    def shareable(self) -> tuple[PeriodicWindow, ...]:
        """The periodic windows of which something decomposable is asked."""
        return tuple(
            w for w in self.windows if isinstance(w, PeriodicWindow) and self.shareable_partials(w)
        )

    def partials_for(self, windows: tuple[Window, ...]) -> tuple[Partial, ...]:
        """The distinct decomposable partials that any of these windows needs."""
        return tuple(dict.fromkeys(p for w in windows for p in self.shareable_partials(w)))

    def is_idempotent(self, window: Window) -> bool:
        """True when overlapping feeders may serve all that is asked of the window."""
        return all(p.laws().idempotent for p in self.shareable_partials(window))

    def is_exact(self, partial: Partial) -> bool:
        """True when the partial's inputs are known not to round."""
        return all(arg in self.exact_columns for arg in partial.args)

    def from_events(self, window: Window, partials: tuple[Partial, ...]) -> Roll:
        """The window computed from events alone."""
        return Roll((self.scan,), window, FOLD, self.keys, partials)

    def emits(self, shared: Mapping[Window, Roll]) -> tuple[Emit, ...]:
        """Finish a plan: emit every demand from its shared Roll, the rest from events."""
        own: dict[Window, tuple[Roll, ...]] = {}
        for window in self.windows:
            rolls: list[Roll] = []
            if window in shared:
                rolls.append(shared[window])
            elif self.shareable_partials(window):
                rolls.append(self.from_events(window, self.shareable_partials(window)))
            if self.holistic_partials(window):
                rolls.append(self.from_events(window, self.holistic_partials(window)))
            own[window] = tuple(rolls)
        return tuple(
            Emit(own[d.window], d.query, d.label, d.outputs, d.window_columns, d.exists)
            for d in self.demands
        )

    @property
    def may_be_mixed(self) -> bool:
        """True when scopes of other filters may join."""
        return not self.obstacle

    @cached_property
    def obstacle(self) -> str:
        """Say why no scope of another filter may join; empty where one may."""
        for window in self.windows:
            if not isinstance(window, _BY_THE_CLOCK):
                return f"{window} begins and ends with the events that the filter keeps"
        for _, call in (pair for demand in self.demands for pair in demand.outputs):
            if not is_built_in(call.function):
                return f"{call.function} is written in Python, and may count what is NULL"
            if call.function in MERGED_BY:
                return f"{call.function} is a sketch of Spark's own, and may count what is NULL"
        for _, expression in self.keys:
            if not cannot_fail(expression):
                return f"the key {expression} may fail on events that the filter drops"
        return ""


def scopes_of(
    workload: Workload, exact_columns: Mapping[str, frozenset[str]] | None = None
) -> tuple[Scope, ...]:
    """Split the workload's single-source queries into sharing scopes, in order of first query."""
    found: dict[tuple[object, ...], list[Query]] = {}
    for query in workload.queries:
        if isinstance(query, Query):
            key = (query.source, query.time, query.where, query.keys)
            found.setdefault(key, []).append(query)
    scans = _scans(workload)
    return tuple(_scope(queries, scans, exact_columns or {}) for queries in found.values())


def mixed(scopes: Sequence[Scope], readers: Sequence[Scope]) -> Scope:
    """Put scopes of one source, time column and set of keys together, whatever their filters.

    The scan keeps what any of them keeps, and reads what `readers` read that have these filters
    under whatever keys: scopes of the same filters have one scan.

    >>> from weft import agg, tumbling
    >>> ask = {"source": "s", "windows": {"4": tumbling(4)}, "aggs": {"n": agg.sum("x")}}
    >>> apart = scopes_of(Workload([Query("a", where="k = 1 AND x > 5", **ask),
    ...                             Query("b", where="k = 1", **ask)]))
    >>> both = mixed(apart, apart)
    >>> both.scan.where, [str(p) for p in both.shareable_partials(both.windows[0])][:2]
    ('k = 1', ['sum(x) where k = 1 AND x > 5', 'count(x) where k = 1 AND x > 5'])
    """
    if len(scopes) == 1:
        return scopes[0]
    first, filters = scopes[0], {scope.scan.where for scope in scopes}
    at = (first.scan.source, first.scan.time)
    read = [
        one.scan
        for one in readers
        if one.scan.where in filters and (one.scan.source, one.scan.time) == at
    ]
    delays = [scan.watermark_us for scan in read if scan.watermark_us is not None]
    scan = Scan(
        first.scan.source,
        first.scan.time,
        weakest(scope.scan.where for scope in scopes),
        tuple(sorted({column for own in read for column in own.columns})),
        watermark_us=max(delays, default=None),
    )
    demands = (
        demand.under(None if scope.scan.where == scan.where else scope.scan.where)
        for scope in scopes
        for demand in scope.demands
    )
    return Scope(scan, first.keys, tuple(demands), first.exact_columns)


def _scans(workload: Workload) -> dict[tuple[object, ...], Scan]:
    """One scan for all scopes that keep the same events, whatever their keys: one read."""
    readers: dict[tuple[object, ...], list[Query]] = {}
    for query in workload.queries:
        if isinstance(query, Query):
            readers.setdefault((query.source, query.time, query.where), []).append(query)
    return {
        events: Scan(
            queries[0].source,
            queries[0].time,
            queries[0].where,
            tuple(sorted({c for q in queries for c in q.inputs})),
            any(q.needs_whole_events for q in queries),
            max((q.watermark_us for q in queries if q.watermark_us is not None), default=None),
        )
        for events, queries in readers.items()
    }


def _scope(
    queries: list[Query],
    scans: Mapping[tuple[object, ...], Scan],
    exact_columns: Mapping[str, frozenset[str]],
) -> Scope:
    first = queries[0]
    scan = scans[first.source, first.time, first.where]
    demands = tuple(
        Demand(q.name, label, window, q.aggs, q.window_columns)
        for q in queries
        for label, window in q.windows
    )
    return Scope(scan, first.keys, demands, exact_columns.get(first.source, frozenset()))
