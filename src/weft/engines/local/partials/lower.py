"""From partials to results: every aggregate function over whole columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.aggregates import Partial
from weft.aggregates.moments import (
    PAIR_STATISTICS,
    SHAPE_STATISTICS,
    Comoments,
    ShapeMoments,
    Statistic,
)
from weft.aggregates.sketches import HLL_REGISTERS, bucket_value
from weft.aggregates.spark_sketches import MERGED_BY, refuse
from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import Held, KernelPartials, LimbSums, ObjectPartials
from weft.engines.local.partials.decimals import averaged_decimals, decimals_of, integers_of
from weft.engines.local.partials.lift import lift, row_partials
from weft.engines.local.values.arrow import recast
from weft.engines.local.values.coding import Listed
from weft.errors import DataError
from weft.kernels.compensated import rounded

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall, PartialKind
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools

Parts = tuple[Held, ...]
Lower = Callable[[Parts, tuple[float, ...], pa.DataType], Any]
_LONGEST = 2**31 - 1  # values in one column of lists
_HIGH_RANKS = 20  # up to here sums of 2**-rank and beyond it are exact in one double each


def lower(call: AggregateCall, partials: Mapping[Partial, Held], type: pa.DataType) -> Array:
    """Compute the results of one call, of the type the schema promises; NULL type means any."""
    parts = tuple(partials[partial] for partial in call.partials)
    function = LOWER.get(call.function, _custom)
    if function is _custom:
        return _custom(parts, call.parameters, type, call)
    return typed(function(parts, call.parameters, type), type)


def typed(array: Array, type: pa.DataType) -> Array:
    """Bring an array to the promised type."""
    if array.type == type or pa.types.is_null(type):
        return array
    if pa.types.is_dictionary(type):
        return array.cast(type.value_type).dictionary_encode().cast(type)
    return recast(array, type)


def _kernel(held: Held) -> KernelPartials:
    assert isinstance(held, KernelPartials)
    return held


def counts_of(held: Held) -> npt.NDArray[np.int64]:
    """Return the counts of a partial that counts events or values."""
    found: npt.NDArray[np.int64] = _kernel(held).fields[0]
    return found


def _masked(values: npt.NDArray[Any], valid: Bools | None) -> Array:
    return pa.array(values, mask=None if valid is None else ~valid)


def _count(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    return pa.array(counts_of(parts[0]))


def _sum(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    total, some = parts[0], counts_of(parts[1]) > 0
    if isinstance(total, LimbSums):
        if total.scale is not None:
            return decimals_of(total, some, type)
        return _masked(integers_of(total), some)
    return _masked(rounded(*_kernel(total).fields), some)


def _average(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    total, counts = parts[0], counts_of(parts[1])
    if isinstance(total, LimbSums) and total.scale is not None:
        assert isinstance(type, pa.Decimal128Type)
        return averaged_decimals(total, counts, type)
    if isinstance(total, LimbSums):
        sums = sum(limb * 2.0 ** (32 * at) for at, limb in enumerate(total.limbs))
    else:
        sums = rounded(*_kernel(total).fields)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _masked(sums / counts, counts > 0)


def _from_moments(*, sample: bool, root: bool) -> Lower:
    def function(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
        counts, _, m2 = _kernel(parts[0]).fields
        freedom = counts - sample
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = m2 / freedom
            values = np.where(variance >= 0, np.sqrt(variance), variance) if root else variance
        return _masked(values, freedom > 0)

    return function


def _statistic(statistic: Statistic, fields: type[Comoments] | type[ShapeMoments]) -> Lower:
    def function(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
        moments = fields(*_kernel(parts[0]).fields)
        with np.errstate(all="ignore"):
            values = statistic.value(moments, np.sqrt)
        return _masked(np.broadcast_to(values, moments.n.shape), statistic.defined(moments))

    return function


def _field(place: int) -> Lower:
    """Lower a picked value: the field at a place, decoded."""

    def function(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
        held = _kernel(parts[0])
        coding = held.codings[place]
        if coding is None:
            return _masked(held.fields[place], held.present)
        return coding.decode(held.fields[place], held.present)

    return function


def _xor(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    if pa.types.is_null(type):
        return pa.nulls(len(parts[0]))
    return _masked(_kernel(parts[0]).fields[0], counts_of(parts[1]) > 0)


def _bags(held: Held) -> Bags:
    assert isinstance(held, Bags)
    return held


def _distinct(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    return pa.array(_bags(parts[0]).distinct_counts())


def _gathered(*, once: bool) -> Lower:
    """Write every value of a row out, as often as it is there or once."""

    def function(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
        bags = _bags(parts[0]).settled()
        values, offsets = bags.values(), bags.offsets
        if not once:
            values = values.take(pa.array(np.repeat(np.arange(bags.items.size), bags.counts)))
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(bags.counts)])[offsets]
        if offsets[-1] > _LONGEST:
            raise DataError(
                f"lists of {offsets[-1]} values in all are more than one column holds",
                hint="ask for fewer windows or keys at a time",
            )
        places = pa.array(offsets, pa.int32())
        return pa.ListArray.from_arrays(places, values)

    return function


def _of_distinct(finish: Lower, kinds: tuple[PartialKind, ...]) -> Lower:
    """Lower a function of the values that a row has, each once, from partials made of them."""

    def function(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
        bags = _bags(parts[0]).settled()
        values, times = bags.values(), np.zeros(bags.items.size, np.int64)
        events = [
            row_partials(lift(Partial(k, ("value",)), (values,), times), times) for k in kinds
        ]
        bounds = bags.offsets[:-1], bags.offsets[1:]
        return finish(tuple(e.over_ranges(*bounds) for e in events), parameters, type)

    return function


def _mode(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    """Pick the item that is there most often; of several, the least."""
    bags = _bags(parts[0]).settled()
    lengths = np.diff(bags.offsets)
    rows = np.repeat(np.arange(lengths.size), lengths)
    order = np.lexsort((bags.items, -bags.counts, rows))
    some = lengths > 0
    places = np.zeros(lengths.size, np.int64)
    places[some] = order[bags.offsets[:-1][some]]
    return bags.values().take(pa.array(places, mask=~some))


# Linear counting by the number of empty registers, as `hll_estimate` has it to the last bit.
_LINEAR = np.array(
    [0] + [round(HLL_REGISTERS * math.log(HLL_REGISTERS / e)) for e in range(1, HLL_REGISTERS + 1)]
)


def _estimate(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    histograms = _bags(parts[0]).register_histograms(HLL_REGISTERS)
    powers = 2.0 ** -np.arange(histograms.shape[1])
    near = histograms[:, :_HIGH_RANKS] @ powers[:_HIGH_RANKS]
    harmonic = near + histograms[:, _HIGH_RANKS:] @ powers[_HIGH_RANKS:]
    m = HLL_REGISTERS
    raw = 0.7213 / (1 + 1.079 / m) * m * m / harmonic
    empty = histograms[:, 0]
    return pa.array(
        np.where((raw <= 2.5 * m) & (empty > 0), _LINEAR[empty], np.rint(raw).astype(np.int64))
    )


def _near_rank(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    bags = _bags(parts[0])
    low, _, _ = bags.at_share(parameters[0])
    assert isinstance(bags.coding, Listed)
    buckets = bags.coding.values.to_pylist()
    # A bucket is sign * 2**32 + exponent; the exponent may be negative, so signs are rounded to.
    middles = np.array([bucket_value(_bucket(code)) for code in buckets] or [0.0])
    return _masked(middles[low], low >= 0)


def _bucket(code: int) -> tuple[int, int]:
    sign = (code + (1 << 31)) >> 32
    return sign, code - (sign << 32)


def _percentile(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    bags = _bags(parts[0])
    low, high, rests = bags.at_share(parameters[0] if parameters else 0.5)
    assert isinstance(bags.coding, Listed)
    listed = bags.coding.values.cast(pa.float64(), safe=False)
    values = listed.to_numpy(zero_copy_only=False) if len(listed) else np.zeros(1)
    below, above = values[low], values[high]
    with np.errstate(invalid="ignore"):
        between = below + (above - below) * rests
    return _masked(np.where(below == above, below, between), low >= 0)


def _refused(parts: Parts, parameters: tuple[float, ...], type: pa.DataType) -> Array:
    refuse("the aggregate")


def _custom(
    parts: Parts,
    parameters: tuple[float, ...],
    type: pa.DataType,
    call: AggregateCall | None = None,
) -> Array:
    """Call the user's own lower on each row."""
    (held,) = parts
    assert isinstance(held, ObjectPartials)
    assert call is not None
    lower, parameters = call.aggregate.lower, call.parameters  # looked up once, not by row
    told: Array = pa.array([lower((partial,), parameters) for partial in held.finished()])
    return told


LOWER: dict[str, Lower] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "var": _from_moments(sample=True, root=False),
    "var_pop": _from_moments(sample=False, root=False),
    "stddev": _from_moments(sample=True, root=True),
    "stddev_pop": _from_moments(sample=False, root=True),
    "min": _field(0),
    "max": _field(0),
    "first": _field(1),
    "last": _field(1),
    "min_by": _field(2),
    "max_by": _field(2),
    "product": _field(0),
    "bool_and": _field(0),
    "bool_or": _field(0),
    "bit_and": _field(0),
    "bit_or": _field(0),
    "bit_xor": _xor,
    "count_distinct": _distinct,
    "collect_list": _gathered(once=False),
    "collect_set": _gathered(once=True),
    "sum_distinct": _of_distinct(_sum, ("sum", "count")),
    "avg_distinct": _of_distinct(_average, ("sum", "count")),
    "mode": _mode,
    **dict.fromkeys(MERGED_BY, _refused),
    **{name: _statistic(one, ShapeMoments) for name, one in SHAPE_STATISTICS.items()},
    **{name: _statistic(one, Comoments) for name, one in PAIR_STATISTICS.items()},
    "approx_count_distinct": _estimate,
    "approx_percentile": _near_rank,
    "percentile": _percentile,
    "median": _percentile,
}
