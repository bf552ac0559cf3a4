"""From events to partials: which form the partials of each kind take, by the types of arguments.

Kinds that kernels know become requests, which one pass over the events answers together. The
others are lifted event by event into columns, which ranges of events then combine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.aggregates.sketches import HLL_BITS, HLL_REGISTERS, QUANTILE_RELATIVE_ERROR
from weft.engines.local.partials.bag_kernels import RANKS, quantile_buckets
from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import (
    Held,
    InTimeOrder,
    KernelPartials,
    LimbSums,
    ObjectPartials,
)
from weft.engines.local.values.arrow import Array, pc, recast
from weft.engines.local.values.coding import (
    Coding,
    Direct,
    Listed,
    canonical_floats,
    carried,
    listed_column,
    sortable,
)
from weft.engines.local.values.hashes import hashes
from weft.errors import DataError
from weft.kernels.arrow_columns import column_of, validity
from weft.kernels.grouping.batches import Column, Request
from weft.kernels.partials import KINDS, PartialKind, Partials, operation_of
from weft.kernels.ranges.prefix_sums import largest_magnitude

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.aggregates import Partial
    from weft.kernels.partials import Int64s

_LOG_GAMMA = math.log((1 + QUANTILE_RELATIVE_ERROR) / (1 - QUANTILE_RELATIVE_ERROR))
Arguments: TypeAlias = "tuple[Array, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """One partial of a batch of events, before it is aggregated.

    Either `requests` for the kernels, whose answers `finish` takes, or `rows`: a partial per event.
    """

    requests: tuple[Request, ...]
    finish: Callable[[tuple[Partials, ...]], Held]
    rows: Held | None = None

    def row_partials(self, times_us: Int64s) -> Held:
        """Return one partial per event."""
        if self.rows is not None:
            return self.rows
        return self.finish(tuple(lift_rows(request, times_us) for request in self.requests))


def lift(partial: Partial, arguments: Arguments, times_us: Int64s) -> Lifted:
    """Prepare a partial over the argument columns of a batch."""
    kind = partial.kind
    if kind == "sum":
        return _lift_sum(partial, arguments[0])
    if kind in ("min_by", "max_by"):
        return _lift_by(cast("PartialKind", kind), *arguments)
    if kind in ("distinct", "values", "quantiles", "hll"):
        return _of_rows(_BAGS[kind](arguments[0]))
    if kind in KINDS:
        return _lift_plain(kind, arguments)
    return _of_rows(_lift_objects(partial, arguments, times_us))


def _of_rows(rows: Held) -> Lifted:
    return Lifted((), lambda _: rows, rows)


def _lift_plain(kind: PartialKind, arguments: Arguments) -> Lifted:
    if kind == "count_rows":
        return _kernel(Request(kind), (None,))
    (argument,) = arguments
    if kind == "count":
        counted = Column(np.empty(len(argument), np.int8), validity(argument))
        return _kernel(Request(kind, counted), (None,))
    if kind in ("min", "max", "first", "last"):
        column, coding = sortable(argument)
        return _kernel(Request(kind, column), (None, coding) if kind in _TIMED else (coding,))
    if kind in ("bool_and", "bool_or"):
        return _kernel(Request(kind, column_of(truth(argument))), (Direct(pa.bool_()),))
    if kind in ("moments", "product"):
        fields = 3 if kind == "moments" else 1
        return _kernel(Request(kind, column_of(as_doubles(argument))), (None,) * fields)
    return _kernel(Request(kind, column_of(argument)), (Direct(argument.type),))


_TIMED = ("first", "last")


def _kernel(request: Request, codings: tuple[Coding | None, ...]) -> Lifted:
    return Lifted((request,), lambda parts: KernelPartials(parts[0], codings))


def as_doubles(argument: Array) -> Array:
    """Cast numbers to double; decimals and integers round."""
    if pa.types.is_floating(argument.type) and argument.type != pa.float16():
        return argument
    if pa.types.is_boolean(argument.type):
        argument = argument.cast(pa.int8())
    try:
        return argument.cast(pa.float64(), safe=False)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise DataError(
            f"values of type {argument.type} are no numbers", hint="cast the column to double"
        ) from None


def truth(argument: Array) -> Array:
    """Take numbers as booleans: everything but zero is true."""
    if pa.types.is_boolean(argument.type):
        return argument
    if pa.types.is_null(argument.type):
        return argument.cast(pa.bool_())
    return pc.not_equal(argument, pa.scalar(0, argument.type))


def _lift_sum(partial: Partial, argument: Array) -> Lifted:
    if pa.types.is_decimal(argument.type):
        limbs = decimal_limbs(argument)
        return _limbs(limbs, validity(argument), argument.type.scale)
    if pa.types.is_floating(argument.type):
        return _kernel(Request("sum", column_of(argument)), (None, None))
    if pa.types.is_uint64(argument.type):
        return _lift_sum(partial, argument.cast(pa.decimal128(20, 0)))
    if not pa.types.is_integer(argument.type) and not pa.types.is_null(argument.type):
        raise DataError(
            f"{partial} cannot be computed: its values are of type {argument.type}",
            hint="cast the column to numbers",
        )
    column = column_of(recast(argument, pa.int64(), safe=True))
    if largest_magnitude(column.values) * max(len(argument), 1) < 2**63:
        return _limbs((column.values,), column.valid, None)
    return _limbs((column.values & 0xFFFFFFFF, column.values >> 32), column.valid, None)


def _limbs(limbs: tuple[Int64s, ...], valid: Any, scale: int | None) -> Lifted:
    requests = tuple(Request("sum", Column(limb, valid)) for limb in limbs)
    return Lifted(requests, lambda parts: LimbSums(tuple(part.columns for part in parts), scale))


def decimal_limbs(argument: Array) -> tuple[Int64s, ...]:
    """Split the unscaled integers of decimals into limbs of 32 bits, lowest first.

    >>> from decimal import Decimal
    >>> [limb.tolist() for limb in decimal_limbs(pa.array([Decimal("-0.01")]))]
    [[4294967295], [4294967295], [4294967295], [-1]]
    """
    width = argument.type.bit_width // 32
    if width < 4:
        argument, width = argument.cast(pa.decimal128(38, argument.type.scale)), 4
    given = argument.buffers()[1]
    words = np.frombuffer(memoryview(given), np.uint32) if given is not None else np.empty(0, "u4")
    words = words.reshape(-1, width)[argument.offset : argument.offset + len(argument)]
    low = [words[:, at].astype(np.int64) for at in range(width - 1)]
    return (*low, np.ascontiguousarray(words[:, width - 1]).view(np.int32).astype(np.int64))


def _lift_by(kind: PartialKind, value: Array, by: Array) -> Lifted:
    numbers, carried_coding = carried(value)
    column, by_coding = sortable(by)
    request = Request(kind, Column(numbers), column)
    return _kernel(request, (by_coding, None, carried_coding))


def _lift_distinct(argument: Array) -> Bags:
    column, listed = listed_column(argument)
    return Bags.of_values(column.values, column.valid, len(listed.values), listed)


def _lift_values(argument: Array) -> Bags:
    if not (pa.types.is_decimal(argument.type) or pa.types.is_integer(argument.type)):
        argument = canonical_floats(as_doubles(argument))
    return _lift_distinct(argument)


def _lift_quantiles(argument: Array) -> Bags:
    column = column_of(as_doubles(argument))
    buckets = np.empty(column.values.size, np.int64)
    quantile_buckets(column.values, _LOG_GAMMA, buckets)
    used, items = np.unique(buckets, return_inverse=True)
    return Bags.of_values(items, column.valid, used.size, Listed(pa.array(used)))


def _lift_registers(argument: Array) -> Bags:
    hashed = hashes(argument)
    registers = (hashed >> np.uint64(64 - HLL_BITS)).astype(np.int64)
    rest = hashed & np.uint64((1 << (64 - HLL_BITS)) - 1)
    # Fewer than 53 bits are exact in a double, whose exponent is the number of bits.
    _, bits = np.frexp(rest.astype(np.float64))
    ranks = 64 - HLL_BITS - bits.astype(np.int64) + 1
    return Bags.of_values(
        registers * RANKS + ranks, validity(argument), HLL_REGISTERS * RANKS, None
    )


_BAGS: dict[str, Callable[[Any], Bags]] = {
    "distinct": _lift_distinct,
    "values": _lift_values,
    "quantiles": _lift_quantiles,
    "hll": _lift_registers,
}


def _lift_objects(partial: Partial, arguments: Arguments, times_us: Int64s) -> ObjectPartials:
    """Call the user's own lift on each event, with plain Python values."""
    monoid = partial.monoid
    if not monoid.laws.commutative:
        monoid = InTimeOrder(monoid)
    objects = np.empty(times_us.size, object)
    values = zip(*(a.to_pylist() for a in arguments), strict=True)
    for i, (args, time) in enumerate(zip(values, times_us.tolist(), strict=True)):
        objects[i] = monoid.lift(args, time)
    return ObjectPartials(monoid, objects)


def lift_rows(request: Request, times_us: Int64s) -> Partials:
    """Lift every event to a partial of its own, as a kernel would of a slice with one event.

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
    if kind in ("moments", "product"):
        values = values.astype(np.float64, copy=False)
    operation = operation_of(kind, values.dtype.name)
    match kind:
        case "sum" if values.dtype.kind == "f":
            columns: Any = (values, np.zeros(rows))
        case "moments":
            columns = (np.ones(rows, np.int64), values, np.zeros(rows))
        case "first" | "last":
            columns = (times_us, values)
        case "min_by" | "max_by":
            assert request.value is not None
            columns = (values, times_us, request.value.values)
        case _:
            columns = values
    if column.valid is None:
        return Partials(kind, operation, columns)
    identities = operation.columns(rows)
    if isinstance(columns, tuple):
        pairs = zip(columns, identities, strict=True)
        columns = tuple(np.where(column.valid, c, i) for c, i in pairs)
    else:
        columns = np.where(column.valid, columns, identities)
    return Partials(kind, operation, columns, column.valid)
