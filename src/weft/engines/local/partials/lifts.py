"""From events to partials, one function a family: which form they take by the types of arguments.

Kinds that kernels know become requests, which one pass over the events answers together. The
others are lifted event by event into columns, which ranges of events then combine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from weft.aggregates.sketches import HLL_BITS, HLL_REGISTERS, QUANTILE_RELATIVE_ERROR
from weft.aggregates.spark_sketches import refuse
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
from weft.kernels.ranges.prefix_sums import largest_magnitude

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.aggregates import Partial
    from weft.kernels.partials import Int64s, KernelKind, Partials

_LOG_GAMMA = math.log((1 + QUANTILE_RELATIVE_ERROR) / (1 - QUANTILE_RELATIVE_ERROR))
Arguments: TypeAlias = "tuple[Array, ...]"
LiftKind: TypeAlias = "Callable[[Partial, Arguments], Lifted]"


@dataclass(frozen=True, slots=True, eq=False)
class Lifted:
    """One partial of a batch of events, before it is aggregated.

    Either `requests` for the kernels, whose answers `finish` takes, or `rows`: a partial per event.
    """

    requests: tuple[Request, ...]
    finish: Callable[[tuple[Partials, ...]], Held]
    rows: Held | None = None


def _of_rows(rows: Held) -> Lifted:
    return Lifted((), lambda _: rows, rows)


def lift_rows_counted(partial: Partial, arguments: Arguments) -> Lifted:
    """Count rows; there is no argument."""
    return _kernel(Request("count_rows"), (None,))


def lift_counted(partial: Partial, arguments: Arguments) -> Lifted:
    """Count values that are not NULL."""
    counted = Column(np.empty(len(arguments[0]), np.int8), validity(arguments[0]))
    return _kernel(Request("count", counted), (None,))


def lift_ordered(partial: Partial, arguments: Arguments) -> Lifted:
    """Order values of any type by codes; the first and last by time as well."""
    column, coding = sortable(arguments[0])
    codings = (None, coding) if partial.kind in ("first", "last") else (coding,)
    return _kernel(Request(_kernel_kind(partial), column), codings)


def lift_truth(partial: Partial, arguments: Arguments) -> Lifted:
    """Take numbers as booleans."""
    column = column_of(truth(arguments[0]))
    return _kernel(Request(_kernel_kind(partial), column), (Direct(pa.bool_()),))


def lift_doubles(fields: int) -> LiftKind:
    """Return a lift over doubles into partials of so many fields."""

    def lift(partial: Partial, arguments: Arguments) -> Lifted:
        column = column_of(as_doubles(arguments[0]))
        return _kernel(Request(_kernel_kind(partial), column), (None,) * fields)

    return lift


def lift_pairs(partial: Partial, arguments: Arguments) -> Lifted:
    """Take two columns as doubles; a pair with a NULL does not count."""
    y, x = (column_of(as_doubles(argument)) for argument in arguments)
    valid = y.valid if x.valid is None else x.valid if y.valid is None else x.valid & y.valid
    request = Request(_kernel_kind(partial), Column(y.values, valid), Column(x.values, valid))
    return _kernel(request, (None,) * 6)


def lift_bits(partial: Partial, arguments: Arguments) -> Lifted:
    """Take integers as they are."""
    (argument,) = arguments
    return _kernel(Request(_kernel_kind(partial), column_of(argument)), (Direct(argument.type),))


def _kernel_kind(partial: Partial) -> KernelKind:
    return cast("KernelKind", partial.kind)


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


def lift_sum(partial: Partial, arguments: Arguments) -> Lifted:
    """Sum exactly: integers and decimals in limbs, doubles with their rounding errors."""
    (argument,) = arguments
    if pa.types.is_decimal(argument.type):
        limbs = decimal_limbs(argument)
        return _limbs(limbs, validity(argument), argument.type.scale)
    if pa.types.is_floating(argument.type):
        return _kernel(Request("sum", column_of(argument)), (None, None))
    if pa.types.is_uint64(argument.type):
        return lift_sum(partial, (argument.cast(pa.decimal128(20, 0)),))
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


def lift_by(partial: Partial, arguments: Arguments) -> Lifted:
    """Carry a value along with what it is ordered by."""
    value, by = arguments
    numbers, carried_coding = carried(value)
    column, by_coding = sortable(by)
    request = Request(_kernel_kind(partial), Column(numbers), column)
    return _kernel(request, (by_coding, None, carried_coding))


def distinct_bag(argument: Array) -> Bags:
    """Return a bag per event with its value, which keeps its type."""
    column, listed = listed_column(argument)
    return Bags.of_values(column.values, column.valid, len(listed.values), listed)


def values_bag(argument: Array) -> Bags:
    """Return a bag per event with its number."""
    if not (pa.types.is_decimal(argument.type) or pa.types.is_integer(argument.type)):
        argument = canonical_floats(as_doubles(argument))
    return distinct_bag(argument)


def quantiles_bag(argument: Array) -> Bags:
    """Return a bag per event with its logarithmic bucket."""
    column = column_of(as_doubles(argument))
    buckets = np.empty(column.values.size, np.int64)
    quantile_buckets(column.values, _LOG_GAMMA, buckets)
    used, items = np.unique(buckets, return_inverse=True)
    return Bags.of_values(items, column.valid, used.size, Listed(pa.array(used)))


def registers_bag(argument: Array) -> Bags:
    """Return a bag per event with its HyperLogLog register and rank."""
    hashed = hashes(argument)
    registers = (hashed >> np.uint64(64 - HLL_BITS)).astype(np.int64)
    rest = hashed & np.uint64((1 << (64 - HLL_BITS)) - 1)
    # Fewer than 53 bits are exact in a double, whose exponent is the number of bits.
    _, bits = np.frexp(rest.astype(np.float64))
    ranks = 64 - HLL_BITS - bits.astype(np.int64) + 1
    return Bags.of_values(
        registers * RANKS + ranks, validity(argument), HLL_REGISTERS * RANKS, None
    )


def lift_bags(make: Callable[[Array], Bags]) -> LiftKind:
    """Return a lift of every event into a bag of its own."""
    return lambda _, arguments: _of_rows(make(arguments[0]))


def lift_nothing(partial: Partial, arguments: Arguments) -> Lifted:
    """Refuse a sketch that Spark alone makes."""
    refuse(partial.kind)


def lift_objects(partial: Partial, arguments: Arguments, times_us: Int64s) -> Lifted:
    """Call the user's own lift on each event, with plain Python values."""
    monoid = partial.monoid
    if not monoid.laws.commutative:
        monoid = InTimeOrder(monoid)
    objects = np.empty(times_us.size, object)
    values = zip(*(a.to_pylist() for a in arguments), strict=True)
    for i, (args, time) in enumerate(zip(values, times_us.tolist(), strict=True)):
        objects[i] = monoid.lift(args, time)
    return _of_rows(ObjectPartials(monoid, objects))
