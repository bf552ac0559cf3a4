"""Types of features: what points and events are compared by, and what each column holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from weft.engines.schema import call_type, check_filter, expression_type, time_type
from weft.errors import DataError
from weft.expression import column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.plan import Scan
    from weft.plan.anchors import FeaturePlan
    from weft.query import Keys


def feature_schema(plan: FeaturePlan, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the columns of the features, with their types; refuse input that does not fit."""
    points = schemas[plan.points.source]
    time_type(points.field(plan.points.at).type, plan.points.at)
    for scan, keys, _ in plan.scopes:
        events = schemas[scan.source]
        assert scan.time is not None
        time_type(events.field(scan.time).type, scan.time)
        check_filter(scan.where, events)
        key_types(plan, scan, keys, schemas)
    return pa.schema(
        [
            pa.field(name, call_type(call, schemas[plan.trails[at].events.source]))
            for name, at, call in plan.features.outputs
        ]
    )


def key_types(
    plan: FeaturePlan, scan: Scan, keys: Keys, schemas: Mapping[str, pa.Schema]
) -> tuple[pa.DataType, ...]:
    """Return the types in which the keys of points and events are compared."""
    events = schemas[scan.source]
    own = [expression_type(text, events) for _, text in keys]
    if plan.points.rolling:
        return tuple(own)
    points = schemas[plan.points.source]
    pairs = zip(keys, own, strict=True)
    return tuple(
        common_type(name, expression_type(column(name), points), type) for (name, _), type in pairs
    )


def common_type(key: str, points: pa.DataType, events: pa.DataType) -> pa.DataType:
    """Return the type that holds the keys of both tables.

    >>> common_type("user", pa.int32(), pa.int64())
    DataType(int64)
    >>> common_type("user", pa.string(), pa.int64())
    Traceback (most recent call last):
    weft.errors.DataError: the key 'user' is of type string in the points and int64 in the events
    hint: cast one of them, such as by={'user': 'CAST(user AS STRING)'}
    """
    points, events = _plain(points), _plain(events)
    if points == events or pa.types.is_null(events):
        return points
    if pa.types.is_null(points):
        return events
    both = (points, events)
    if all(pa.types.is_integer(t) and not pa.types.is_uint64(t) for t in both):
        return pa.int64()
    if all(pa.types.is_floating(t) for t in both):
        return pa.float64()
    raise DataError(
        f"the key {key!r} is of type {points} in the points and {events} in the events",
        hint=f"cast one of them, such as by={{{key!r}: 'CAST({key} AS STRING)'}}",
    )


def wide_type(type: pa.DataType) -> pa.DataType:
    """Return the type that holds every key which keys of this type may be compared with.

    >>> wide_type(pa.int8()), wide_type(pa.float32()), wide_type(pa.large_string())
    (DataType(int64), DataType(double), DataType(string))
    """
    type = _plain(type)
    if pa.types.is_integer(type) and not pa.types.is_uint64(type):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(type) else type


def _plain(type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type):
        return _plain(type.value_type)
    if pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return pa.string()
    if pa.types.is_timestamp(type):
        # Instants are equal whatever zone they are shown in.
        return pa.timestamp("us", None if type.tz is None else "UTC")
    return type
