"""Partials as Catalyst columns: how events are lifted into them and how they are combined.

Every partial is one column. Fixed-width ones are chosen wherever there is a choice, because
Spark hash-aggregates only those and sorts for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, NumericType

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

    from weft.aggregates import Partial

Args = tuple["Column", ...]
Types = tuple[DataType, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Aggregate expressions by column name, and what is made of them afterwards.

    Without a `result` the only aggregate is the partial itself.
    """

    aggregates: Mapping[str, Column]
    result: Column | None = None


class NativePartial:
    """One kind of partial; events are grouped by key and start, nothing else."""

    numeric: ClassVar[bool] = False

    def lift(self, name: str, args: Args, time: Column) -> Aggregation:
        """Fold events into the partial."""
        return Aggregation({name: self._lifted(args, time)})

    def combine(self, name: str, types: Types) -> Aggregation:
        """Fold partials into one."""
        return Aggregation({name: self._combined(F.col(name), types)})

    def _lifted(self, args: Args, time: Column) -> Column:
        raise NotImplementedError

    def _combined(self, partial: Column, types: Types) -> Column:
        raise NotImplementedError


class _Count(NativePartial):
    def _lifted(self, args: Args, time: Column) -> Column:
        return F.count(args[0] if args else F.lit(1))

    def _combined(self, partial: Column, types: Types) -> Column:
        return F.sum(partial)


class _Sum(NativePartial):
    numeric = True

    def _lifted(self, args: Args, time: Column) -> Column:
        return F.sum(args[0])

    def _combined(self, partial: Column, types: Types) -> Column:
        if isinstance(types[0], DecimalType):
            # A sum of sums would ask for ten more digits once again.
            return F.sum(partial).cast(sum_type(types[0]))
        return F.sum(partial)


class _Extreme(NativePartial):
    """The least or the greatest of what is picked from an event; NULL is skipped."""

    def __init__(self, *, greatest: bool) -> None:
        self._pick = F.max if greatest else F.min

    def _lifted(self, args: Args, time: Column) -> Column:
        return self._pick(args[0])

    def _combined(self, partial: Column, types: Types) -> Column:
        return self._pick(partial)


class _AtTime(_Extreme):
    """`first` and `last`: the value of the least or greatest (time, value)."""

    def _lifted(self, args: Args, time: Column) -> Column:
        event = F.struct(time.alias("at"), args[0].alias("value"))
        return self._pick(F.when(args[0].isNotNull(), event))


class _By(_Extreme):
    """`min_by` and `max_by`: the value of the least or greatest (by, time, value)."""

    def _lifted(self, args: Args, time: Column) -> Column:
        value, by = args
        event = F.struct(by.alias("by"), time.alias("at"), value.alias("value"))
        return self._pick(F.when(by.isNotNull(), event))


class _Truth(_Extreme):
    def _lifted(self, args: Args, time: Column) -> Column:
        return self._pick(args[0].cast("boolean"))


class _Product(NativePartial):
    numeric = True

    def _lifted(self, args: Args, time: Column) -> Column:
        return F.product(args[0].cast("double"))

    def _combined(self, partial: Column, types: Types) -> Column:
        return F.product(partial)


class _Bits(NativePartial):
    numeric = True

    def __init__(self, function: str) -> None:
        self._function = function

    def _lifted(self, args: Args, time: Column) -> Column:
        return F.call_function(self._function, args[0])

    def _combined(self, partial: Column, types: Types) -> Column:
        return F.call_function(self._function, partial)


class _Moments(NativePartial):
    """Count, mean and squared distances; merged pairwise, since sums of squares cancel digits."""

    numeric = True

    def lift(self, name: str, args: Args, time: Column) -> Aggregation:
        value = args[0].cast("double")
        n, mean, variance = f"{name}_n", f"{name}_mean", f"{name}_variance"
        return Aggregation(
            {n: F.count(value), mean: F.avg(value), variance: F.var_pop(value)},
            F.struct(
                F.col(n).alias("n"),
                F.coalesce(F.col(mean), F.lit(0.0)).alias("mean"),
                F.coalesce(F.col(variance) * F.col(n), F.lit(0.0)).alias("m2"),
            ),
        )

    def combine(self, name: str, types: Types) -> Aggregation:
        parts = f"{name}_parts"
        nothing = F.struct(
            F.lit(0).cast("bigint").alias("n"), F.lit(0.0).alias("mean"), F.lit(0.0).alias("m2")
        )
        found = F.when(F.col(f"{name}.n") > 0, F.col(name))
        return Aggregation(
            {parts: F.collect_list(found)}, F.aggregate(F.col(parts), nothing, _merged_moments)
        )


def _merged_moments(a: Column, b: Column) -> Column:
    """Merge as Chan, Golub & LeVeque do."""
    n = a["n"] + b["n"]
    delta = b["mean"] - a["mean"]
    return F.struct(
        n.alias("n"),
        (a["mean"] + delta * b["n"] / n).alias("mean"),
        (a["m2"] + b["m2"] + delta * delta * a["n"] * b["n"] / n).alias("m2"),
    )


@dataclass(frozen=True, slots=True)
class Ranked(NativePartial):
    """Exact percentiles at some ranks, taken from events; there is nothing to combine."""

    numeric: ClassVar[bool] = True
    ranks: tuple[float, ...] = field(default=())

    def _lifted(self, args: Args, time: Column) -> Column:
        return F.percentile(args[0], F.array(*(F.lit(rank) for rank in self.ranks)))

    def _combined(self, partial: Column, types: Types) -> Column:
        # Only reached where an instance is handed on as it is.
        return F.first(partial)


class SpreadPartial(NativePartial):
    """A partial of many entries, kept as one row per entry: (key, entry, start).

    As one value per group it would make Spark sort all events; as rows it is hash-aggregated.
    """

    def entry(self, args: Args) -> Column:
        """Tell which entry an event belongs to; NULL for an event that does not count."""
        raise NotImplementedError

    def collapse(self, name: str, entry: Column) -> Aggregation:
        """Fold the entries of a key and start into the finished partial."""
        raise NotImplementedError


PARTIALS: Mapping[str, NativePartial] = {
    "count_rows": _Count(),
    "count": _Count(),
    "sum": _Sum(),
    "min": _Extreme(greatest=False),
    "max": _Extreme(greatest=True),
    "first": _AtTime(greatest=False),
    "last": _AtTime(greatest=True),
    "min_by": _By(greatest=False),
    "max_by": _By(greatest=True),
    "bool_and": _Truth(greatest=False),
    "bool_or": _Truth(greatest=True),
    "product": _Product(),
    "bit_and": _Bits("bit_and"),
    "bit_or": _Bits("bit_or"),
    "bit_xor": _Bits("bit_xor"),
    "moments": _Moments(),
}


def sum_type(argument: DecimalType) -> DecimalType:
    """Return the type of a sum of decimals: ten more digits, as Spark has it.

    >>> sum_type(DecimalType(12, 2)).simpleString()
    'decimal(22,2)'
    """
    return DecimalType(min(argument.precision + 10, 38), argument.scale)


def average_type(argument: DecimalType) -> DecimalType:
    """Return the type of an average of decimals: four more digits after the point.

    >>> average_type(DecimalType(12, 2)).simpleString()
    'decimal(16,6)'
    """
    return DecimalType(min(argument.precision + 4, 38), min(argument.scale + 4, 38))


def check_numbers(partial: Partial, native: NativePartial, types: Types) -> None:
    """Refuse an aggregate of numbers over something else, before Spark converts it silently."""
    if native.numeric and not isinstance(types[0], NumericType) and types[0].typeName() != "void":
        raise QueryError(
            f"{partial} cannot be computed: {partial.args[0]} is of type {types[0].simpleString()}",
            hint=f"{partial.kind} needs numbers; cast the column, or use count or max",
        )
