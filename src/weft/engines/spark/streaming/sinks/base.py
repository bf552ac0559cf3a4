"""What a sink is, and what it may ask about the rows that it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from weft.targets import RowIdentity

QUERY = "query"


@runtime_checkable
class Sink(Protocol):
    """Takes the rows that one micro-batch closed for a query."""

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Keep the rows; a number that was written before is the same rows again.

        `query` names the query where a sink serves several.
        """
        ...


@dataclass(frozen=True, slots=True)
class Origin:
    """Where rows come from: their stream and query, and the columns that tell them apart."""

    stream: str  # the same after restarts from its checkpoint, and no other stream's
    query: str
    shared: bool  # whether the sink serves other queries as well
    identity: RowIdentity | None  # unknown for statements, whose columns are anything


@runtime_checkable
class ToldSink(Protocol):
    """A sink that keeps rows by what they are, and so must be told whose they are."""

    def check(self, query: str, identity: RowIdentity | None) -> None:
        """Refuse a query whose rows cannot be kept, before the stream starts."""
        ...

    def write_from(self, rows: DataFrame, batch_id: int, origin: Origin) -> None:
        """Keep the rows; those of a number that was written before are kept already."""
        ...


def named(rows: DataFrame, query: str | None) -> DataFrame:
    """Put the name of the query in front, where a sink serves several."""
    return rows if query is None else rows.select(F.lit(query).alias(QUERY), "*")
