"""What each kind of partial means to Catalyst: one row a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.spark.sql.partials import (
    AtTime,
    By,
    Count,
    Moments,
    NativePartial,
    Parity,
    Product,
    Ranked,
    Same,
    SpreadPartial,
    Sum,
    Truth,
)
from weft.engines.spark.sql.spread_partials import Distinct, HyperLogLog, Quantiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import Partial

SPARK_KINDS: Mapping[str, NativePartial] = {
    "count_rows": Count(),
    "count": Count(),
    "sum": Sum(),
    "moments": Moments(),
    "product": Product(),
    "min": Same("min"),
    "max": Same("max"),
    "bit_and": Same("bit_and"),
    "bit_or": Same("bit_or"),
    "bit_xor": Parity("bit_xor"),
    "bool_and": Truth("min"),
    "bool_or": Truth("max"),
    "first": AtTime("min"),
    "last": AtTime("max"),
    "min_by": By("min"),
    "max_by": By("max"),
    "distinct": Distinct(),
    "values": Ranked(()),
    "quantiles": Quantiles(),
    "hll": HyperLogLog(),
}


def is_spread(partial: Partial) -> bool:
    """Tell whether a partial is kept as rows, one for each entry."""
    return isinstance(SPARK_KINDS.get(partial.kind), SpreadPartial)


def is_holistic(partial: Partial) -> bool:
    """Tell whether a partial is taken from events, for there is nothing to combine."""
    return isinstance(SPARK_KINDS.get(partial.kind), Ranked)
