"""Events on their way to the executors' operators: the columns that any scope reads of them.

What is sent only grows: a query that comes later reads the columns under the names they have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import FractionalType

from weft.engines.spark.columnar.hosted_operator import HostedScope
from weft.engines.spark.columnar.shipping import Renaming, arguments_of
from weft.engines.spark.native.events import TIME, check_inputs
from weft.engines.spark.session import arrow_schema
from weft.engines.spark.sql.timestamps import micros_of
from weft.engines.spark.streaming.columnar.bucket_numbers import BUCKET
from weft.errors import InternalError
from weft.expression import column
from weft.plan import Roll, Scan
from weft.plan.conditions import cannot_fail
from weft.window import UserWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from weft.engines.spark.streaming.columnar.bucket_numbers import Buckets
    from weft.plan.planned_scope import PlannedScope
    from weft.query import Keys


@dataclass(frozen=True)
class Parcel:
    """What of an event is sent for one scope: its keys, its time, the arguments of aggregates."""

    where: str | None
    keys: Keys
    arguments: tuple[str, ...]  # expressions; the i-th travels as column a<i>
    whole: bool = False  # all columns of the source go, under their own names

    @staticmethod
    def of(scope: PlannedScope) -> Parcel:
        """Send what the queries of a scope need."""
        whole = any(isinstance(n, Roll) and isinstance(n.window, UserWindow) for n in scope.nodes)
        arguments = () if whole else tuple(arguments_of(scope))
        return Parcel(scope.scan.where, scope.keys, arguments, whole)

    def serves(self, scope: PlannedScope) -> bool:
        """Tell whether these are the events of a scope, whatever of them is sent."""
        return (self.where, self.keys) == (scope.scan.where, scope.keys)

    def missing(self, scope: PlannedScope) -> tuple[str, ...]:
        """Name what a scope needs and is not sent."""
        needed = Parcel.of(scope)
        if self.whole:
            return ()
        if needed.whole:
            return ("whole events",)
        return tuple(text for text in needed.arguments if text not in self.arguments)

    def with_more(self, scope: PlannedScope) -> Parcel:
        """Send more, for more queries of the scope; what was sent keeps its name."""
        return replace(self, arguments=(*self.arguments, *self.missing(scope)))

    def renamed(self, scope: PlannedScope) -> PlannedScope:
        """Return the scope as it reads these events."""
        if self.whole:
            return Renaming(scope, {}).scope(replace(scope.scan, where=None))
        names = {text: f"a{i}" for i, text in enumerate(self.arguments)}
        keys = tuple((f"k{i}", f"k{i}") for i in range(len(self.keys)))
        columns = (*(name for name, _ in keys), *names.values())
        return Renaming(scope, names, keys).scope(Scan(scope.scan.source, TIME, None, columns))

    def to_json(self) -> dict[str, Any]:
        """Return the parcel as JSON values."""
        keys = [list(key) for key in self.keys]
        return {"where": self.where, "keys": keys, "arguments": self.arguments, "whole": self.whole}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Parcel:
        """Read what `to_json` wrote.

        >>> one = Parcel("x > 1", (("k", "UPPER(a)"),), ("x",))
        >>> Parcel.from_json(one.to_json()) == one
        True
        """
        keys = tuple((name, text) for name, text in value["keys"])
        return Parcel(value["where"], keys, tuple(value["arguments"]), value["whole"])


@dataclass(frozen=True)
class Post:
    """The parcels of a stream, packed into one DataFrame: their columns, and a bucket for each."""

    parcels: Sequence[Parcel]
    source: DataFrame
    time: str | None
    buckets: Buckets

    @cached_property
    def time_type(self) -> DataType:
        """The type of the event time."""
        if self.time is None:
            raise InternalError("the time column was not looked up")
        return self.source.schema[self.time].dataType

    def _named(self, parcel: Parcel) -> dict[str, str]:
        if parcel.whole:
            return {name: column(name) for name in self.source.columns}
        assert self.time is not None
        return {
            **{f"k{i}": text for i, (_, text) in enumerate(parcel.keys)},
            TIME: micros_of(column(self.time), self.time_type, self.time),
            **{f"a{i}": text for i, text in enumerate(parcel.arguments)},
        }

    def schema(self, parcel: Parcel) -> pa.Schema:
        """Return the columns of a parcel as executors get them."""
        return arrow_schema(self._sent(parcel))

    def _sent(self, parcel: Parcel) -> StructType:
        named = self._named(parcel)
        return self.source.select(*(_as(text, name) for name, text in named.items())).schema

    def hosted(self, parcel: Parcel, scope: PlannedScope) -> HostedScope:
        """Return a scope as executors run it over a parcel's events."""
        if not parcel.whole:
            named = {f"a{i}": text for i, text in enumerate(parcel.arguments)}
            sent = self._sent(parcel)
            check_inputs(scope.emits, {t: sent[name].dataType for name, t in named.items()})
        return HostedScope(parcel.renamed(scope).emits, self.schema(parcel))

    @cached_property
    def names(self) -> tuple[dict[str, str], ...]:
        """The columns of each parcel, by name, as they travel: what several send goes once."""
        return tuple(
            {name: self._columns[self._sent_under(parcel, text)] for name, text in named.items()}
            for parcel, named in self._parcels_named
        )

    @property
    def frame(self) -> DataFrame:
        """Return the events that any parcel keeps; its bucket is NULL where it does not."""
        columns = [
            (F.expr(text) if kept is None else F.when(F.expr(kept), F.expr(text))).alias(name)
            for (kept, text), name in self._columns.items()
        ]
        buckets = [
            F.when(F.expr(self._kept(parcel)), F.expr(self._bucket(parcel))).alias(f"{BUCKET}{at}")
            for at, parcel in enumerate(self.parcels)
        ]
        some = " OR ".join(f"{BUCKET}{at} IS NOT NULL" for at in range(len(self.parcels)))
        return self.source.select(*columns, *buckets).where(some)

    @cached_property
    def _columns(self) -> dict[tuple[str | None, str], str]:
        """Name what travels: expressions, and the condition under which they are computed."""
        found: dict[tuple[str | None, str], str] = {}
        for parcel, named in self._parcels_named:
            for text in named.values():
                found.setdefault(self._sent_under(parcel, text), f"c{len(found)}")
        return found

    @cached_property
    def _parcels_named(self) -> list[tuple[Parcel, dict[str, str]]]:
        return [(parcel, self._named(parcel)) for parcel in self.parcels]

    def _sent_under(self, parcel: Parcel, text: str) -> tuple[str | None, str]:
        """Give an expression its condition: it may fail on events that the parcel does not keep."""
        return None if cannot_fail(text) else self._kept(parcel), text

    def _kept(self, parcel: Parcel) -> str:
        return f"{column(str(self.time))} IS NOT NULL AND ({parcel.where or 'true'})"

    def _bucket(self, parcel: Parcel) -> str:
        if not parcel.keys:
            return "0"
        types = self.source.select(*(_as(text, name) for name, text in parcel.keys)).schema
        # Zeros of either sign are one key, and have two hashes.
        hashed = [
            f"(({text}) + 0)" if isinstance(field.dataType, FractionalType) else text
            for (_, text), field in zip(parcel.keys, types, strict=True)
        ]
        return f"cast(pmod(xxhash64({', '.join(hashed)}), {self.buckets.each}) AS int)"


def _as(text: str, name: str) -> Column:
    return F.expr(text).alias(name)
