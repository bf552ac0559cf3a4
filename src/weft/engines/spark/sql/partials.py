"""Partials as Catalyst columns: how events are lifted into them and how they are combined.

Every partial is one column. Fixed-width ones are chosen wherever there is a choice, because
Spark hash-aggregates only those and sorts for the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

Args = tuple[str, ...]
Types = tuple[DataType, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Aggregate expressions by column name, and what is made of them afterwards.

    Without a `result` the only aggregate is the partial itself. Expressions are SQL text, but for
    functions that SQL does not name.
    """

    aggregates: Mapping[str, str | Column]
    result: str | None = None

    def columns(self) -> list[Column]:
        """The aggregates as columns under their names; text takes a name in the same round trip."""
        return [
            F.expr(f"{e} AS {name}") if isinstance(e, str) else e.alias(name)
            for name, e in self.aggregates.items()
        ]


class NativePartial(ABC):
    """One kind of partial; events are grouped by key and start, nothing else."""

    one_event: str | None = None  # what one value `{x}` is as a partial; None: not in joins
    added: bool = False  # whether a row of a join adds it as often as it has partners

    @abstractmethod
    def lift(self, name: str, args: Args, time: str) -> Aggregation:
        """Fold events into the partial."""

    @abstractmethod
    def combine(self, name: str, types: Types) -> Aggregation:
        """Fold partials into one."""


class OneAggregate(NativePartial):
    """A partial that is one aggregate of events, and one of partials."""

    def lift(self, name: str, args: Args, time: str) -> Aggregation:
        """Fold events into the partial."""
        return Aggregation({name: self._lifted(args, time)})

    def combine(self, name: str, types: Types) -> Aggregation:
        """Fold partials into one."""
        return Aggregation({name: self._combined(name, types)})

    @abstractmethod
    def _lifted(self, args: Args, time: str) -> str | Column: ...

    @abstractmethod
    def _combined(self, partial: str, types: Types) -> str | Column: ...


class Count(OneAggregate):
    """The number of rows, or of values that are not NULL."""

    one_event = "cast({x} IS NOT NULL AS bigint)"
    added = True

    def _lifted(self, args: Args, time: str) -> str:
        return f"count({args[0] if args else 1})"

    def _combined(self, partial: str, types: Types) -> str:
        # A count is never NULL, and Spark's schema of a sum would say that it may be.
        return f"coalesce(sum({partial}), 0L)"


class Sum(OneAggregate):
    """A sum, of the type that Spark gives sums."""

    one_event = "{x}"
    added = True

    def _lifted(self, args: Args, time: str) -> str:
        return f"sum({args[0]})"

    def _combined(self, partial: str, types: Types) -> str:
        if isinstance(types[0], DecimalType):
            # A sum of sums would ask for ten more digits once again.
            return f"cast(sum({partial}) AS {sum_type(types[0]).simpleString()})"
        return f"sum({partial})"


class Same(OneAggregate):
    """A function that combines values as it combines partials; NULL is skipped."""

    one_event: str | None = "{x}"

    def __init__(self, function: str) -> None:
        self._function = function

    def _lifted(self, args: Args, time: str) -> str:
        return f"{self._function}({self._picked(args, time)})"

    def _combined(self, partial: str, types: Types) -> str:
        return f"{self._function}({partial})"

    def _picked(self, args: Args, time: str) -> str:
        return args[0]


class AtTime(Same):
    """`first` and `last`: the value of the least or greatest (time, value)."""

    one_event = None

    def _picked(self, args: Args, time: str) -> str:
        (value,) = args
        event = f"named_struct('at', {time}, 'value', {value})"
        return f"CASE WHEN {value} IS NOT NULL THEN {event} END"


class By(Same):
    """`min_by` and `max_by`: the value of the least or greatest (by, time, value)."""

    one_event = None

    def _picked(self, args: Args, time: str) -> str:
        value, by = args
        event = f"named_struct('by', {by}, 'at', {time}, 'value', {value})"
        return f"CASE WHEN {by} IS NOT NULL THEN {event} END"


class Parity(Same):
    """Bits that an odd number of values have; counted twice they are gone, so not in joins."""

    one_event = None


class Truth(Same):
    """A minimum or maximum of booleans."""

    one_event = "cast({x} AS boolean)"

    def _picked(self, args: Args, time: str) -> str:
        return f"cast({args[0]} AS boolean)"


class Product(OneAggregate):
    """A product of doubles."""

    def _lifted(self, args: Args, time: str) -> Column:
        return F.product(F.expr(f"cast({args[0]} AS double)"))

    def _combined(self, partial: str, types: Types) -> Column:
        return F.product(F.col(partial))


class Moments(NativePartial):
    """Count, mean and squared distances from the mean; sums of squares would cancel digits."""

    def lift(self, name: str, args: Args, time: str) -> Aggregation:
        """Fold events by aggregates that Spark hashes."""
        value = f"cast({args[0]} AS double)"
        n, total, variance = f"{name}_n", f"{name}_total", f"{name}_variance"
        return Aggregation(
            {n: f"count({value})", total: f"sum({value})", variance: f"var_pop({value})"},
            f"named_struct('n', {n}, 'mean', coalesce({total} / nullif({n}, 0), 0D), "
            f"'m2', coalesce({variance} * {n}, 0D))",
        )

    def combine(self, name: str, types: Types) -> Aggregation:
        """Merge any number of partials by aggregates that Spark hashes and compiles.

        With c the plain average of the means and d a mean's distance from it, the squared
        distances between partials are sum(n*d*d) - sum(n*d)^2 / sum(n). Covariances hold these
        sums without cancelling: of (mean, n) it is sum(n*d), of (mean, n*mean) it is
        sum(n*d*d) + c * sum(n*d), each over the number of partials. The mean comes first in both,
        so that Spark rounds d alike in both and the difference is as exact as d.
        """
        n, mean = f"{name}.n", f"CASE WHEN {name}.n > 0 THEN {name}.mean END"
        parts, centre = f"{name}_parts", f"{name}_centre"
        lean = f"({name}_lean * {parts})"
        between = f"{name}_spread * {parts} - {centre} * {lean} - {lean} * {lean} / {name}_n"
        return Aggregation(
            {
                parts: f"count({mean})",
                f"{name}_n": f"nullif(sum({n}), 0)",
                centre: f"avg({mean})",
                f"{name}_lean": f"covar_pop({mean}, {n})",
                f"{name}_spread": f"covar_pop({mean}, {n} * ({mean}))",
                f"{name}_m2": f"sum({name}.m2)",
            },
            f"named_struct('n', coalesce({name}_n, 0L), "
            f"'mean', coalesce({centre} + {lean} / {name}_n, 0D), "
            f"'m2', coalesce({name}_m2 + greatest({between}, 0D), 0D))",
        )


class Ranked(OneAggregate):
    """Exact percentiles at some ranks, taken from events; there is nothing to combine."""

    def __init__(self, ranks: tuple[float, ...]) -> None:
        self._ranks = ranks

    def _lifted(self, args: Args, time: str) -> str:
        return f"percentile({args[0]}, array({', '.join(f'{r!r}D' for r in self._ranks)}))"

    def _combined(self, partial: str, types: Types) -> str:
        # Only reached where an instance is handed on as it is.
        return f"first({partial})"


class SpreadPartial(OneAggregate):
    """A partial of many entries, kept as one row per entry: (key, entry, start).

    As one value per group it would make Spark sort all events; as rows it is hash-aggregated.
    """

    @abstractmethod
    def entry(self, args: Args) -> str:
        """Tell which entry an event belongs to; NULL for an event that does not count."""

    @abstractmethod
    def collapse(self, name: str, entry: str) -> Aggregation:
        """Fold the entries of a key and start into the finished partial."""


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
