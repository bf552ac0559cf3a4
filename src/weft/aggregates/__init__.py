"""Aggregates: lift, combine, lower, with declared laws."""

from __future__ import annotations

from weft.aggregates import (
    distinct,
    extremes,
    functions,
    gathered,
    moments,
    sketches,
    spark_sketches,
    sums,
)
from weft.aggregates.base import (
    AggregateCall,
    AggregateFunction,
    Monoid,
    Partial,
    aggregate_function,
    decompose,
    function_names,
    monoid,
    monoid_names,
    rows_where,
)
from weft.aggregates.kinds import PARTIAL_KINDS, CustomKind, PartialKind, partial_kind
from weft.aggregates.laws import Laws

# Imported for their registrations.
_REGISTERED = (
    sums, moments, extremes, distinct, sketches, functions, gathered, spark_sketches,
)  # fmt: skip

__all__ = [
    "PARTIAL_KINDS", "AggregateCall", "AggregateFunction", "CustomKind", "Laws", "Monoid",
    "Partial", "PartialKind", "aggregate_function", "decompose", "function_names", "monoid",
    "monoid_names", "partial_kind", "rows_where",
]  # fmt: skip
