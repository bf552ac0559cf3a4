"""What is known about a source: declared by the user, measured, or assumed and said so."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_RATE = 1000.0
DEFAULT_KEYS = 100


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

    def __post_init__(self) -> None:
        if self.rate is not None and not self.rate > 0:
            raise QueryError(
                f"a rate of {self.rate:g} events per second plans nothing",
                hint="give a rate greater than zero",
            )
        if self.keys is not None and self.keys < 1:
            raise QueryError(
                f"{self.keys} keys cannot be planned for", hint="give the number of distinct keys"
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
        from weft.measuring import measure

        return measure(table, time, tuple(keys))

    def __str__(self) -> str:
        rate = f"{DEFAULT_RATE if self.rate is None else self.rate:g} events/s"
        text = f"{rate}, {self.key_count} {'key' if self.key_count == 1 else 'keys'}"
        return text + (f" ({' and '.join(self.assumed)} assumed)" if self.assumed else "")
