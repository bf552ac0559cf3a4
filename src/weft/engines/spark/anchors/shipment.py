"""Points and events on their way to executors: one frame of rows, under names of our own.

Spark computes keys, times and arguments. Columns of the points go along as they are; a column that
is needed twice, as a key or an argument, is sent once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DoubleType, FloatType

from weft.aggregates import AggregateCall, Partial
from weft.engines.local.anchors.rolling_rows import EVENT, TIME
from weft.engines.spark.session import spark_schema
from weft.engines.spark.sql.timestamps import micros_of
from weft.engines.spark.versions import VARIANTS
from weft.expression import column
from weft.window.trailing import TrailingRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

    from weft.plan import Scan
    from weft.plan.anchors import FeaturePlan, Trail

SIDE = "side"
POINT = 0  # the side of points; the events of source n are on side n + 1


@dataclass(frozen=True)
class Shipment:
    """Rows of points and events, and what an executor finds in which column."""

    frame: DataFrame
    keys: tuple[str, ...]
    payload: tuple[str, ...]  # where each column of the points is that is handed on
    trails: tuple[tuple[int, ...], ...]  # of each source of events, by their places in the plan
    arguments: tuple[Mapping[str, str], ...]  # of each source, expression -> column
    names: tuple[str, ...] | None = None  # of the points' columns that are handed on, if not all

    def handed(self, points: DataFrame) -> list[StructField]:
        """Return the columns of the points that are handed on."""
        names = points.columns if self.names is None else self.names
        return [points.schema[name] for name in names]

    def own(self, plan: FeaturePlan, source: int) -> list[Trail]:
        """Return the trails of a source, with arguments by the names of columns."""
        names = self.arguments[source]
        found = [plan.trails[at] for at in self.trails[source]]
        return [
            replace(
                trail,
                partials=tuple(Partial(p.kind, _renamed(p.args, names)) for p in trail.partials),
            )
            for trail in found
        ]

    def call(self, call: AggregateCall, source: int) -> AggregateCall:
        """Return a call with arguments by the names of columns."""
        names = self.arguments[source]
        return AggregateCall(call.function, _renamed(call.args, names), call.parameters)


def _renamed(args: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names[text] for text in args)


def _arguments(plan: FeaturePlan, trails: Sequence[int]) -> tuple[str, ...]:
    partials = [p for at in trails for p in plan.trails[at].partials]
    return tuple(dict.fromkeys(arg for p in partials for arg in p.args))


def _key(text: str, type: DataType) -> str:
    """Spell a key so that equal keys are the same bits: 0.0 and -0.0 are one."""
    if not _is_real(type):
        return text
    zero = f"CAST(0 AS {type.simpleString()})"
    return f"CASE WHEN {text} = 0 THEN {zero} ELSE {text} END"


@dataclass
class _Columns:
    """Columns that are selected from one frame, each expression once."""

    names: dict[str, str] = field(default_factory=dict)

    def name(self, text: str, prefix: str) -> str:
        if text not in self.names:
            self.names[text] = f"{prefix}{len(self.names)}"
        return self.names[text]

    def select(self, frame: DataFrame) -> DataFrame:
        return frame.select(*(F.expr(text).alias(name) for text, name in self.names.items()))


def rolling_shipment(plan: FeaturePlan, data: DataFrame, handed: Sequence[str]) -> Shipment:
    """Send the rows of a table, which are points and events at once; hand some columns on.

    Rows come as they are; `clustered` brings those of a key together.
    """
    ((scan, keys, own),) = plan.scopes
    assert scan.time is not None
    columns = _Columns()
    payload = [columns.name(column(name), "p") for name in handed]
    plain = {column(f.name): f.dataType for f in data.schema}
    types = {text: data.selectExpr(f"{text} AS k").schema[0].dataType for _, text in keys}
    key_names = tuple(columns.name(_key(text, type), "k") for text, type in types.items())
    kept = None if scan.where is None else f"coalesce({scan.where}, false)"
    arguments = {}
    for text in _arguments(plan, own):
        # An argument of a row that the filter leaves out is not computed: it might fail.
        guarded = text if kept is None or text in plain else f"CASE WHEN {kept} THEN {text} END"
        arguments[text] = columns.name(guarded, "a")
    columns.names[micros_of(column(scan.time), plain[column(scan.time)], scan.time)] = TIME
    if kept is not None:
        columns.names[kept] = EVENT
    frame = columns.select(data)
    return Shipment(frame, key_names, tuple(payload), (own,), (arguments,), tuple(handed))


def as_of_shipment(
    plan: FeaturePlan,
    points: DataFrame,
    scopes: Sequence[tuple[Scan, Sequence[tuple[str, str]], tuple[int, ...]]],
    types: Sequence[pa.DataType],
    sources: Mapping[str, DataFrame],
) -> Shipment:
    """Send points and the events of several sources that meet them by the same keys."""
    key_types = [f.dataType for f in spark_schema(_named(types))]
    names = [name for name, _ in scopes[0][1]]
    keys = tuple(f"k{i}" for i in range(len(names)))
    sent = {
        name: key
        for name, key, type in zip(names, keys, key_types, strict=True)
        if points.schema[name].dataType == type and not _is_real(type)
    }
    payload = tuple(sent.get(f.name, f"p{i}") for i, f in enumerate(points.schema))
    carried = {f"p{i}": f for i, f in enumerate(points.schema) if f.name not in sent}
    arguments = tuple(
        {text: f"a{s}_{i}" for i, text in enumerate(_arguments(plan, own))}
        for s, (_, _, own) in enumerate(scopes)
    )
    events = [
        _events(scan, by, args, sources[scan.source], keys, key_types)
        for (scan, by, _), args in zip(scopes, arguments, strict=True)
    ]
    argument_types = {f.name: f.dataType for one in events for f in one.schema if f.name[0] == "a"}
    at = plan.points.at
    time = micros_of(column(at), points.schema[at].dataType, at)
    frame = points.select(
        *(
            F.expr(_key(column(n), t)).cast(t).alias(k)
            for n, t, k in zip(names, key_types, keys, strict=True)
        ),
        F.expr(time).alias(TIME),
        F.lit(POINT).cast("tinyint").alias(SIDE),
        *(F.col(column(f.name)).alias(own) for own, f in carried.items()),
        *(F.lit(None).cast(type).alias(name) for name, type in argument_types.items()),
    )
    for side, one in enumerate(events, start=POINT + 1):
        known = set(one.columns)
        frame = frame.union(
            one.select(
                *(F.col(k) for k in (*keys, TIME)),
                F.lit(side).cast("tinyint").alias(SIDE),
                *(F.lit(None).cast(f.dataType).alias(own) for own, f in carried.items()),
                *(
                    F.col(name) if name in known else F.lit(None).cast(type).alias(name)
                    for name, type in argument_types.items()
                ),
            )
        )
    return Shipment(frame, keys, payload, tuple(own for _, _, own in scopes), arguments)


def _events(
    scan: Scan,
    by: Sequence[tuple[str, str]],
    arguments: Mapping[str, str],
    source: DataFrame,
    keys: Sequence[str],
    key_types: Sequence[DataType],
) -> DataFrame:
    """Compute what executors read of a source; events without a time are dropped."""
    assert scan.time is not None
    name = column(scan.time)
    kept = source.where(f"{name} IS NOT NULL")
    if scan.where is not None:
        kept = kept.where(scan.where)
    time = micros_of(name, source.schema[scan.time].dataType, scan.time)
    return kept.select(
        *(
            F.expr(_key(text, t)).cast(t).alias(k)
            for (_, text), t, k in zip(by, key_types, keys, strict=True)
        ),
        F.expr(time).alias(TIME),
        *(F.expr(text).alias(own) for text, own in arguments.items()),
    )


def clustered(plan: FeaturePlan, shipment: Shipment) -> Shipment:
    """Bring the rows of each key together, in the order of time."""
    keys, frame = shipment.keys, shipment.frame
    together = frame.repartition(*keys) if keys else frame.repartition(1)
    order = dict.fromkeys((*keys, TIME, *tie_columns(plan, frame)))
    return replace(shipment, frame=together.sortWithinPartitions(*order))


def tie_columns(plan: FeaturePlan, frame: DataFrame) -> tuple[str, ...]:
    """Name the columns that decide about the order of one instant, where that matters.

    A DataFrame has no order of its own, so values decide: those of all columns that have one.
    """
    by_order = any(
        isinstance(trail.window, TrailingRows)
        or not all(p.laws().commutative for p in trail.partials)
        for trail in plan.trails
    )
    return tuple(f.name for f in frame.schema if by_order and _has_order(f.dataType))


def _has_order(type: DataType) -> bool:
    return isinstance(type, AtomicType) and not isinstance(type, VARIANTS)


def _is_real(type: DataType) -> bool:
    return isinstance(type, FloatType | DoubleType)


def _named(types: Sequence[pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(f"k{i}", type) for i, type in enumerate(types)])
