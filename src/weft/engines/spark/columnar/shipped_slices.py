"""Slices on their way to the kernels: aggregated by Catalyst, read as partials by the operator.

Events are hash-aggregated once per key and slice, before anything is moved. What Python gets is a
row of partials per slice, which stands in the operator's state as if the operator had cut it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.cost.strategies import slices_to_ship
from weft.engines.local.partials.columns import KernelPartials
from weft.engines.local.partials.lift import lift
from weft.engines.local.values.frame import plain
from weft.engines.local.windows.flow import Flow
from weft.engines.spark.native.aggregation import aggregated
from weft.engines.spark.native.events import TIME
from weft.engines.spark.sql.fan_out import START
from weft.engines.spark.sql.partials import PARTIALS
from weft.engines.spark.sql.readings import ends_read_open
from weft.engines.spark.sql.slice_bounds import slice_start
from weft.errors import InternalError
from weft.kernels.partials import Partials, operation_of
from weft.plan import Roll, Slice
from weft.window import Edges

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from weft.aggregates import Partial
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.engines.spark.columnar.hosted_operator import Host
    from weft.engines.spark.columnar.shipping import Shipment
    from weft.kernels.partials import Int64s


def base_of(shipment: Shipment) -> Slice | Roll:
    """Return the node whose slices are shipped."""
    base = slices_to_ship(shipment.scope.nodes)
    if base is None:
        raise InternalError("a scope whose events cannot be shipped as slices")
    return base


def slices_of(shipment: Shipment) -> DataFrame:
    """Aggregate events to one row per key and slice: keys, `start`, and a column per partial."""
    base = base_of(shipment)
    if isinstance(base, Slice):
        ends = ends_read_open(base, shipment.scope.nodes) if _begins_only(base) else ()
        start = slice_start(TIME, base.edges, ends)
    else:
        start = slice_start(TIME, Edges.of([base.window]))
    made = {
        f"p{i}": PARTIALS[partial.kind].lift(f"p{i}", partial.args, TIME)
        for i, partial in enumerate(base.partials)
    }
    rows = shipment.frame.selectExpr("*", f"{start} AS {START}")
    return aggregated(rows, (*shipment.keys, START), made)


def _begins_only(base: Slice) -> bool:
    return base.edges.slicing == "begins"


def add_slices(host: Host, rows: pa.Table) -> int:
    """Add a chunk of slices to an operator, and return the time they reach."""
    operator = host.operator
    ((node, base),) = operator.plan.bases.items()
    columns = {name: plain(rows.column(name)) for name in rows.column_names}
    keys = operator.codes.encode([columns[name] for name, _ in operator.keys], rows.num_rows)
    starts_us = columns[START].to_numpy()
    partials = {
        partial: held_of(partial, columns[f"p{i}"], starts_us)
        for i, partial in enumerate(base.partials)
    }
    flow = Flow(keys, starts_us, None, partials).take(np.lexsort((starts_us, keys)))
    operator.runs.setdefault(node, []).append(flow)
    return int(starts_us[-1])


def held_of(partial: Partial, column: Array, starts_us: Int64s) -> Held:
    """Read a column of Catalyst's partials as the kernels hold them.

    A partial of most kinds is what an event with its value would be lifted to.

    >>> import pyarrow as pa
    >>> from weft.aggregates import Partial
    >>> counts = held_of(Partial("count", ("x",)), pa.array([3, 0]), np.array([0, 5]))
    >>> counts.over_ranges(np.array([0]), np.array([2])).fields[0].tolist()
    [3]
    """
    kind = partial.kind
    if kind in ("count", "count_rows"):
        return _kernel(kind, (_numbers(column),))
    if kind == "moments":
        return _kernel(kind, tuple(_numbers(_field(column, f)) for f in ("n", "mean", "m2")))
    if kind in ("first", "last"):
        return _at(partial, (_field(column, "value"),), _field(column, "at"))
    if kind in ("min_by", "max_by"):
        values = (_field(column, "value"), _field(column, "by"))
        return _at(partial, values, _field(column, "at"))
    return lift(partial, (column,), starts_us).row_partials(starts_us)


def _kernel(kind: Any, columns: tuple[Any, ...]) -> KernelPartials:
    operation = operation_of(kind, "float64" if kind == "moments" else "int64")
    made = Partials(kind, operation, columns if len(columns) > 1 else columns[0])
    return KernelPartials(made, (None,) * len(columns))


def _at(partial: Partial, values: tuple[Array, ...], times: Array) -> Held:
    times_us = _numbers(times.fill_null(0))
    return lift(partial, values, times_us).row_partials(times_us)


def _field(column: Any, name: str) -> Array:
    """Return a field of a struct, NULL where the struct is."""
    found: Array = column.flatten()[column.type.get_field_index(name)]
    return found


def _numbers(column: Array) -> Any:
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False))
