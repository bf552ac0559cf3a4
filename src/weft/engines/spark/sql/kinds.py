"""What each kind of partial means to Catalyst: one row a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.aggregates.spark_sketches import MERGED_BY
from weft.engines.spark.sql.moment_partials import Comoments, ShapeMoments
from weft.engines.spark.sql.partials import (
    Formula,
    Gathered,
    Moments,
    NativePartial,
    Product,
    Ranked,
    Sketch,
    SpreadPartial,
    Sum,
)
from weft.engines.spark.sql.spread_partials import RANK, Distinct, HyperLogLog, Quantiles, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import Partial

# The value of the least or greatest (time, value), and (by, time, value).
_AT = "CASE WHEN {x} IS NOT NULL THEN named_struct('at', {t}, 'value', {x}) END"
_BY = "CASE WHEN {by} IS NOT NULL THEN named_struct('by', {by}, 'at', {t}, 'value', {x}) END"
_TRUTH = "cast({x} AS boolean)"
_COUNTED = "cast({x} IS NOT NULL AS bigint)"
# A count is never NULL, and Spark's schema of a sum would say that it may be.
_COUNTS = "coalesce(sum({p}), 0L)"

SPARK_KINDS: Mapping[str, NativePartial] = {
    "count_rows": Formula("count(1)", _COUNTS, _COUNTED, added=True),
    "count": Formula("count({x})", _COUNTS, _COUNTED, added=True),
    "sum": Sum("sum({x})", "sum({p})", "{x}", added=True),
    "moments": Moments(),
    "comoments": Comoments(),
    "shape_moments": ShapeMoments(),
    "product": Product(),
    "min": Formula("min({x})", "min({p})", "{x}"),
    "max": Formula("max({x})", "max({p})", "{x}"),
    "bit_and": Formula("bit_and({x})", "bit_and({p})", "{x}"),
    "bit_or": Formula("bit_or({x})", "bit_or({p})", "{x}"),
    "bit_xor": Formula("bit_xor({x})", "bit_xor({p})"),  # counted twice, bits are gone
    "bool_and": Formula(f"min({_TRUTH})", "min({p})", _TRUTH),
    "bool_or": Formula(f"max({_TRUTH})", "max({p})", _TRUTH),
    "first": Formula(f"min({_AT})", "min({p})"),
    "last": Formula(f"max({_AT})", "max({p})"),
    "min_by": Formula(f"min({_BY})", "min({p})"),
    "max_by": Formula(f"max({_BY})", "max({p})"),
    "distinct": Distinct("count(1)", "count(1)"),
    "values": Ranked.at(()),
    "quantiles": Quantiles("count(1)", "sum({p})"),
    "hll": HyperLogLog(f"max({RANK})", "max({p})"),
    "bag": Gathered("collect_list({x})", "flatten(collect_list({p}))"),
    "set": Gathered("collect_set({x})", "array_distinct(flatten(collect_list({p})))"),
    "tally": Tally("count(1)", "sum({p})"),
    **{name: Sketch(name, merge) for name, merge in MERGED_BY.items()},
}


def native_of(partial: Partial) -> NativePartial:
    """Return what a partial means to Catalyst."""
    native = SPARK_KINDS[partial.kind]
    return native.sized(partial.args[1:]) if isinstance(native, Sketch) else native


def is_spread(partial: Partial) -> bool:
    """Tell whether a partial is kept as rows, one for each entry."""
    return isinstance(SPARK_KINDS.get(partial.kind), SpreadPartial)


def is_holistic(partial: Partial) -> bool:
    """Tell whether a partial is taken from events, for there is nothing to combine."""
    return isinstance(SPARK_KINDS.get(partial.kind), Ranked)
