"""Slices of fewer keys on their way to the kernels: Catalyst makes them of slices of more keys.

Events are aggregated once, under the finest keys. What comes of it is kept, and serves every scope
whose keys are among these: events are read and hashed once, however many key sets there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.cost.strategies import slices_to_ship
from weft.engines.spark.columnar.shipped_slices import base_of
from weft.engines.spark.native.aggregation import aggregated
from weft.engines.spark.sql.fan_out import START
from weft.engines.spark.sql.kinds import SPARK_KINDS
from weft.engines.spark.sql.slice_bounds import slice_start
from weft.engines.spark.text_rows import taken
from weft.errors import InternalError
from weft.plan import Scan, Slice
from weft.plan.regrouping import cut_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from weft.engines.spark.columnar.shipping import Shipment
    from weft.plan.planned_scope import PlannedScope


def slices_shared(scope: PlannedScope) -> Slice | None:
    """Return the slices of events that a scope ships, or regroups to those it ships; None if other.

    Scopes with the same ones can be computed from a single aggregation of events.
    """
    if not scope.regroups:
        base = slices_to_ship(scope.nodes)
        return base if isinstance(base, Slice) else None
    cut = cut_scope(scope)
    feeders = {*cut.feeders.values()}
    if len(feeders) != 1 or slices_to_ship(cut.scope.nodes) is None:
        return None
    (feeder,) = feeders
    # In batch, windows cut begins-only slices where they end, and a scope knows its own alone.
    direct = isinstance(feeder.input, Scan) and feeder.edges.slicing != "begins"
    return feeder if direct else None


def finest_of(scopes: Sequence[PlannedScope]) -> PlannedScope | None:
    """Return the scope that ships the slices which the others regroup, if one does.

    >>> finest_of(()) is None
    True
    """
    return next((scope for scope in scopes if not scope.regroups), None)


def regrouped(rows: DataFrame, feeder: Slice, scope: PlannedScope, shipment: Shipment) -> DataFrame:
    """Combine rows of slices to one per key and slice of a scope, which is cut from its feeder.

    Like those of events: keys, `start`, and a column per partial.
    """
    own = slices_to_ship(scope.nodes)
    if not isinstance(own, Slice):
        raise InternalError("a scope that regroups no slices")
    keys = [f"k{feeder.keys.index(key)} AS k{i}" for i, key in enumerate(own.keys)]
    columns = [f"p{feeder.partials.index(p)} AS p{i}" for i, p in enumerate(own.partials)]
    types = {field.name: field.dataType for field in shipment.frame.schema}
    made = {}
    for i, partial in enumerate(base_of(shipment).partials):
        read = tuple(types[name] for name in partial.args)
        made[f"p{i}"] = SPARK_KINDS[partial.kind].combine(f"p{i}", read)
    copies = rows.selectExpr(*keys, f"{slice_start(START, own.edges)} AS {START}", *columns)
    return taken(aggregated(copies, (*shipment.keys, START), made))
