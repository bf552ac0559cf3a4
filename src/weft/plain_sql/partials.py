"""Partials in plain SQL: columns that any engine can lift, combine and lower.

Where the types of columns are known, Spark's text is that of the native strategy. Where they are
not, it is what every engine reads alike; what would then depend on a type ends the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from weft.aggregates.spark_sketches import MERGED_BY
from weft.errors import UnsupportedError, require

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import DataType

    from weft.aggregates import AggregateCall, Partial
    from weft.engines.spark.sql.partials import Aggregation, NativePartial

    Types = Mapping[str, DataType]  # of expressions over events

Dialect = Literal["spark", "duckdb"]


@dataclass(frozen=True, slots=True)
class Columns:
    """Aggregates by name, and what is kept of them; without `kept`, each as it is."""

    aggregates: Mapping[str, str]
    kept: Mapping[str, str] | None = None

    @property
    def finished(self) -> Mapping[str, str]:
        """The columns of the partial, each an expression over the aggregates."""
        return self.kept if self.kept is not None else {name: name for name in self.aggregates}


@dataclass(frozen=True, slots=True)
class PlainPartial:
    """One column; `{x}` and `{by}` are arguments, `{t}` is the event's time, `{p}` the partial."""

    lifted: str
    combined: str

    def lift(self, name: str, args: tuple[str, ...], time: str) -> Columns:
        """Return the aggregates over events, by column name."""
        values = dict(zip(("x", "by"), args, strict=False))
        return Columns({name: self.lifted.format(t=time, **values)})

    def combine(self, name: str) -> Columns:
        """Return the aggregates over partials, by column name."""
        return Columns({name: self.combined.format(p=name)})


class _PlainMoments(PlainPartial):
    """Count, mean and squared distances, in three columns."""

    def lift(self, name: str, args: tuple[str, ...], time: str) -> Columns:
        value = f"CAST({args[0]} AS DOUBLE)"
        return Columns(
            {
                f"{name}_n": f"COUNT({value})",
                f"{name}_mean": f"AVG({value})",
                f"{name}_m2": f"VAR_POP({value}) * COUNT({value})",
            }
        )

    def combine(self, name: str) -> Columns:
        return Columns(
            {
                f"{name}_n": f"CAST(SUM({name}_n) AS BIGINT)",
                f"{name}_mean": f"MAX({name}_centre)",
                f"{name}_m2": f"SUM({name}_m2 + {name}_n * POWER({name}_mean - {name}_centre, 2))",
            }
        )


@dataclass(frozen=True, slots=True)
class _OfSpark(PlainPartial):
    """A partial as the native strategy writes it."""

    native: NativePartial
    types: tuple[DataType, ...]

    def lift(self, name: str, args: tuple[str, ...], time: str) -> Columns:
        return _columns(name, self.native.lift(name, args, time))

    def combine(self, name: str) -> Columns:
        return _columns(name, self.native.combine(name, self.types))


def _columns(name: str, made: Aggregation) -> Columns:
    texts = {column: text for column, text in made.aggregates.items() if isinstance(text, str)}
    return Columns(texts, {name: made.result or name})


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
# What Spark alone has functions for, and one column each.
_SPARKS = frozenset({"comoments", "shape_moments", "bag", "set", *MERGED_BY})
_MERGED_SETS = "array_distinct(flatten(collect_list({p})))"
_REAL = ("float", "double")
_TELL = "give weft.rewrite the table as a DataFrame: "


def plain_of(partial: Partial, dialect: Dialect, types: Types | None) -> PlainPartial:
    """Return what a partial is in a dialect, or refuse it."""
    if dialect == "spark" and partial.kind == "distinct":
        return PlainPartial(f"collect_set({_one_of_each(partial, types)})", _MERGED_SETS)
    plain = PLAIN_KINDS.get(partial.kind)
    typed = types is not None and (plain is not None or partial.kind in _SPARKS)
    if dialect == "spark" and (typed or (plain is None and partial.kind in _SPARKS)):
        require("pyspark", "spark", "an aggregate in plain SQL of Spark")
        from pyspark.sql.types import LongType

        from weft.engines.spark.sql.kinds import native_of

        known = tuple((types or {}).get(text, LongType()) for text in partial.reads)
        return _OfSpark("", "", native_of(partial), known)
    if plain is None:
        raise UnsupportedError(
            f"{partial} cannot be written as plain SQL",
            hint="run the statement with weft.sql, which has every aggregate",
        )
    return plain


def _one_of_each(partial: Partial, types: Types | None) -> str:
    """Write a value so that those which are equal are in a set once: zeros have two signs."""
    if types is None:
        told = f"{_TELL}COUNT(DISTINCT) of a real number depends on its type"
        real = ", ".join(f"'{kind}'" for kind in _REAL)
        return f"CASE WHEN typeof({{x}}) IN ({real}) THEN raise_error('{told}') ELSE {{x}} END"
    kind = types[partial.reads[0]].simpleString()
    return "CAST({x} AS DOUBLE) + 0D" if kind in _REAL else "{x}"


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
_BY_TYPE = frozenset({"sum_distinct", "avg_distinct"})


def lowered(
    call: AggregateCall,
    partials: tuple[str, ...],
    dialect: Dialect = "duckdb",
    types: Types | None = None,
) -> str:
    """Return the result of a call, given the columns of its partials.

    >>> from weft import agg
    >>> lowered(agg.avg("x"), ("p0", "p1"))
    'p0 / NULLIF(p1, 0)'
    """
    if dialect == "spark" and call.function == "count_distinct":
        return f"CAST(size({partials[0]}) AS BIGINT)"
    own = _RULES.get(call.function, "{0}").format(*partials)
    portable = all(PLAIN_KINDS.get(partial.kind) is not None for partial in call.partials)
    if dialect != "spark" or (types is None and portable):
        if dialect == "spark" and call.function in ("avg", "sum"):
            told = f"{_TELL}{call.function.upper()} of decimals has digits by their type"
            decimal = f"typeof({partials[0]}) LIKE 'decimal%'"
            return f"CASE WHEN {decimal} THEN raise_error('{told}') ELSE {own} END"
        return own
    if types is None and call.function in _BY_TYPE:
        raise UnsupportedError(
            f"the type of {call} follows that of its column, which is not known",
            hint="give weft.rewrite the table as a DataFrame of Spark",
        )
    from weft.engines.spark.sql.lower import Lowered, lower

    argument = types[call.reads[0]] if types is not None and call.args else None
    return lower(Lowered(partials, call, argument, ()))
