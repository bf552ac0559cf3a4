"""What each kind of partial means on the local engine: one row a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.aggregates.spark_sketches import MERGED_BY
from weft.engines.local.partials import lifts
from weft.kernels.partials import from_itself, pairs_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from weft.engines.local.partials.lifts import LiftKind
    from weft.kernels.grouping.batches import Request
    from weft.kernels.partials import Int64s

    Doubles = npt.NDArray[np.float64]
    # Kernel columns of one event each, of its values, times and request; and such columns, counted
    # so many times each.
    RowColumns = Callable[[Any, Int64s, Request], Any]
    Repeated = Callable[[Any, Int64s], Any]

_SPLIT = 2.0**27 + 1  # cuts a double into two halves whose products are exact


def _alone(values: Any, times_us: Int64s, request: Request) -> Any:
    return values


def _sum_columns(values: Any, times_us: Int64s, request: Request) -> Any:
    return (values, np.zeros(values.size)) if values.dtype.kind == "f" else values


def _moments_columns(values: Any, times_us: Int64s, request: Request) -> Any:
    return np.ones(values.size, np.int64), values, from_itself(values)


def _comoments_columns(values: Any, times_us: Int64s, request: Request) -> Any:
    assert request.by is not None
    return pairs_alone(values, request.by.values)


def _shape_columns(values: Any, times_us: Int64s, request: Request) -> Any:
    off = from_itself(values)
    return np.ones(values.size, np.int64), values, off, off, off


def _timed_columns(values: Any, times_us: Int64s, request: Request) -> Any:
    return times_us, values


def _by_columns(values: Any, times_us: Int64s, request: Request) -> Any:
    assert request.value is not None
    return values, times_us, request.value.values


def _counted_times(columns: Any, times: Int64s) -> Any:
    return columns * times


def _summed_times(columns: Any, times: Int64s) -> Any:
    """Multiply compensated sums; what the product rounds off goes into the correction (Dekker)."""
    if not isinstance(columns, tuple):
        return columns * times
    (totals, corrections), factors = columns, times.astype(np.float64)
    with np.errstate(all="ignore"):
        products = totals * factors
        high, other_high = _high_half(totals), _high_half(factors)
        low, other_low = totals - high, factors - other_high
        lost = (high * other_high - products) + high * other_low + low * other_high
        lost += low * other_low
        lost = np.where(np.isfinite(lost), lost, 0.0)
        return products, corrections * factors + lost


def _high_half(values: Doubles) -> Doubles:
    cut = values * _SPLIT
    return cut - (cut - values)


def _moments_times(columns: Any, times: Int64s) -> Any:
    return columns[0] * times, columns[1], columns[2] * times


def _comoments_times(columns: Any, times: Int64s) -> Any:
    return columns[0] * times, *columns[1:3], *(column * times for column in columns[3:])


def _shape_times(columns: Any, times: Int64s) -> Any:
    return columns[0] * times, columns[1], *(column * times for column in columns[2:])


def _product_times(columns: Any, times: Int64s) -> Any:
    return np.power(columns, times.astype(np.float64))


def _xor_times(columns: Any, times: Int64s) -> Any:
    return np.where(times % 2 == 1, columns, 0)


@dataclass(frozen=True, slots=True)
class LocalKind:
    """One kind: how events become partials of it, and how such partials are read and repeated."""

    lift: LiftKind
    row_columns: RowColumns = _alone
    typed_by: int = 0  # the field whose type the kernel's operation is chosen by
    repeated: Repeated | None = None  # None where a partial combined with itself is the same
    spark_fields: tuple[str, ...] = ()  # of the struct that Catalyst makes of it, as arguments
    spark_time: bool = False  # whether that struct has the event's time as well
    finished: bool = False  # whether what Catalyst makes is a kernel's columns, and no argument


LOCAL_KINDS: Mapping[str, LocalKind] = {
    "count_rows": LocalKind(lifts.lift_rows_counted, repeated=_counted_times, finished=True),
    "count": LocalKind(lifts.lift_counted, repeated=_counted_times, finished=True),
    "sum": LocalKind(lifts.lift_sum, _sum_columns, repeated=_summed_times),
    "moments": LocalKind(
        lifts.lift_doubles(3), _moments_columns, 1, _moments_times, ("n", "mean", "m2"),
        finished=True,
    ),
    "comoments": LocalKind(
        lifts.lift_pairs, _comoments_columns, 1, _comoments_times,
        ("n", "mean_y", "mean_x", "c", "m2_y", "m2_x"), finished=True,
    ),
    "shape_moments": LocalKind(
        lifts.lift_doubles(5), _shape_columns, 1, _shape_times,
        ("n", "mean", "m2", "m3", "m4"), finished=True,
    ),
    "product": LocalKind(lifts.lift_doubles(1), repeated=_product_times),
    "min": LocalKind(lifts.lift_ordered),
    "max": LocalKind(lifts.lift_ordered),
    "bit_and": LocalKind(lifts.lift_bits),
    "bit_or": LocalKind(lifts.lift_bits),
    "bit_xor": LocalKind(lifts.lift_bits, repeated=_xor_times),
    "bool_and": LocalKind(lifts.lift_truth),
    "bool_or": LocalKind(lifts.lift_truth),
    "first": LocalKind(lifts.lift_ordered, _timed_columns, 1, None, ("value",), spark_time=True),
    "last": LocalKind(lifts.lift_ordered, _timed_columns, 1, None, ("value",), spark_time=True),
    "min_by": LocalKind(lifts.lift_by, _by_columns, 0, None, ("value", "by"), spark_time=True),
    "max_by": LocalKind(lifts.lift_by, _by_columns, 0, None, ("value", "by"), spark_time=True),
    "distinct": LocalKind(lifts.lift_bags(lifts.distinct_bag)),
    "values": LocalKind(lifts.lift_bags(lifts.values_bag)),
    "quantiles": LocalKind(lifts.lift_bags(lifts.quantiles_bag)),
    "hll": LocalKind(lifts.lift_bags(lifts.registers_bag)),
    "bag": LocalKind(lifts.lift_bags(lifts.distinct_bag)),
    "set": LocalKind(lifts.lift_bags(lifts.distinct_bag)),
    "tally": LocalKind(lifts.lift_bags(lifts.distinct_bag)),
    **dict.fromkeys(MERGED_BY, LocalKind(lifts.lift_nothing)),
}  # fmt: skip
