"""Sinks that are functions of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engines.spark.streaming.sinks.base import named

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class FunctionSink:
    """A function of the user's: called with the rows and the number of their micro-batch."""

    function: Callable[[DataFrame, int], object]

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Call it; where it serves several queries, a first column has the query's name."""
        self.function(named(rows, query), batch_id)
