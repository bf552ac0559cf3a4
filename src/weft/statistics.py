"""What is known about a source: declared by the user, measured, or assumed and said so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.errors import DataError, QueryError
from weft.expression import canonical
from weft.time import duration_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.time import Duration

Kept = Mapping[str, float] | tuple[tuple[str, float], ...]

DEFAULT_RATE = 1000.0
DEFAULT_KEYS = 100
DEFAULT_EVENTS = 1_000_000
DEFAULT_KEY_BYTES = 8.0
_SECOND_US = 1e6
# Where nobody said how many events there are, they fill the longest window at least so often.
_LONGEST_WINDOWS = 3
# What a plan rests on; of what else is not known, it is said nowhere that it was assumed.
_TOLD = ("rate", "keys")


@dataclass(frozen=True, slots=True)
class Statistics:
    """Rates, volumes and cardinalities the cost model needs.

    >>> Statistics(rate=50.0).assumed
    ('keys',)
    >>> Statistics(events=86_400, duration="1 day").rate
    1.0
    """

    rate: float | None = None  # events per second
    keys: int | None = None  # distinct keys
    key_skew: float = 0.0  # share of events of the most frequent key, beyond its fair share
    lateness_us: tuple[int, int, int] = (0, 0, 0)  # median, 99 % and greatest lateness
    join_values: int = 0  # distinct values of what it is joined on; 0: as many as keys
    # The fraction of events that a filter keeps, by its text; others are guessed by their form.
    kept: Kept = ()
    events: int | None = None  # of a batch, in all
    duration: Duration | None = None  # from the first event to the last
    key_bytes: float | None = None  # of all keys of an event together
    late_share: float = 0.0  # part of the events that come after the watermark
    cores: int | None = None  # that share the work; None: as many as prices were measured with
    partitions: int | None = None  # tasks that read the events; None: at least as many as cores
    adaptive: bool = False  # Spark plans anew after every stage
    key_sets: tuple[tuple[tuple[str, ...], int], ...] = ()  # distinct keys, by what they are
    told_by: str = ""  # where this was read, if nobody declared it

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
        if not 0 <= self.late_share < 1:
            raise QueryError(
                f"a share of {self.late_share!r} of the events cannot be late",
                hint="give a fraction from 0 on, and less than 1",
            )
        if self.events is not None and not (isinstance(self.events, int) and self.events >= 0):
            raise QueryError(
                f"{self.events!r} events cannot be planned for",
                hint="give the number of events, at least 0",
            )
        if self.duration is not None and duration_us(self.duration) <= 0:
            raise QueryError(
                f"events that last {self.duration!r} have no rate",
                hint="give the time from the first event to the last, such as '1 day'",
            )
        if self.rate is None and self.events and self.duration is not None:
            object.__setattr__(self, "rate", self.events * _SECOND_US / duration_us(self.duration))

    @property
    def events_per_us(self) -> float:
        """The rate, declared or assumed, per microsecond."""
        return (DEFAULT_RATE if self.rate is None else self.rate) / 1e6

    @property
    def key_count(self) -> int:
        """The number of keys, declared or assumed."""
        return DEFAULT_KEYS if self.keys is None else self.keys

    @property
    def row_key_bytes(self) -> float:
        """The bytes of the keys of one row, known or assumed."""
        return DEFAULT_KEY_BYTES if self.key_bytes is None else self.key_bytes

    @property
    def assumed(self) -> tuple[str, ...]:
        """The names of what nobody declared or measured."""
        return tuple(name for name in _TOLD if getattr(self, name) is None)

    @property
    def is_duration_known(self) -> bool:
        """True when it was declared or measured how many events there are, or how long."""
        return self.events is not None or self.duration is not None

    def of_keys(self, keys: tuple[str, ...]) -> Statistics:
        """Return what is known of events that are grouped by these expressions.

        >>> known = Statistics(keys=50, key_sets=((("city", "shop"), 900),))
        >>> known.of_keys(("city", "shop")).keys, known.of_keys(("city",)).keys
        (900, 50)
        >>> Statistics().of_keys(()).keys
        1
        """
        own = dict(self.key_sets).get(keys)
        if own is None and self.keys is None and not keys:
            own = 1
        return self if own is None else replace(self, keys=own)

    def filled(self, seen: Statistics) -> Statistics:
        """Take what was seen wherever nothing was declared.

        >>> known = Statistics(keys=7).filled(Statistics(keys=5, events=90, key_skew=0.1))
        >>> known.keys, known.events, known.key_skew
        (7, 90, 0.1)
        """
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        declared = {f.name: own[f.name] for f in fields(self) if own[f.name] != f.default}
        if self.rate is not None and not self.is_duration_known and seen.events is not None:
            seen = replace(seen, duration=None, rate=None)  # what was declared rules both
        if self.is_duration_known:
            seen = replace(seen, duration=None, events=None, rate=None)
        if self.keys is not None:
            seen = replace(seen, key_sets=())
        return replace(seen, **declared)

    def lasts_us(self, longest_us: float = 0.0) -> float:
        """Return how long the events last; assumed where neither that nor their number is known.

        Then there are a million, or more where they would not fill the longest window.

        >>> Statistics(rate=1000.0, events=3_600_000).lasts_us() / 3_600e6
        1.0
        >>> Statistics(rate=1000.0).lasts_us(longest_us=86_400e6) / 86_400e6
        3.0
        """
        if self.events is not None:
            return max(self.events, 1) / self.events_per_us
        if self.duration is not None:
            return float(duration_us(self.duration))
        return max(DEFAULT_EVENTS / self.events_per_us, _LONGEST_WINDOWS * longest_us)

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


class Bounds(NamedTuple):
    """How many events there are, and when the first and the last of them is, if known."""

    events: int
    first_us: int | None
    last_us: int | None


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

    from weft.frames import in_microseconds, in_parts

    stamps = [f.name for f in table.schema if pa.types.is_timestamp(f.type)]
    column = table[time or _only_timestamp(stamps)]
    column = in_microseconds(column)
    timed = table.filter(pc.is_valid(column))
    times = pc.drop_null(column).cast(pa.int64()).to_numpy()
    if not len(times):
        raise _timeless()
    distinct, largest = 1, len(times)
    if keys:
        parts = in_parts(timed, keys)
        counts = parts.group_by(parts.column_names).aggregate([([], "count_all")])["count_all"]
        distinct, largest = len(counts), pc.max(counts).as_py()
    behind = np.maximum.accumulate(times) - times
    median, high, worst = (int(q) for q in np.quantile(behind, [0.5, 0.99, 1.0]))
    return Statistics(
        rate=_rate(len(times), int(times.min()), int(times.max())),
        keys=distinct,
        key_skew=_skew(largest, len(times), distinct),
        lateness_us=(median, high, worst),
        events=len(times),
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
        events=events,
    )
