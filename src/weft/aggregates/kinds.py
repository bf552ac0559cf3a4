"""The kinds of partials, closed: every engine has one table with a row for each of them.

A custom aggregate brings a kind of its own, which engines run through its monoid.
"""

from __future__ import annotations

from typing import Literal, NewType, get_args

PartialKind = Literal[
    "count_rows", "count", "sum", "moments", "comoments", "shape_moments", "product", "min", "max",
    "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "first", "last", "min_by", "max_by",
    "distinct", "values", "quantiles", "hll", "bag", "set", "tally",
    "hll_sketch_agg", "hll_union_agg", "theta_sketch_agg", "theta_union_agg",
    "kll_sketch_agg_bigint", "kll_sketch_agg_float", "kll_sketch_agg_double",
    "kll_merge_agg_bigint", "kll_merge_agg_float", "kll_merge_agg_double",
    "approx_top_k_accumulate", "approx_top_k_combine", "bitmap_construct_agg", "bitmap_or_agg",
    "bitmap_and_agg",
]  # fmt: skip
# Kinds whose partials grow with what they have seen: sets, lists, sketches.
GROWING_KINDS = frozenset[str]({"distinct", "values", "quantiles", "hll"})
PARTIAL_KINDS: tuple[PartialKind, ...] = get_args(PartialKind)
CustomKind = NewType("CustomKind", str)


def partial_kind(name: str) -> PartialKind | CustomKind:
    """Read the name of a kind back, one of weft's or a user's own.

    >>> partial_kind("sum"), partial_kind("spread_of_my_own")
    ('sum', 'spread_of_my_own')
    """
    return name if name in PARTIAL_KINDS else CustomKind(name)
