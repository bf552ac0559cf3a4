"""Features over whole tables: rows are sorted once, and windows are ranges of positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.features import feature_schema, key_types
from weft.engines.local.anchors.order import LEAST, order_of
from weft.engines.local.anchors.trails import Anchored, trail_columns
from weft.engines.local.expressions.evaluate import evaluate
from weft.engines.local.values.arrow import pc
from weft.engines.local.values.frame import Frame
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import Timed, read_scan, read_times
from weft.errors import InternalError
from weft.expression import column, columns_of
from weft.kernels.parallel import over_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools, Int64s
    from weft.plan import Scan
    from weft.plan.anchors import FeaturePlan
    from weft.query import Keys

Scalar = TypeVar("Scalar", bound=np.generic)


def run_features(plan: FeaturePlan, sources: Mapping[str, pa.Table]) -> pa.Table:
    """Return the feature columns alone, a row per point, in the order of the points."""
    schemas = {name: table.schema for name, table in sources.items()}
    schema = feature_schema(plan, schemas)
    types = dict(zip(schema.names, schema.types, strict=True))
    columns: dict[str, Array] = {}
    for scan, keys, own in plan.scopes:
        keyed = key_types(plan, scan, keys, schemas)
        read = _rolling if plan.points.rolling else _as_of
        scope = read(plan, scan, keys, keyed, sources)
        places = {at: place for place, at in enumerate(own)}
        outputs = [(name, places[at], call) for name, at, call in plan.outputs_of(own)]
        trails = [plan.trails[at] for at in own]
        found = trail_columns(scope.anchored, trails, outputs, scope.argument, types)
        names = [name for name, _, _ in outputs]
        columns |= zip(names, scope.unsorted(found), strict=True)
    return pa.table({name: columns[name] for name in schema.names})


@dataclass(frozen=True, slots=True, eq=False)
class SortedScope:
    """The events and anchors of one scope in order, and how to get back to the points' order."""

    anchored: Anchored
    argument: Callable[[str], Array]
    anchor_order: Int64s | None

    def unsorted(self, columns: list[Array]) -> list[Array]:
        """Bring columns from the order of the anchors to that of the points."""
        order = self.anchor_order
        if order is None:
            return columns
        places = np.empty(order.size, np.int64)
        places[order] = np.arange(order.size)
        at: Array = pa.array(places)
        return over_parts(lambda values: _in_places(values, at), columns, order.size)


def _as_of(
    plan: FeaturePlan,
    scan: Scan,
    keys: Keys,
    types: tuple[pa.DataType, ...],
    sources: Mapping[str, pa.Table],
) -> SortedScope:
    timed = read_scan(scan, sources[scan.source])
    names = [name for name, _ in keys]
    points = Frame.of(sources[plan.points.source], dict.fromkeys((*names, plan.points.at)))
    codes = KeyCodes(len(keys))
    pairs = list(zip(keys, types, strict=True))
    events = codes.encode(
        [timed.argument(text).cast(type) for (_, text), type in pairs], timed.times_us.size
    )
    order = order_of(events, timed.times_us)
    anchors = codes.encode(
        [evaluate(column(name), points).cast(type) for (name, _), type in pairs], points.rows
    )
    at_us, _ = _times(points, plan.points.at)
    anchor_order = order_of(anchors, at_us)
    anchored = Anchored(
        _taken(events, order),
        _taken(timed.times_us, order),
        _taken(anchors, anchor_order),
        _taken(at_us, anchor_order),
    )
    return SortedScope(anchored, _arguments(timed, order), anchor_order)


def _rolling(
    plan: FeaturePlan,
    scan: Scan,
    keys: Keys,
    types: tuple[pa.DataType, ...],
    sources: Mapping[str, pa.Table],
) -> SortedScope:
    if scan.time is None:
        raise InternalError(f"the time column of {scan.source!r} was not looked up")
    filtered = () if scan.where is None else columns_of(scan.where)
    names = dict.fromkeys((*scan.columns, scan.time, *filtered))
    rows = Frame.of(sources[scan.source], names)
    at_us, kept = _times(rows, scan.time)
    if scan.where is not None:
        passes = pc.fill_null(evaluate(scan.where, rows).cast(pa.bool_()), False)
        kept = kept & passes.to_numpy(zero_copy_only=False)
    codes = KeyCodes(len(keys))
    pairs = zip(keys, types, strict=True)
    anchors = codes.encode(
        [evaluate(text, rows).cast(type) for (_, text), type in pairs], rows.rows
    )
    order = order_of(anchors, at_us)
    every = bool(kept.all())
    timed = Timed(rows if every else rows.filter(pa.array(kept)), at_us[kept], 0)
    sorted_kept = _taken(kept, order)
    anchor_keys, anchor_times = _taken(anchors, order), _taken(at_us, order)
    stops = np.cumsum(sorted_kept, dtype=np.int64)
    event_order = order
    if order is not None and not every:
        event_order = (np.cumsum(kept) - 1)[order[sorted_kept]]
    anchored = Anchored(
        anchor_keys if every else anchor_keys[sorted_kept],
        anchor_times if every else anchor_times[sorted_kept],
        anchor_keys,
        anchor_times,
        stops - sorted_kept,
        stops,
    )
    return SortedScope(anchored, _arguments(timed, event_order), order)


def _times(frame: Frame, name: str) -> tuple[Int64s, Bools]:
    """Return times, the least there is where they are NULL, and which are not NULL."""
    times, valid = read_times(frame.columns[name], name)
    if valid is None:
        return times, np.ones(times.size, np.bool_)
    return np.where(valid, times, LEAST), valid


def _taken(values: npt.NDArray[Scalar], order: Int64s | None) -> npt.NDArray[Scalar]:
    return values if order is None else values.take(order)


def _in_places(values: Array, at: Array) -> Array:
    """Take values by places, which are a permutation and need no check."""
    found: Array = pc.take(values, at, boundscheck=False)
    return found


def _arguments(timed: Timed, order: Int64s | None) -> Callable[[str], Array]:
    """Evaluate arguments once each, in the order of the events."""
    if order is None:
        return timed.argument
    at: Array = pa.array(order)
    found: dict[str, Array] = {}

    def argument(text: str) -> Array:
        if text not in found:
            found[text] = _in_places(timed.argument(text), at)
        return found[text]

    return argument
