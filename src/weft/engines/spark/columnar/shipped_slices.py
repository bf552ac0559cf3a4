"""Slices on their way to the kernels: aggregated by Catalyst, read as partials by the operator.

Events are hash-aggregated once per key and slice, before anything is moved. What Python gets is a
row of partials per slice, which stands in the operator's state as if the operator had cut it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.cost.strategies import slices_to_ship
from weft.engines.local.partials.lift import from_spark
from weft.engines.local.values.frame import plain
from weft.engines.local.windows.flow import Flow
from weft.engines.spark.native.aggregation import aggregated
from weft.engines.spark.native.events import TIME
from weft.engines.spark.sql.fan_out import START
from weft.engines.spark.sql.kinds import SPARK_KINDS
from weft.engines.spark.sql.slice_bounds import slice_start
from weft.engines.spark.text_rows import TextRows
from weft.errors import InternalError
from weft.plan import Roll, Slice
from weft.plan.nodes import ends_read_open
from weft.window import Edges

if TYPE_CHECKING:
    import pyarrow as pa

    from weft.engines.spark.columnar.hosted_operator import Host
    from weft.engines.spark.columnar.shipping import Shipment
    from weft.engines.spark.text_rows import Rows


def base_of(shipment: Shipment) -> Slice | Roll:
    """Return the node whose slices are shipped."""
    base = slices_to_ship(shipment.scope.nodes)
    if base is None:
        raise InternalError("a scope whose events cannot be shipped as slices")
    return base


def slices_of(shipment: Shipment) -> Rows:
    """Aggregate events to one row per key and slice: keys, `start`, and a column per partial."""
    base = base_of(shipment)
    if isinstance(base, Slice):
        start = slice_start(TIME, base.edges, ends_read_open(base, shipment.scope.nodes))
    else:
        start = slice_start(TIME, Edges.of([base.window]))
    made = {
        f"p{i}": SPARK_KINDS[partial.kind].lift(f"p{i}", partial.args, TIME)
        for i, partial in enumerate(base.partials)
    }
    rows = TextRows(shipment.frame).selectExpr("*", f"{start} AS {START}")
    return aggregated(rows, (*shipment.keys, START), made)


def add_slices(host: Host, rows: pa.Table) -> int:
    """Add a chunk of slices to an operator, and return the time they reach."""
    operator = host.operator
    (asked,) = operator.sliced
    columns = {name: plain(rows.column(name)) for name in rows.column_names}
    keys = operator.codes.encode([columns[name] for name, _ in operator.keys], rows.num_rows)
    starts_us = columns[START].to_numpy()
    partials = {
        partial: from_spark(partial, columns[f"p{i}"], starts_us) for i, partial in enumerate(asked)
    }
    flow = Flow(keys, starts_us, None, partials).take(np.lexsort((starts_us, keys)))
    operator.add_slices(0, flow)
    return int(starts_us[-1])
