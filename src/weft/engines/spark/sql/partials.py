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
    from collections.abc import Iterable, Mapping

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

    @property
    def is_text(self) -> bool:
        """True when all aggregates are SQL."""
        return all(isinstance(e, str) for e in self.aggregates.values())

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


@dataclass(frozen=True, slots=True)
class Formula(NativePartial):
    """One aggregate of events and one of partials, as SQL.

    `{x}` and `{by}` are arguments, `{t}` is the event's time, `{p}` the partial.

    >>> Formula("sum({x})", "sum({p})").lift("p0", ("temp",), "time").aggregates
    {'p0': 'sum(temp)'}
    """

    lifted: str
    combined: str
    one_event: str | None = None
    added: bool = False

    def lift(self, name: str, args: Args, time: str) -> Aggregation:
        """Fill in arguments and time."""
        values = dict(zip(("x", "by"), args, strict=False))
        return Aggregation({name: self.lifted.format(t=time, **values)})

    def combine(self, name: str, types: Types) -> Aggregation:
        """Fill in the partial."""
        return Aggregation({name: self.combined.format(p=name)})


class Sum(Formula):
    """A sum, of the type that Spark gives sums."""

    def combine(self, name: str, types: Types) -> Aggregation:
        """Keep the type of decimals: a sum of sums would ask for ten more digits once again."""
        if isinstance(types[0], DecimalType):
            kind = sum_type(types[0]).simpleString()
            return Aggregation({name: f"cast(sum({name}) AS {kind})"})
        return Formula.combine(self, name, types)


class Product(NativePartial):
    """A product of doubles, for which SQL has no name."""

    def lift(self, name: str, args: Args, time: str) -> Aggregation:
        """Multiply values."""
        return Aggregation({name: F.product(F.expr(f"cast({args[0]} AS double)"))})

    def combine(self, name: str, types: Types) -> Aggregation:
        """Multiply products."""
        return Aggregation({name: F.product(F.col(name))})


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


class Ranked(Formula):
    """Exact percentiles at some ranks, taken from events; there is nothing to combine."""

    @classmethod
    def at(cls, ranks: Iterable[float]) -> Ranked:
        """Ask for the values at these ranks; only an instance handed on as it is, is combined."""
        listed = ", ".join(f"{rank!r}D" for rank in ranks)
        return cls(f"percentile({{x}}, array({listed}))", "first({p})")


class Gathered(Formula):
    """A partial of any length in one column, such as an array: Spark keeps it to itself."""


class Sketch(Gathered):
    """A sketch of Spark's own, by the names of the aggregates of events and of sketches."""

    def sized(self, numbers: Args) -> Sketch:
        """Fill in the numbers after the column, such as the size of a sketch.

        >>> Sketch("theta_sketch_agg", "theta_union_agg").sized(("14",)).combined
        'theta_union_agg({p}, 14)'
        """
        # Sketches of HyperLogLog know their size, and their union takes no number.
        kept = () if self.combined.startswith("hll") else numbers
        lifted = f"{self.lifted}({', '.join(('{x}', *numbers))})"
        return Sketch(lifted, f"{self.combined}({', '.join(('{p}', *kept))})")


class SpreadPartial(Formula, ABC):
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
