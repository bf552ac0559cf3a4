"""Partials as plain columns that anyone can read, and back: what a slice store keeps in its files.

    count_rows, count        a number
    sum                      of integers a number, of decimals a decimal; of doubles `sum` and
                             `rest`, which add up to more digits than one double has
    moments                  `n`, `mean` and `m2`, the squared distances from the mean added up;
                             those of pairs and of higher order as well, by the same names
    product, min, max        the value
    bit_*, bool_*            the value
    first, last              `at` (microseconds since 1970 UTC) and `value`
    min_by, max_by           `by`, `at` and `value`
    distinct                 the list of distinct values
    values, bag, set, tally  the list of values, each with its `count`
    quantiles                the list of logarithmic buckets, each with its `count`
    hll                      the list of HyperLogLog registers that are set, each with its `rank`
    a user's own             plain values as JSON text, never a pickle

NULL is what no value was seen for; lists are empty then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.aggregates import Partial
from weft.aggregates.sketches import HLL_REGISTERS
from weft.engines.local.partials.bag_kernels import RANKS
from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import (
    Held,
    InTimeOrder,
    KernelPartials,
    LimbSums,
    ObjectPartials,
)
from weft.engines.local.partials.decimals import decimals_of, integers_of
from weft.engines.local.partials.kinds import LOCAL_KINDS
from weft.engines.local.partials.lift import from_spark
from weft.engines.local.state.custom_partials import NO_PICKLES, read_partials, written_partials
from weft.engines.local.values.arrow import Array, pc
from weft.engines.local.values.coding import Listed, listed_column
from weft.errors import InternalError
from weft.kernels.compensated import rounded
from weft.kernels.partials import Partials, operation_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.kernels.partials import Bools, Int64s

_WIDEST = 38  # digits of a decimal that every reader has


def column_of_partials(partial: Partial, partials: Mapping[Partial, Held]) -> Array:
    """Write the partials of one kind as a column; the others tell where there were no values."""
    held = partials[partial].settled()
    match held:
        case KernelPartials():
            return _column_of_kernel(partial, held, _some(partial, partials))
        case LimbSums():
            some = _some(partial, partials)
            if held.scale is not None:
                every = np.ones(len(held), np.bool_) if some is None else some
                return decimals_of(held, every, pa.decimal128(_WIDEST, held.scale))
            return pa.array(integers_of(held), mask=None if some is None else ~some)
        case Bags():
            return _column_of_bags(partial, held)
        case ObjectPartials():
            return written_partials([*held.objects], NO_PICKLES)[0]
        case _:
            raise InternalError(f"no column of {type(held).__name__}")


def partials_of_column(partial: Partial, column: Array, starts_us: Int64s) -> Held:
    """Read a column that `column_of_partials` wrote.

    >>> both = partials_of_column(Partial("min", ("x",)), pa.array([3, None]), np.array([0, 5]))
    >>> both.over_ranges(np.array([0]), np.array([2])).fields[0].tolist()
    [3]
    """
    if partial.kind in _BAGS:
        return _bags_of_column(partial, column)
    if partial.kind == "sum" and pa.types.is_struct(column.type):
        total, rest = (
            field.fill_null(0.0).to_numpy(zero_copy_only=False) for field in column.flatten()
        )
        made = Partials("sum", operation_of("sum", "float64"), (total, rest))
        return KernelPartials(made, (None, None))
    if partial.kind in LOCAL_KINDS:
        return from_spark(partial, column, starts_us)
    monoid = partial.monoid
    if not monoid.laws.commutative:
        monoid = InTimeOrder(monoid)
    return ObjectPartials(monoid, read_partials(column, {"form": "plain"}, NO_PICKLES))


_BAGS = ("distinct", "values", "quantiles", "hll", "bag", "set", "tally")


def _some(partial: Partial, partials: Mapping[Partial, Held]) -> Bools | None:
    """Tell which rows have seen a value, by the count that such partials always go with."""
    counted = partials.get(Partial("count", partial.args))
    if not isinstance(counted, KernelPartials):
        return None
    some: Bools = counted.fields[0] > 0
    return None if some.all() else some


def _column_of_kernel(partial: Partial, held: KernelPartials, some: Bools | None) -> Array:
    fields, present = held.fields, held.present
    match partial.kind:
        case "count_rows" | "count":
            return pa.array(fields[0])
        case "sum":
            totals = rounded(*fields)
            with np.errstate(invalid="ignore"):
                rests = fields[1] - (totals - fields[0])
            rests = np.where(np.isfinite(rests) & np.isfinite(totals), rests, 0.0)
            return _struct({"sum": pa.array(totals), "rest": pa.array(rests)}, some)
        case "moments" | "comoments" | "shape_moments":
            parts = zip(LOCAL_KINDS[partial.kind].spark_fields, fields, strict=True)
            return _struct({name: pa.array(field) for name, field in parts}, None)
        case "first" | "last":
            return _struct({"at": pa.array(fields[0]), "value": _decoded(held, 1)}, present)
        case "min_by" | "max_by":
            by, value = _decoded(held, 0), _decoded(held, 2)
            return _struct({"by": by, "at": pa.array(fields[1]), "value": value}, present)
        case "bit_xor":  # whose identity is a value like any other
            found = _decoded(held, 0)
            return found if some is None else pc.if_else(pa.array(some), found, None)
        case _:
            return _decoded(held, 0)


def _decoded(held: KernelPartials, place: int) -> Array:
    coding, numbers = held.codings[place], held.fields[place]
    if coding is None:
        missing = None if held.present is None else ~held.present
        return pa.array(numbers, mask=missing)
    return coding.decode(numbers, held.present)


def _struct(fields: Mapping[str, Array], valid: Bools | None) -> Array:
    missing = None if valid is None else pa.array(~valid)
    made: Array = pa.StructArray.from_arrays([*fields.values()], [*fields], mask=missing)
    return made


def _column_of_bags(partial: Partial, bags: Bags) -> Array:
    offsets: Array = pa.array(bags.offsets, pa.int32())
    if partial.kind == "hll":
        return _column_of_registers(bags)
    assert isinstance(bags.coding, Listed)
    values = bags.coding.decode(bags.items, None)
    if partial.kind == "distinct":
        return pa.ListArray.from_arrays(offsets, values)
    name = "bucket" if partial.kind == "quantiles" else "value"
    counted = _struct({name: values, "count": pa.array(bags.counts)}, None)
    return pa.ListArray.from_arrays(offsets, counted)


def _column_of_registers(bags: Bags) -> Array:
    """Keep of every register the greatest rank: items are register * RANKS + rank."""
    rows = np.repeat(np.arange(len(bags)), np.diff(bags.offsets))
    order = np.lexsort((bags.items, rows))
    rows, items = rows[order], bags.items[order]
    registers = items // RANKS
    last = np.ones(rows.size, np.bool_)
    last[:-1] = (rows[1:] != rows[:-1]) | (registers[1:] != registers[:-1])
    counts = np.bincount(rows[last], minlength=len(bags))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    kept = items[last]
    fields = {
        "register": pa.array(kept // RANKS, pa.int16()), "rank": pa.array(kept % RANKS, pa.int8())
    }  # fmt: skip
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _struct(fields, None))


def _bags_of_column(partial: Partial, column: Any) -> Bags:
    offsets = np.array(column.offsets.to_numpy(), np.int64)
    inside = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    offsets -= offsets[0]
    counts = np.ones(len(inside), np.int64)
    if partial.kind == "hll":
        register, rank = (np.array(f.cast(pa.int64()).to_numpy()) for f in inside.flatten())
        return Bags(offsets, register * RANKS + rank, counts, HLL_REGISTERS * RANKS, None)
    values: Array = inside
    if partial.kind != "distinct":
        values, counted = inside.flatten()
        counts = np.array(counted.to_numpy(), np.int64)
    numbers, coding = listed_column(values)
    if pc.any(pc.is_null(values)).as_py():
        raise InternalError("a bag of values holds NULL")
    return Bags(offsets, numbers.values, counts, len(coding.values), coding)
