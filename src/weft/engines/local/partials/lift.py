"""From events to partials: the one door, for every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft.engines.local.partials.columns import KernelPartials
from weft.engines.local.partials.kinds import LOCAL_KINDS
from weft.engines.local.partials.lifts import Arguments, Lifted, lift_objects
from weft.kernels.partials import OF_DOUBLES, Partials, operation_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft.aggregates import Partial
    from weft.engines.local.partials.columns import Held
    from weft.engines.local.values.arrow import Array
    from weft.kernels.grouping.batches import Request
    from weft.kernels.partials import Int64s, KernelKind


def lift(partial: Partial, arguments: Arguments, times_us: Int64s) -> Lifted:
    """Prepare a partial over the argument columns of a batch."""
    kind = LOCAL_KINDS.get(partial.kind)
    if kind is None:  # a user's own, which runs through its monoid
        return lift_objects(partial, arguments, times_us)
    return kind.lift(partial, arguments)


def row_partials(lifted: Lifted, times_us: Int64s) -> Held:
    """Return one partial per event."""
    if lifted.rows is not None:
        return lifted.rows
    return lifted.finish(tuple(lift_rows(request, times_us) for request in lifted.requests))


def lift_rows(request: Request, times_us: Int64s) -> Partials:
    """Lift every event to a partial of its own, as a kernel would of a slice with one event.

    >>> from weft.kernels.grouping.batches import Column, Request
    >>> lift_rows(Request("min", Column.of([4, 2])), np.array([0, 1])).columns.tolist()
    [4, 2]
    """
    kind, column = request.kind, request.counted
    rows = times_us.size
    if column is None:
        return Partials(kind, operation_of(kind, "int64"), np.ones(rows, np.int64))
    if kind == "count":
        counts = np.ones(rows, np.int64) if column.valid is None else column.valid.astype(np.int64)
        return Partials(kind, operation_of(kind, "int64"), counts)
    values: npt.NDArray[Any] = column.values
    if kind in OF_DOUBLES:
        values = values.astype(np.float64, copy=False)
    operation = operation_of(kind, values.dtype.name)
    columns = LOCAL_KINDS[kind].row_columns(values, times_us, request)
    if column.valid is None:
        return Partials(kind, operation, columns)
    identities = operation.columns(rows)
    if isinstance(columns, tuple):
        pairs = zip(columns, identities, strict=True)
        columns = tuple(np.where(column.valid, c, i) for c, i in pairs)
    else:
        columns = np.where(column.valid, columns, identities)
    return Partials(kind, operation, columns, column.valid)


def from_spark(partial: Partial, column: Array, starts_us: Int64s) -> Held:
    """Read a column of partials that Catalyst made as the kernels hold them.

    A partial of most kinds is what an event with its value would be lifted to.

    >>> import pyarrow as pa
    >>> from weft.aggregates import Partial
    >>> counts = from_spark(Partial("count", ("x",)), pa.array([3, 0]), np.array([0, 5]))
    >>> counts.over_ranges(np.array([0]), np.array([2])).fields[0].tolist()
    [3]
    """
    kind = LOCAL_KINDS[partial.kind]
    fields = tuple(_field(column, name) for name in kind.spark_fields) or (column,)
    if kind.finished:
        numbers = tuple(map(_numbers, fields))
        name = cast("KernelKind", partial.kind)
        operation = operation_of(name, numbers[kind.typed_by].dtype.name)
        made = Partials(name, operation, numbers if len(numbers) > 1 else numbers[0])
        return KernelPartials(made, (None,) * len(numbers))
    times_us = _numbers(_field(column, "at").fill_null(0)) if kind.spark_time else starts_us
    return row_partials(lift(partial, fields, times_us), times_us)


def _field(column: Any, name: str) -> Array:
    """Return a field of a struct, NULL where the struct is."""
    found: Array = column.flatten()[column.type.get_field_index(name)]
    return found


def _numbers(column: Array) -> Any:
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False))
