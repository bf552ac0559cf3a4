"""Sets and sketches as rows: exact distinct values, HyperLogLog registers, quantile buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.aggregates.sketches import HLL_BITS, HLL_REGISTERS, QUANTILE_RELATIVE_ERROR
from weft.engines.spark.partials import Aggregation, Args, SpreadPartial, Types

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

_GAMMA = (1 + QUANTILE_RELATIVE_ERROR) / (1 - QUANTILE_RELATIVE_ERROR)
_RANK_BITS = 64 - HLL_BITS
_ALPHA = 0.7213 / (1 + 1.079 / HLL_REGISTERS)
# Buckets (sign class, exponent) as one number that sorts as they do; exponents stay below 40,000.
_CLASS = 1_000_000


class _Distinct(SpreadPartial):
    """One row per distinct value."""

    def entry(self, args: Args) -> Column:
        return args[0]

    def _lifted(self, args: Args, time: Column) -> Column:
        return F.count(F.lit(1))

    def _combined(self, partial: Column, types: Types) -> Column:
        return F.count(F.lit(1))

    def collapse(self, name: str, entry: Column) -> Aggregation:
        return Aggregation({name: F.count(entry)})


class _HyperLogLog(SpreadPartial):
    """One row per register that is not empty, with its greatest rank."""

    def entry(self, args: Args) -> Column:
        return F.when(args[0].isNotNull(), F.shiftrightunsigned(_hash(args[0]), _RANK_BITS))

    def _lifted(self, args: Args, time: Column) -> Column:
        rest = _hash(args[0]).bitwiseAND(F.lit((1 << _RANK_BITS) - 1))
        digits = F.when(rest == 0, 0).otherwise(F.length(F.bin(rest)))
        return F.max(F.lit(_RANK_BITS + 1) - digits)

    def _combined(self, partial: Column, types: Types) -> Column:
        return F.max(partial)

    def collapse(self, name: str, entry: Column) -> Aggregation:
        used, weight = f"{name}_used", f"{name}_weight"
        counted = F.when(entry.isNotNull(), F.pow(F.lit(2.0), -F.col(name)))
        return Aggregation(
            {used: F.count(entry), weight: F.coalesce(F.sum(counted), F.lit(0.0))},
            _estimate(F.lit(HLL_REGISTERS) - F.col(used), F.col(weight)),
        )


def _hash(value: Column) -> Column:
    return F.xxhash64(value)


def _estimate(empty: Column, weight: Column) -> Column:
    """Estimate as `weft.aggregates.sketches.hll_estimate` does, from the registers in use."""
    m = float(HLL_REGISTERS)
    raw = F.lit(_ALPHA * m * m) / (weight + empty)
    linear = F.lit(m) * F.ln(F.lit(m) / F.when(empty > 0, empty))
    small = (raw <= 2.5 * m) & (empty > 0)
    return F.round(F.when(small, linear).otherwise(raw)).cast("bigint")


class _Quantiles(SpreadPartial):
    """One row per logarithmic bucket, with the number of its values."""

    numeric = True

    def entry(self, args: Args) -> Column:
        value = args[0].cast("double")
        exponent = F.ceil(F.ln(F.abs(value)) / F.ln(F.lit(_GAMMA)))
        finite = F.when(value > 0, exponent + _CLASS).otherwise(-exponent - _CLASS)
        infinite = F.when(value > 0, 2 * _CLASS).otherwise(-2 * _CLASS)
        return (
            F.when(value.isNull(), None)
            .when(F.isnan(value), 3 * _CLASS)
            .when(value == 0, 0)
            .when(F.abs(value) == float("inf"), infinite)
            .otherwise(finite)
            .cast("int")
        )

    def _lifted(self, args: Args, time: Column) -> Column:
        return F.count(F.lit(1))

    def _combined(self, partial: Column, types: Types) -> Column:
        return F.sum(partial)

    def collapse(self, name: str, entry: Column) -> Aggregation:
        buckets = f"{name}_buckets"
        pair = F.struct(entry.alias("bucket"), F.col(name).alias("n"))
        return Aggregation(
            {buckets: F.collect_list(F.when(entry.isNotNull(), pair))},
            F.array_sort(F.col(buckets)),
        )


def quantile_at(buckets: Column, rank: float) -> Column:
    """Return the middle of the bucket at a rank, as `weft.aggregates.sketches.quantile_of` does."""
    zero = F.lit(0).cast("bigint")
    total = F.aggregate(buckets, zero, lambda n, b: n + b["n"])
    place = F.floor(F.lit(rank) * (total - 1)).cast("bigint")
    start = F.struct(place.alias("left"), F.lit(None).cast("int").alias("bucket"))
    found = F.aggregate(
        buckets,
        start,
        lambda a, b: F.struct(
            (a["left"] - b["n"]).alias("left"),
            F.when(a["left"] >= 0, b["bucket"]).otherwise(a["bucket"]).alias("bucket"),
        ),
    )
    return _bucket_value(found["bucket"])


def _bucket_value(bucket: Column) -> Column:
    size = F.lit(2 / (_GAMMA + 1)) * F.pow(F.lit(_GAMMA), F.abs(bucket) - _CLASS)
    return (
        F.when(bucket.isNull(), None)
        .when(bucket == 0, 0.0)
        .when(bucket == 3 * _CLASS, float("nan"))
        .when(bucket == 2 * _CLASS, float("inf"))
        .when(bucket == -2 * _CLASS, float("-inf"))
        .otherwise(F.when(bucket > 0, size).otherwise(-size))
    )


SPREAD: Mapping[str, SpreadPartial] = {
    "distinct": _Distinct(),
    "hll": _HyperLogLog(),
    "quantiles": _Quantiles(),
}
