"""Serving features: events are pushed as they come, and points are answered at once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.features import common_type, wide_type
from weft.engines.local.anchors.held_events import HeldEvents
from weft.engines.local.anchors.order import LEAST, shifted
from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.values.frame import Frame
from weft.engines.local.windows.events import read_scan, read_times
from weft.engines.schema import expression_type
from weft.errors import DataError, QueryError
from weft.expression import column
from weft.features.runs import bind_features, plan_bound, run_plan
from weft.frames import to_arrow
from weft.plan import Scan
from weft.plan.anchors import EventFeatures, FeatureQuery
from weft.plan.anchors.node_json import asked_from_json, asked_to_json
from weft.time import duration_us, instant
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.kernels.partials import Int64s
    from weft.query import AskedAggregates, AskedKeys
    from weft.time import Duration
    from weft.window.trailing import Closed, TrailingRows

_POINTS, _EVENTS = "points", "events"
_VERSION, _TOLD = 2, b"weft"
_MAGIC, _DIGEST = b"weft features", 32


@dataclass(frozen=True, slots=True)
class FeatureMetrics:
    """What a session has seen, and what it holds."""

    events: int
    late: int
    held: int
    held_bytes: int


class FeatureSession:
    """Holds the events that windows may still need, and answers `as_of` from them.

    Rows equal those of `weft.as_of` over all events pushed so far. With a `watermark` points may
    lie that far behind the latest event and no further, and older events are forgotten; without
    one nothing is.

    >>> import pyarrow as pa, weft
    >>> session = weft.FeatureSession(time="ts", by=["user"], windows={"1m": "1 minute"},
    ...                               aggs={"n": weft.agg.count()})
    >>> session.push(pa.table({"user": ["a", "b"], "ts": [0, 50_000_000]}))
    >>> points = pa.table({"user": ["a", "b", "c"], "now": [60_000_000] * 3})
    >>> session.as_of(points, at="now")["n_1m"].to_pylist()
    [1, 1, 0]
    """

    def __init__(
        self,
        *,
        time: str,
        windows: Mapping[str, Duration | TrailingRows],
        aggs: AskedAggregates,
        by: AskedKeys = (),
        where: str | None = None,
        closed: Closed = "left",
        round: Duration | None = None,
        watermark: Duration | None = None,
    ) -> None:
        asked = EventFeatures.of(
            _EVENTS,
            time=time,
            by=by,
            where=where,
            windows=windows,
            aggs=aggs,
            closed=closed,
            round=round,
        )
        watermark_us = None if watermark is None else duration_us(watermark)
        if watermark_us is not None and watermark_us < 0:
            raise QueryError("a watermark is not negative", hint="give a delay of zero or more")
        self._open(asked, watermark_us)

    @staticmethod
    def serving(asked: EventFeatures, watermark_us: int | None = None) -> FeatureSession:
        """Return a session for what is asked of a source, as plans and snapshots have it."""
        session = object.__new__(FeatureSession)
        session._open(asked, watermark_us)
        return session

    def _open(self, asked: EventFeatures, watermark_us: int | None) -> None:
        self._asked, self._watermark_us = asked, watermark_us
        self._scan = Scan(_EVENTS, asked.time, asked.where, asked.inputs)
        found = asked.windows
        self._ranges = [window for window in found if isinstance(window, Trailing)]
        rows = [window.rows_back for window in found if not isinstance(window, Trailing)]
        self._held = HeldEvents(len(self._asked.keys), max(rows, default=0))
        self._schema: pa.Schema | None = None
        self._latest_us = LEAST
        self._events = self._late = 0

    def push(self, events: Any) -> None:
        """Take a table of events, in any order; those behind the horizon are late and dropped."""
        table = to_arrow(events)
        timed = read_scan(self._scan, table)
        rows = pa.table(dict(timed.frame.columns))
        if self._schema is None:
            self._schema = rows.schema
        elif rows.schema != self._schema:
            raise DataError(
                f"the events have the columns {rows.schema.to_string()!r}, which differ from those "
                "that came first",
                hint="push tables of the same types",
            )
        keys = [
            timed.argument(text).cast(wide_type(expression_type(text, rows.schema)))
            for _, text in self._asked.keys
        ]
        times = timed.times_us
        in_time = times >= self._held.horizon_us
        self._events += times.size
        if not in_time.all():
            self._late += int(times.size - in_time.sum())
            at = np.flatnonzero(in_time)
            times, rows = times[at], rows.take(at)
            keys = [key.take(pa.array(at)) for key in keys]
        self._held.add(keys, times, rows)
        if times.size:
            self._latest_us = max(self._latest_us, int(times.max()))
            self._move_horizon()

    def snapshot(self) -> bytes:
        """Return the session as bytes, for `restore` here or in another process.

        It has what was asked and the events that are held, as an Arrow stream; no code.

        >>> import pyarrow as pa, weft
        >>> asked = {"windows": {"1m": "1 minute"}, "aggs": {"n": weft.agg.count()}}
        >>> session = weft.FeatureSession(time="ts", **asked)
        >>> session.push(pa.table({"ts": [0, 50_000_000]}))
        >>> again = weft.FeatureSession.restore(session.snapshot())
        >>> again.as_of(pa.table({"now": [60_000_000]}), at="now")["n_1m"].to_pylist()
        [2]
        """
        told = {
            "weft_feature_session": _VERSION,
            "asked": asked_to_json(self._asked),
            "watermark_us": self._watermark_us,
            "latest_us": self._latest_us,
            "horizon_us": self._held.horizon_us,
            "events": self._events,
            "late": self._late,
            "typed": self._schema is not None,
        }
        schema = self._schema or pa.schema([])
        rows = pa.concat_tables([schema.empty_table(), *(run.rows for run in self._held.runs)])
        rows = rows.replace_schema_metadata({_TOLD: json.dumps(told)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        stream = sink.getvalue().to_pybytes()
        return b"".join([_MAGIC, hashlib.sha256(stream).digest(), stream])

    @staticmethod
    def restore(snapshot: bytes) -> FeatureSession:
        """Return the session that `snapshot` wrote; it goes on with identical answers.

        Custom aggregates must be defined in this process.
        """
        try:
            stream, version = _checked(snapshot)
            rows = pa.ipc.open_stream(stream).read_all()
            told = json.loads((rows.schema.metadata or {})[_TOLD])
            if told["weft_feature_session"] != version:
                raise ValueError(f"version {told['weft_feature_session']}")
            asked = asked_from_json(told["asked"])
        except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError) as reason:
            raise DataError(
                f"these bytes are no snapshot of a feature session: {reason}",
                hint="pass what session.snapshot() returned, whole",
            ) from None
        session = FeatureSession.serving(asked, told["watermark_us"])
        if told["typed"]:
            session.push(rows.replace_schema_metadata(None))
        session._latest_us, session._held.horizon_us = told["latest_us"], told["horizon_us"]
        session._events, session._late = told["events"], told["late"]
        return session

    def _move_horizon(self) -> None:
        if self._watermark_us is not None:
            oldest = self._latest_us - self._watermark_us
            firsts = [window.interval(oldest)[0] for window in self._ranges]
            self._held.forget(min([*firsts, oldest]))

    def as_of(self, points: Any, at: str | None = None) -> Any:
        """Return the points with their features, in the type and the order in which they came."""
        arrow = to_arrow(points)
        events = self._empty(arrow)
        query = FeatureQuery(_POINTS, at, rolling=False, inputs=(self._asked,))
        bound = bind_features(query, {_POINTS: arrow, _EVENTS: events})
        assert bound.at is not None
        frame = Frame.of(arrow, dict.fromkeys((*(n for n, _ in self._asked.keys), bound.at)))
        times, valid = read_times(frame.columns[bound.at], bound.at)
        self._check_times(times if valid is None else times[valid])
        keys = []
        for name, text in self._asked.keys:
            own, theirs = frame.columns[name], expression_type(text, events.schema)
            common_type(name, own.type, theirs)
            keys.append(evaluate(column(name), frame).cast(wide_type(theirs)))
        found = self._held.of_keys(keys, self._first_instants(times))
        events = pa.concat_tables([events, *found])
        tables = {_POINTS: arrow, _EVENTS: events}
        plan = plan_bound(bound, tables, "local")
        return run_plan(plan, {**tables, _POINTS: points}, tables, "local")

    def _empty(self, points: pa.Table) -> pa.Table:
        if self._schema is None:
            raise DataError(
                "no events were pushed, so the types of the features are not known",
                hint="push a table of events first; it may have no rows",
            )
        return self._schema.empty_table()

    def _check_times(self, times_us: Int64s) -> None:
        if self._watermark_us is None or not times_us.size:
            return
        oldest = self._latest_us - self._watermark_us
        if int(times_us.min()) < oldest:
            raise DataError(
                f"a point lies at {instant(int(times_us.min()))}, and what was before "
                f"{instant(oldest)} is forgotten",
                hint="give the session a longer watermark, or ask weft.as_of over all events",
            )

    def _first_instants(self, times_us: Int64s) -> Int64s:
        """Return the first instant that any window of a point holds."""
        firsts = [shifted(times_us, w.first_us, w.round_us) for w in self._ranges]
        earliest: Int64s = np.minimum.reduce([times_us, *firsts])
        return earliest

    @property
    def metrics(self) -> FeatureMetrics:
        """Events pushed and late, and what is held of them."""
        return FeatureMetrics(self._events, self._late, len(self._held), self._held.nbytes)


def _checked(snapshot: bytes) -> tuple[bytes, int]:
    """Return the Arrow stream of a snapshot and its version; the first had no checksum."""
    if snapshot[: len(_MAGIC)] != _MAGIC:
        return snapshot, 1
    head = len(_MAGIC) + _DIGEST
    if hashlib.sha256(snapshot[head:]).digest() != snapshot[len(_MAGIC) : head]:
        raise ValueError("it is damaged or cut short")
    return snapshot[head:], _VERSION
