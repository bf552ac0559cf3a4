"""Sketches of Spark's own, which Spark alone makes and merges.

Each is a binary value, or a struct of them, that functions of Spark read: `hll_sketch_estimate`,
`kll_sketch_get_quantile_bigint` and others. Here they are kinds that share; other engines refuse.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from weft.aggregates.base import AggregateFunction, Monoid, register_function, register_monoid
from weft.aggregates.kinds import partial_kind
from weft.aggregates.laws import Laws
from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each aggregate of events, and the aggregate that puts its results together.
MERGED_BY: Mapping[str, str] = MappingProxyType(
    {
        "hll_sketch_agg": "hll_union_agg",
        "hll_union_agg": "hll_union_agg",
        "theta_sketch_agg": "theta_union_agg",
        "theta_union_agg": "theta_union_agg",
        "kll_sketch_agg_bigint": "kll_merge_agg_bigint",
        "kll_sketch_agg_float": "kll_merge_agg_float",
        "kll_sketch_agg_double": "kll_merge_agg_double",
        "kll_merge_agg_bigint": "kll_merge_agg_bigint",
        "kll_merge_agg_float": "kll_merge_agg_float",
        "kll_merge_agg_double": "kll_merge_agg_double",
        "approx_top_k_accumulate": "approx_top_k_combine",
        "approx_top_k_combine": "approx_top_k_combine",
        "bitmap_construct_agg": "bitmap_or_agg",
        "bitmap_or_agg": "bitmap_or_agg",
        "bitmap_and_agg": "bitmap_and_agg",
    }
)


def refuse(kind: str) -> NoReturn:
    """Say that Spark alone computes a kind."""
    raise UnsupportedError(
        f"{kind} is a sketch of Spark's own, which no other engine makes",
        hint="run it on Spark, or use approx_count_distinct or approx_percentile",
    )


class _SketchOfSpark(Monoid):
    """A sketch that is nothing but its name here."""

    laws = Laws(commutative=True)
    grows = True

    def lift(self, args: tuple[Any, ...], time_us: int) -> Any:
        """Refuse."""
        refuse(self.name)

    def combine(self, a: Any, b: Any) -> Any:
        """Refuse."""
        refuse(self.name)


for _name in MERGED_BY:
    register_monoid(type(_name, (_SketchOfSpark,), {"name": _name}))
    register_function(
        AggregateFunction(
            _name, (partial_kind(_name),), accepts="anything", result="any", arity=(1, 2)
        )
    )
