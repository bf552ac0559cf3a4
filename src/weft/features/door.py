"""Features for models: windows that end at every label (`as_of`) or at every event (`rolling`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weft.errors import QueryError
from weft.features.runs import bind_features, plan_bound, run_plan
from weft.plan.anchors import EventFeatures, FeatureQuery
from weft.running import STREAM, engine_for, family_of, tables_for

if TYPE_CHECKING:
    from weft.query import AskedAggregates, AskedKeys
    from weft.time import Duration
    from weft.window.trailing import Closed, TrailingRows

_POINTS, _EVENTS = "points", "events"


@dataclass(frozen=True, slots=True)
class Events:
    """One of several sources of events for `as_of`; what is not said here is as in the call.

    Its columns are named `{name}_{agg}_{window}`, after its name in the mapping.
    """

    table: Any
    time: str | None = None
    by: AskedKeys | None = None
    windows: Mapping[str, Duration | TrailingRows] | None = None
    aggs: AskedAggregates | None = None
    where: str | None = None
    closed: Closed | None = None
    round: Duration | None = None


def as_of(
    points: Any,
    events: Any,
    *,
    time: str | None = None,
    at: str | None = None,
    by: AskedKeys = (),
    windows: Mapping[str, Duration | TrailingRows] | None = None,
    aggs: AskedAggregates | None = None,
    where: str | None = None,
    closed: Closed = "left",
    round: Duration | None = None,
    engine: str | None = None,
    explain: bool = False,
) -> Any:
    """Join to every point what was known at its time: aggregates of its key's events before it.

    The result has the points' own rows and columns, then one column per aggregate and window,
    named f"{agg}_{window}". A point without events keeps its row, with counts of 0 and NULL.
    `closed` says which ends a window of range r at time t holds: "left" [t-r, t), which no event at
    the time of the label leaks into, "right" (t-r, t], "both" [t-r, t], or "neither". With `round`
    windows begin at the multiple of it at or before their first instant.

    `by` names columns that both tables have, or maps columns of the points to expressions over the
    events. `events` may be a mapping of names to `weft.Events`, each with keys and windows of its
    own. With `explain` the plan is returned, and nothing runs. `events` may be a `weft.Store` too,
    where `round` is a width that its slices make up and no point lies inside such a slice.

    >>> import pyarrow as pa, weft
    >>> orders = pa.table({"user": ["a", "a", "b"], "ts": [10, 20, 20], "amount": [1.0, 2.0, 4.0]})
    >>> labels = pa.table({"user": ["a", "b"], "label_time": [20, 21]})
    >>> weft.as_of(labels, orders, time="ts", at="label_time", by=["user"], windows={"15us": 15},
    ...            aggs={"spend": weft.agg.sum("amount")}).to_pydict()
    {'user': ['a', 'b'], 'label_time': [20, 21], 'spend_15us': [1.0, 4.0]}
    """
    common = Events(None, time, by, windows, aggs, where, closed, round)
    features = getattr(events, "features_at", None)  # of a weft.Store, which is no table
    if features is not None:
        return features(points, at, _asked(events.only_source, common, ""))
    if isinstance(events, Mapping):
        named = {name: _completed(name, given, common) for name, given in events.items()}
        if not named:
            raise QueryError("there are no events", hint="name at least one source of events")
    else:
        named = {_EVENTS: replace(common, table=events)}
    points_name = _other_name(named)
    query = FeatureQuery(
        points_name,
        at,
        rolling=False,
        inputs=tuple(
            _asked(name, own, f"{name}_" if isinstance(events, Mapping) else "")
            for name, own in named.items()
        ),
    )
    tables = {points_name: points, **{name: own.table for name, own in named.items()}}
    return _run(query, tables, engine, explain=explain)


def rolling(
    data: Any,
    *,
    time: str | None = None,
    by: AskedKeys = (),
    windows: Mapping[str, Duration | TrailingRows],
    aggs: AskedAggregates,
    where: str | None = None,
    closed: Closed = "both",
    round: Duration | None = None,
    watermark: Duration | None = None,
    engine: str | None = None,
    explain: bool = False,
) -> Any:
    """Aggregate, for every row, its key's rows in windows that end at the row's own time.

    The result has the rows and columns of `data`, then one column per aggregate and window, named
    f"{agg}_{window}". By default a window of range r holds both its ends, as SQL's RANGE BETWEEN r
    PRECEDING AND CURRENT ROW does; `weft.rows(n)` holds the last n rows with the row itself. Rows
    that `where` does not keep count nowhere and have results all the same.

    Of a streaming DataFrame the result is one too: a row comes when the watermark has passed its
    time, with the values that a batch over all rows gives; rows that come after that are dropped
    and counted. `watermark` says how late rows may be, unless the DataFrame does; it is of no
    account in a batch. State holds the events of the longest range, or with `round` slices for
    those that are long past.

    >>> import pyarrow as pa, weft
    >>> orders = pa.table({"ts": [0, 10, 30], "amount": [1, 2, 4]})
    >>> weft.rolling(orders, time="ts", windows={"20us": 20, "last2": weft.rows(2)},
    ...              aggs={"spend": weft.agg.sum("amount")}).select([2, 3]).to_pydict()
    {'spend_20us': [1, 3, 6], 'spend_last2': [1, 3, 6]}
    """
    asked = Events(data, time, by, windows, aggs, where, closed, round)
    inputs = (_asked(_EVENTS, asked, "", watermark),)
    query = FeatureQuery(_EVENTS, time, rolling=True, inputs=inputs)
    return _run(query, {_EVENTS: data}, engine, explain=explain)


def _completed(name: str, given: Any, common: Events) -> Events:
    if not isinstance(given, Events):
        raise QueryError(
            f"the events {name!r} are {type(given).__name__}, not weft.Events",
            hint=f"write {{{name!r}: weft.Events(table, time=..., by=[...])}}",
        )
    missing = {
        field: getattr(common, field)
        for field in Events.__slots__
        if field != "table" and getattr(given, field) is None
    }
    return replace(given, **missing)


def _other_name(taken: Mapping[str, object]) -> str:
    name = _POINTS
    while name in taken:
        name += "_"
    return name


def _asked(
    name: str, events: Events, prefix: str, watermark: Duration | None = None
) -> EventFeatures:
    for argument in ("windows", "aggs"):
        if not isinstance(getattr(events, argument), Mapping):
            raise QueryError(
                f"{argument} of {name!r} is no mapping", hint=f"name each: {argument}={{...}}"
            )
    assert events.windows is not None
    assert events.aggs is not None
    return EventFeatures.of(
        name,
        time=events.time,
        by=() if events.by is None else events.by,
        where=events.where,
        windows=events.windows,
        aggs=events.aggs,
        closed=events.closed or "left",
        round=events.round,
        prefix=prefix,
        watermark=watermark,
    )


def _run(
    query: FeatureQuery, tables: Mapping[str, Any], engine: str | None, *, explain: bool
) -> Any:
    chosen = engine_for(tables, engine)
    streams = [name for name, table in tables.items() if getattr(table, "isStreaming", False)]
    if chosen.name == STREAM and not streams:
        raise QueryError(
            f"the engine {STREAM!r} is for streams, and there is none",
            hint="read the rows with spark.readStream, or use the engine 'spark'",
        )
    family, own = family_of(chosen), tables_for(chosen, tables)
    bound = bind_features(query, own)
    plan = plan_bound(bound, own, family)
    if explain:
        return plan
    return run_plan(plan, tables, own, family)
