"""Whether features are the same however they are computed: on engines, in streams, when served."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.compare import Difference, first_unlike
from weft.engines.local.anchors import run_features
from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import Frame, plain
from weft.engines.local.windows.events import read_times
from weft.errors import QueryError, UnsupportedError, suggest
from weft.expression import column, columns_of
from weft.features.runs import bind_features, plan_bound, run_plan
from weft.features.session import FeatureSession
from weft.frames import to_arrow
from weft.plan.anchors import EventFeatures, FeaturePlan, FeatureQuery
from weft.running import STREAM, engine_named, family_of, tables_for
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.kernels.partials import Bools
    from weft.query import Keys

AS_OF, SESSION = "as_of", "session"
_ROW, _POINTS = "weft_row", "weft_points"
_PARTS = 4  # of the time over which a session is served
_SECOND_US = 1_000_000


def feature_differences(
    plan: FeaturePlan, tables: Mapping[str, Any], engines: Sequence[str]
) -> tuple[tuple[str, ...], int, tuple[Difference, ...]]:
    """Compare the features of a plan in every way with those of the first engine.

    Returned are the ways, the number of points, and the first difference of each way.
    """
    arrow = {name: to_arrow(_table(name, tables)) for name in _sources(plan)}
    points = arrow[plan.points.source]
    # First of all columns: where rows of one instant have no order, that of the table decides.
    numbered = points.add_column(0, _ROW, pa.array(np.arange(points.num_rows)))
    own = {**arrow, plan.points.source: numbered}
    wanted = _on_engine(plan, own, engines[0])
    differences = []
    for engine in engines[1:]:
        found = _on_engine(plan, own, engine)
        kept = wanted
        if engine == STREAM:
            kept = wanted.filter(pa.array(_streamed_rows(plan, numbered)))
        differences.append(_difference(plan, found, kept, engine))
    served = _served(plan, arrow)
    for way, found in served.items():
        differences.append(_difference(plan, found, wanted, way))
    ways = (*engines, *served)
    return ways, points.num_rows, tuple(d for d in differences if d is not None)


def _sources(plan: FeaturePlan) -> list[str]:
    return list(dict.fromkeys([plan.points.source, *(t.events.source for t in plan.trails)]))


def _table(name: str, tables: Mapping[str, Any]) -> Any:
    if name not in tables:
        hint = suggest(name, list(tables), f"the plan reads {name!r}")
        raise QueryError(f"there is no table {name!r}", hint=hint)
    return tables[name]


def _on_engine(plan: FeaturePlan, tables: Mapping[str, pa.Table], name: str) -> pa.Table:
    """Return the points with their features, in the order of the points."""
    if name == STREAM:
        return _in_a_stream(plan, tables[plan.points.source]).sort_by(_ROW)
    engine = engine_named(name)
    own = tables_for(engine, tables)
    return to_arrow(run_plan(plan, tables, own, family_of(engine))).sort_by(_ROW)


def _in_a_stream(plan: FeaturePlan, rows: pa.Table) -> pa.Table:
    """Play the rows back as a stream, and after them one that all others are complete by."""
    if not plan.points.rolling:
        raise UnsupportedError(
            "features of points are no stream", hint=f"verify them without {STREAM!r}"
        )
    from weft.engines.spark.session import current_session
    from weft.engines.spark.streaming.anchors.compile import rolling_stream
    from weft.engines.spark.streaming.columnar.strategy import ROCKS_STORE, stored_in
    from weft.sessions.replay import collected, replayed

    session, source, time = current_session(), plan.points.source, plan.points.at
    trails = tuple(
        replace(trail, events=replace(trail.events, watermark_us=0)) for trail in plan.trails
    )
    undelayed = replace(plan, features=replace(plan.features, trails=trails))
    table = pa.concat_tables([rows, _last_row(rows, time)])
    with (
        replayed({source: table}, {source: time}, session) as streams,
        stored_in(ROCKS_STORE, session),
    ):
        stream = rolling_stream(undelayed, streams[source])
        found = collected(stream, {source: lambda whole: whole})[source]
    return found.filter(pc.greater_equal(found[_ROW], 0))


def _last_row(rows: pa.Table, time: str) -> pa.Table:
    """Return a row that comes after all others; without a row that has a time there is none."""
    last = rows.sort_by([(time, "descending")]).filter(~pc.field(time).is_null()).slice(0, 1)
    column = last.column(time)
    if pa.types.is_date(column.type):
        later = pc.add(column.cast(pa.int32()), 1).cast(column.type)
    elif pa.types.is_timestamp(column.type):
        second = pa.scalar(_SECOND_US, pa.duration("us")).cast(pa.duration(column.type.unit))
        later = pc.add(column, second)
    else:
        later = pc.add(column, _SECOND_US).cast(column.type)
    places = last.schema.get_field_index(_ROW), last.schema.get_field_index(time)
    number = pa.array([-1] * last.num_rows, pa.int64())
    return last.set_column(places[0], _ROW, number).set_column(places[1], last.field(time), later)


def _streamed_rows(plan: FeaturePlan, rows: pa.Table) -> Bools:
    """Mark the rows that a stream hands out: all, unless the watermark is still before 1970."""
    from weft.sessions.replay import last_watermark_us

    time = plan.points.at
    times, valid = read_times(plain(rows.column(time)), time)
    timed = np.ones(times.size, np.bool_) if valid is None else valid
    watermark_us = last_watermark_us(_last_row(rows, time), time, 0)
    if watermark_us is None or watermark_us <= 0:
        return ~timed
    return ~timed | (times < watermark_us)


def _served(plan: FeaturePlan, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Compute features as they are served; columns in the order of the points.

    The last rows up to a row of `rolling` end at the row itself, and as of its time with the last
    row of that instant: no session can be asked for them.
    """
    at, points = plan.points.at, tables[plan.points.source]
    if not plan.points.rolling:
        parts = [_session(asked, tables[asked.source], points, at) for asked in _asked(plan)]
        return {SESSION: _beside(parts)}
    (asked,) = _asked(plan)
    ranges = tuple(output for output in asked.outputs if isinstance(output[1], Trailing))
    if not ranges:
        return {}
    keyed, keys = _keyed(points, asked)
    asked = replace(asked, keys=keys, outputs=ranges)
    query = FeatureQuery(_POINTS, at, rolling=False, inputs=(asked,))
    own = {_POINTS: keyed, asked.source: points}
    bound = bind_features(query, own)
    return {
        AS_OF: run_features(plan_bound(bound, own, "local"), own),
        SESSION: _session_in_time(asked, points, keyed, at),
    }


def _asked(plan: FeaturePlan) -> list[EventFeatures]:
    """Return what the plan computes, source by source."""
    found = []
    for scan, keys, own in plan.scopes:
        outputs = [(name, plan.trails[i].window, call) for name, i, call in plan.outputs_of(own)]
        found.append(EventFeatures(scan.source, scan.time, keys, scan.where, tuple(outputs)))
    return found


def _keyed(rows: pa.Table, asked: EventFeatures) -> tuple[pa.Table, Keys]:
    """Return rows with their keys as columns, as points have them."""
    read = [name for _, text in asked.keys for name in columns_of(text)]
    frame = Frame.of(rows, dict.fromkeys(read))
    keys = []
    for number, (_, text) in enumerate(asked.keys):
        name = f"weft_key{number}"
        rows = rows.append_column(name, evaluate(text, frame))
        keys.append((name, text))
    return rows, tuple(keys)


def _session(asked: EventFeatures, events: pa.Table, points: pa.Table, at: str) -> pa.Table:
    """Ask a session that has all events."""
    session = FeatureSession.serving(asked)
    session.push(events)
    found: pa.Table = session.as_of(points, at)
    return found.select([name for name, _, _ in asked.outputs])


def _session_in_time(asked: EventFeatures, events: pa.Table, points: pa.Table, at: str) -> pa.Table:
    """Push events as time goes on, and ask for the rows of every stretch of time at its end."""
    times, valid = read_times(plain(events.column(at)), at)
    times = times if valid is None else np.where(valid, times, np.iinfo(np.int64).min)
    order = np.argsort(times, kind="stable")
    ends = [(part + 1) * (times.size - 1) // _PARTS for part in range(_PARTS if times.size else 0)]
    session, answers, places = FeatureSession.serving(asked), [], []
    before = np.zeros(times.size, np.bool_)
    for last in times[order[ends]].tolist():
        stretch = np.flatnonzero((times <= last) & ~before)
        before |= times <= last
        session.push(events.take(stretch))
        answers.append(session.as_of(points.take(stretch), at))
        places.append(stretch)
    if not answers:
        return _session(asked, events, points, at)
    # A custom aggregate without any value has no type yet.
    whole = pa.concat_tables(answers, promote_options="default")
    found = whole.take(np.argsort(np.concatenate(places)))
    return found.select([name for name, _, _ in asked.outputs])


def _beside(tables: Sequence[pa.Table]) -> pa.Table:
    names = [name for table in tables for name in table.column_names]
    return pa.Table.from_arrays([c for table in tables for c in table.columns], names=names)


def _difference(plan: FeaturePlan, got: pa.Table, wanted: pa.Table, way: str) -> Difference | None:
    """Return the first feature in which two ways differ; a way may not have them all."""
    asked = "rolling" if plan.points.rolling else "as_of"
    if got.num_rows != wanted.num_rows:
        rows = f"{wanted.num_rows} rows", f"{got.num_rows} rows"
        return Difference(asked, way, "", "any", (), *rows)
    for name, at, call in plan.features.outputs:
        if name not in got.column_names:
            continue
        place = first_unlike(got[name], wanted[name], call)
        if place is not None:
            trail = plan.trails[at]
            row = wanted.slice(place, 1)
            key = _key_of(plan, trail.keys, row)
            values = wanted[name][place].as_py(), got[name][place].as_py()
            return Difference(asked, way, name, str(trail.window), key, *values)
    return None


def _key_of(plan: FeaturePlan, keys: Keys, row: pa.Table) -> tuple[Any, ...]:
    """Return the key of a row, and its time."""
    texts = [text if plan.points.rolling else column(name) for name, text in keys]
    frame = Frame.of(row, dict.fromkeys(name for text in texts for name in columns_of(text)))
    found = [evaluate(text, frame)[0].as_py() for text in texts]
    return (*found, row[plan.points.at][0].as_py())
