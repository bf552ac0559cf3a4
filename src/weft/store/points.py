"""Features at points, from slices: what `weft.as_of` asks, where windows are whole slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.engine import types_of
from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.operator import ScopeOperator
from weft.engines.local.partials.lower import lower
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import Frame
from weft.engines.local.windows.events import read_times
from weft.engines.local.windows.flow import merged
from weft.errors import DataError, UnsupportedError
from weft.expression import column
from weft.plan.planned_scope import planned_scopes
from weft.query import Query, Workload
from weft.store.answers import ALWAYS, SliceReader, columns_asked, feed, schema_of
from weft.store.planning import planned
from weft.store.serving import served
from weft.time import format_us
from weft.window import PeriodicWindow
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.windows.flow import Flow
    from weft.kernels.partials import Int64s
    from weft.plan.anchors import EventFeatures
    from weft.window.trailing import AnchoredWindow

_COUNTS = ("count", "count_distinct", "approx_count_distinct")  # of nothing they are 0


def features_from_slices(
    reader: SliceReader, points: pa.Table, at: str, asked: EventFeatures
) -> pa.Table:
    """Append to every point what the slices before its time add up to."""
    width = _width_us(asked)
    calls = list(dict.fromkeys(call for _, _, call in asked.outputs))
    query = Query(
        "as_of",
        source=asked.source,
        time=asked.time,
        keys=dict(asked.keys),
        where=asked.where,
        windows={"slice": PeriodicWindow(width, width)},
        aggs={f"a{at}": call for at, call in enumerate(calls)},
    )
    plan = planned(reader.manifest, Workload([query]))
    (query,) = plan.queries
    schema_of(query, reader.manifest)
    (scope,) = planned_scopes(plan)
    operator = ScopeOperator.of(scope.scan, scope.keys, scope.nodes, scope.emits)
    source = served(reader.manifest, query)
    files = reader.files(source.number)
    if files:
        feed(operator, source, reader.rows(files, columns_asked(source, query), ALWAYS))
    flows = [flow for _, flow in operator.slices()]
    types = types_of(scope.emits, reader.manifest.schemas[query.source])[scope.emits[0]]
    frame = Frame.of(points, dict.fromkeys((*(name for name, _ in asked.keys), at)))
    at_us = _times(frame, at, width)
    codes = operator.codes.encode(
        [evaluate(column(name), frame) for name, _ in asked.keys], frame.rows
    )
    values: dict[AnchoredWindow, list[Array]] = {}
    for window in asked.windows:
        assert isinstance(window, Trailing)
        lows = at_us - window.range_us
        lows -= lows % width
        values[window] = _over(flows, codes.astype(np.int64), lows, at_us, query.aggs, types)
    table = points
    for name, window, call in asked.outputs:
        table = table.append_column(name, values[window][calls.index(call)])
    return table


def _width_us(asked: EventFeatures) -> int:
    """Return what window starts are rounded to, or say why slices cannot make up the windows."""
    widths = set()
    for name, window, _ in asked.outputs:
        if not isinstance(window, Trailing) or window.round_us is None or window.closed != "left":
            raise UnsupportedError(
                f"the window of {name!r}, {window}, may begin or end inside a slice",
                hint="give round= the width of the slices and closed='left', or pass the events",
            )
        widths.add(window.round_us)
    return max(widths)


def _times(frame: Frame, at: str, width: int) -> Int64s:
    times, valid = read_times(frame.columns[at], at)
    inside = times % width != 0
    if valid is not None and not valid.all():
        raise DataError(f"some points have no {at}", hint="leave them out")
    if inside.any():
        first = int(np.argmax(inside))
        raise UnsupportedError(
            f"point {first} lies inside a slice: its {at} is no multiple of {format_us(width)}",
            hint="round the times of the points down, or pass the events instead of the store",
        )
    return times


def _over(
    flows: Sequence[Flow],
    keys: Int64s,
    lows: Int64s,
    highs: Int64s,
    outputs: Sequence[tuple[str, AggregateCall]],
    types: Sequence[pa.DataType],
) -> list[Array]:
    """Aggregate, for every point, the slices of its key between two times."""
    flows = [flow for flow in flows if len(flow)]
    partials: dict[Partial, Held] = {}
    some = np.zeros(keys.size, np.bool_)
    for flow in flows:  # the same rows in each, with partials of their own
        rows = merged([flow])
        starts, ends = (_places(rows, keys, bound) for bound in (lows, highs))
        some = ends > starts
        for partial, held in rows.partials.items():
            partials[partial] = held.over_ranges(starts[some], ends[some])
    places = np.cumsum(some) - 1
    at: Array = pa.array(np.where(some, places, 0), mask=~some)
    found = []
    for (_, call), type in zip(outputs, types, strict=True):
        values = (lower(call, partials, type) if flows else pa.array([], type)).take(at)
        found.append(pc.fill_null(values, 0) if call.function in _COUNTS else values)
    return found


def _places(flow: Flow, keys: Int64s, times: Int64s) -> Int64s:
    """Find where in rows sorted by (key, start) those of a key from a time on begin."""
    order = np.argsort(flow.starts_us, kind="stable")  # ranks of times, which never overflow
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    wanted = np.searchsorted(flow.starts_us[order], times, "left")
    rows = flow.keys.astype(np.int64) * (order.size + 1) + ranks
    return np.searchsorted(rows, keys * (order.size + 1) + wanted, "left")
