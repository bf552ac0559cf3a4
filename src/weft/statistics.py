"""What is known about a source: declared by the user, measured, or assumed and said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from weft.errors import DataError, QueryError
from weft.expression import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

Kept = Mapping[str, float] | tuple[tuple[str, float], ...]

DEFAULT_RATE = 1000.0
DEFAULT_KEYS = 100
_SECOND_US = 1e6


@dataclass(frozen=True, slots=True)
class Statistics:
    """Rates and cardinalities the cost model needs.

    >>> Statistics(rate=50.0).assumed
    ('keys',)
    """

    rate: float | None = None  # events per second
    keys: int | None = None  # distinct keys
    key_skew: float = 0.0  # share of events of the most frequent key, beyond its fair share
    lateness_us: tuple[int, int, int] = (0, 0, 0)  # median, 99 % and greatest lateness
    join_values: int = 0  # distinct values of what it is joined on; 0: as many as keys
    # The fraction of events that a filter keeps, by its text; others are guessed by their form.
    kept: Kept = ()

    def __post_init__(self) -> None:
        number = isinstance(self.rate, int | float) and not isinstance(self.rate, bool)
        if self.rate is not None and not (number and 0 < self.rate < float("inf")):
            raise QueryError(
                f"a rate of {self.rate!r} events per second plans nothing",
                hint="give a number greater than zero",
            )
        if self.keys is not None and not (isinstance(self.keys, int) and self.keys >= 1):
            raise QueryError(
                f"{self.keys!r} keys cannot be planned for",
                hint="give the number of distinct keys, at least 1",
            )
        told = {canonical(text): part for text, part in dict(self.kept).items()}
        object.__setattr__(self, "kept", tuple(told.items()))
        for text, part in told.items():
            if not 0 <= part <= 1:
                raise QueryError(
                    f"the filter {text} cannot keep {part!r} of the events",
                    hint="give a fraction between 0 and 1",
                )

    @property
    def events_per_us(self) -> float:
        """The rate, declared or assumed, per microsecond."""
        return (DEFAULT_RATE if self.rate is None else self.rate) / 1e6

    @property
    def key_count(self) -> int:
        """The number of keys, declared or assumed."""
        return DEFAULT_KEYS if self.keys is None else self.keys

    @property
    def assumed(self) -> tuple[str, ...]:
        """The names of what nobody declared or measured."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) is None)

    @classmethod
    def measure(cls, table: Any, time: str | None = None, keys: Sequence[str] = ()) -> Statistics:
        """Measure a table: rate, distinct keys, skew, and lateness in the order of its rows.

        Takes whatever `weft.run` takes. A Spark DataFrame has no order of rows, so its lateness
        is not measured. Without `time` the table's only timestamp column is the event time.
        """
        from weft.frames import kind_of, to_arrow

        if kind_of(table) == "spark":
            return _measure_spark(table, time, tuple(keys))
        return _measure_arrow(to_arrow(table), time, tuple(keys))

    def __str__(self) -> str:
        rate = f"{DEFAULT_RATE if self.rate is None else self.rate:g} events/s"
        text = f"{rate}, {self.key_count} {'key' if self.key_count == 1 else 'keys'}"
        return text + (f" ({' and '.join(self.assumed)} assumed)" if self.assumed else "")


def _only_timestamp(candidates: list[str]) -> str:
    if len(candidates) != 1:
        listed = ", ".join(candidates) or "none"
        raise QueryError(
            f"the table has {len(candidates)} timestamp columns: {listed}",
            hint="name the event time: Statistics.measure(table, time='...')",
        )
    return candidates[0]


def _timeless() -> DataError:
    return DataError(
        "statistics cannot be measured from a table without times",
        hint="declare them: weft.Statistics(rate=..., keys=...)",
    )


def _rate(events: int, first_us: int, last_us: int) -> float:
    if events < 2 or last_us <= first_us:
        raise DataError(
            f"a rate cannot be measured from {events} events in {last_us - first_us} microseconds",
            hint="declare it: weft.Statistics(rate=..., keys=...)",
        )
    # n events have n - 1 distances between them.
    return (events - 1) * _SECOND_US / (last_us - first_us)


def _skew(largest: int, events: int, distinct: int) -> float:
    return max(largest / events - 1 / distinct, 0.0)


def _measure_arrow(table: Any, time: str | None, keys: tuple[str, ...]) -> Statistics:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from weft.frames import in_microseconds

    stamps = [f.name for f in table.schema if pa.types.is_timestamp(f.type)]
    column = table[time or _only_timestamp(stamps)]
    column = in_microseconds(column)
    timed = table.filter(pc.is_valid(column))
    times = pc.drop_null(column).cast(pa.int64()).to_numpy()
    if not len(times):
        raise _timeless()
    distinct, largest = 1, len(times)
    if keys:
        counts = timed.group_by(list(keys)).aggregate([([], "count_all")])["count_all"]
        distinct, largest = len(counts), pc.max(counts).as_py()
    behind = np.maximum.accumulate(times) - times
    median, high, worst = (int(q) for q in np.quantile(behind, [0.5, 0.99, 1.0]))
    return Statistics(
        rate=_rate(len(times), int(times.min()), int(times.max())),
        keys=distinct,
        key_skew=_skew(largest, len(times), distinct),
        lateness_us=(median, high, worst),
    )


def _measure_spark(frame: Any, time: str | None, keys: tuple[str, ...]) -> Statistics:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    stamps = [
        f.name for f in frame.schema if isinstance(f.dataType, T.TimestampType | T.TimestampNTZType)
    ]
    name = time or _only_timestamp(stamps)
    micros = (
        F.unix_micros(F.col(name).cast("timestamp")) if name in stamps else F.col(name).cast("long")
    )
    timed = frame.where(F.col(name).isNotNull()).withColumn("__us", micros)
    groups = timed.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("n"), F.min("__us").alias("lo"), F.max("__us").alias("hi")
    )
    totals = groups.agg(F.count(F.lit(1)), F.sum("n"), F.max("n"), F.min("lo"), F.max("hi"))
    ((distinct, events, largest, first, last),) = totals.collect()
    if not events:
        raise _timeless()
    return Statistics(
        rate=_rate(events, first, last),
        keys=distinct,
        key_skew=_skew(largest, events, distinct),
    )
