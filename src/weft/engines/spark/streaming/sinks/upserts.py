"""Tables of others as sinks: each row in place of the one with its key and window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engines.spark.versions import collected
from weft.targets.base import Mark, checked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from weft.engines.spark.streaming.sinks.base import Origin
    from weft.targets import RowIdentity, Target


@dataclass(frozen=True, slots=True)
class UpsertSink:
    """A table of Delta, Iceberg or PostgreSQL; of several queries, a table for each.

    The rows of a micro-batch pass through the driver, which commits them and their number at once.
    """

    target: Target

    def check(self, query: str, identity: RowIdentity | None) -> None:
        """Refuse rows that could not be told apart, and a place that cannot be reached."""
        checked(self.target.key, query, identity, self.target)
        self.target.check()

    def write_from(self, rows: DataFrame, batch_id: int, origin: Origin) -> None:
        """Write the rows, unless they are there from a run that was cut off afterwards."""
        target = self.target.named(origin.query) if origin.shared else self.target
        identity = checked(target.key, origin.query, origin.identity, target)
        mark = Mark(f"{origin.stream}/{origin.query}", batch_id)
        target.write(collected(rows), identity, mark)
