"""The kinds of partials, closed: every engine has one table with a row for each of them.

A custom aggregate brings a kind of its own, which engines run through its monoid.
"""

from __future__ import annotations

from typing import Literal, NewType, get_args

PartialKind = Literal[
    "count_rows", "count", "sum", "moments", "product", "min", "max", "bit_and", "bit_or",
    "bit_xor", "bool_and", "bool_or", "first", "last", "min_by", "max_by", "distinct", "values",
    "quantiles", "hll",
]  # fmt: skip
PARTIAL_KINDS: tuple[PartialKind, ...] = get_args(PartialKind)
CustomKind = NewType("CustomKind", str)


def partial_kind(name: str) -> PartialKind | CustomKind:
    """Read the name of a kind back, one of weft's or a user's own.

    >>> partial_kind("sum"), partial_kind("spread_of_my_own")
    ('sum', 'spread_of_my_own')
    """
    return name if name in PARTIAL_KINDS else CustomKind(name)
