"""Partials in plain SQL: columns that any engine can lift, combine and lower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.aggregates.spark_sketches import MERGED_BY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import AggregateCall


@dataclass(frozen=True, slots=True)
class PlainPartial:
    """One column; `{x}` and `{by}` are arguments, `{t}` is the event's time, `{p}` the partial."""

    lifted: str
    combined: str

    def lift(self, name: str, args: tuple[str, ...], time: str) -> dict[str, str]:
        """Return the aggregates over events, by column name."""
        values = dict(zip(("x", "by"), args, strict=False))
        return {name: self.lifted.format(t=time, **values)}

    def combine(self, name: str) -> dict[str, str]:
        """Return the aggregates over partials, by column name."""
        return {name: self.combined.format(p=name)}


class _PlainMoments(PlainPartial):
    """Count, mean and squared distances, in three columns."""

    def lift(self, name: str, args: tuple[str, ...], time: str) -> dict[str, str]:
        value = f"CAST({args[0]} AS DOUBLE)"
        return {
            f"{name}_n": f"COUNT({value})",
            f"{name}_mean": f"AVG({value})",
            f"{name}_m2": f"VAR_POP({value}) * COUNT({value})",
        }

    def combine(self, name: str) -> dict[str, str]:
        return {
            f"{name}_n": f"CAST(SUM({name}_n) AS BIGINT)",
            f"{name}_mean": f"MAX({name}_centre)",
            f"{name}_m2": f"SUM({name}_m2 + {name}_n * POWER({name}_mean - {name}_centre, 2))",
        }


_AT = "STRUCT({t} AS at, {x} AS value)"
_BY = "STRUCT({by} AS by, {t} AS at, {x} AS value)"

# None where plain SQL has no form that every engine reads alike.
PLAIN_KINDS: Mapping[str, PlainPartial | None] = {
    "count_rows": PlainPartial("COUNT(*)", "CAST(SUM({p}) AS BIGINT)"),
    "count": PlainPartial("COUNT({x})", "CAST(SUM({p}) AS BIGINT)"),
    "sum": PlainPartial("SUM({x})", "SUM({p})"),
    "min": PlainPartial("MIN({x})", "MIN({p})"),
    "max": PlainPartial("MAX({x})", "MAX({p})"),
    "first": PlainPartial(f"MIN(CASE WHEN {{x}} IS NOT NULL THEN {_AT} END)", "MIN({p})"),
    "last": PlainPartial(f"MAX(CASE WHEN {{x}} IS NOT NULL THEN {_AT} END)", "MAX({p})"),
    "min_by": PlainPartial(f"MIN(CASE WHEN {{by}} IS NOT NULL THEN {_BY} END)", "MIN({p})"),
    "max_by": PlainPartial(f"MAX(CASE WHEN {{by}} IS NOT NULL THEN {_BY} END)", "MAX({p})"),
    "bool_and": PlainPartial("BOOL_AND({x})", "BOOL_AND({p})"),
    "bool_or": PlainPartial("BOOL_OR({x})", "BOOL_OR({p})"),
    "bit_and": PlainPartial("BIT_AND({x})", "BIT_AND({p})"),
    "bit_or": PlainPartial("BIT_OR({x})", "BIT_OR({p})"),
    "bit_xor": PlainPartial("BIT_XOR({x})", "BIT_XOR({p})"),
    "moments": _PlainMoments("", ""),
    **dict.fromkeys(("comoments", "shape_moments", "product", "distinct", "values")),
    **dict.fromkeys(("quantiles", "hll", "bag", "set", "tally", *MERGED_BY)),
}

_RULES: Mapping[str, str] = {
    "avg": "{0} / NULLIF({1}, 0)",
    "var": "CASE WHEN {0}_n > 1 THEN {0}_m2 / ({0}_n - 1) END",
    "var_pop": "CASE WHEN {0}_n > 0 THEN {0}_m2 / {0}_n END",
    "stddev": "CASE WHEN {0}_n > 1 THEN SQRT({0}_m2 / ({0}_n - 1)) END",
    "stddev_pop": "CASE WHEN {0}_n > 0 THEN SQRT({0}_m2 / {0}_n) END",
    "first": "{0}.value",
    "last": "{0}.value",
    "min_by": "{0}.value",
    "max_by": "{0}.value",
}


def lowered(call: AggregateCall, partials: tuple[str, ...]) -> str:
    """Return the result of a call, given the columns of its partials.

    >>> from weft import agg
    >>> lowered(agg.avg("x"), ("p0", "p1"))
    'p0 / NULLIF(p1, 0)'
    """
    return _RULES.get(call.function, "{0}").format(*partials)
