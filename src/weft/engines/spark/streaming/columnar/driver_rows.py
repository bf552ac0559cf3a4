"""Rows of closed windows that the driver opens itself, where a query has few in a micro-batch.

To open blobs on executors takes a query a job with workers of Python, whatever it has. Twenty
queries that close a window or two in each micro-batch wait longer for that than for the windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from weft.engines.local.state.arrow_shelf import read_table
from weft.engines.spark.streaming.columnar.executor_batches import PAYLOAD
from weft.engines.spark.streaming.columnar.processor import FIRST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

# Bytes of one query, and of all: compressed, they may be ten times as many once they are opened.
MOST_OF_ONE, MOST_OF_ALL = 256 << 10, 4 << 20

Whose = tuple[int, int]  # a query: its scope, and the first of its windows


@dataclass(frozen=True, slots=True)
class DriverRows:
    """The rows of queries that have few or none in a micro-batch, and who has more."""

    opened: Mapping[Whose, pa.Table]
    left: frozenset[Whose]

    def of(self, query: Whose, schema: pa.Schema) -> pa.Table | None:
        """Return the rows of a query; None where executors have to open them."""
        return None if query in self.left else self.opened.get(query, schema.empty_table())


def opened_in_driver(rows: DataFrame) -> DriverRows:
    """Open the blobs of queries that have few rows; `rows` are kept, and read twice."""
    blobs = rows.where(F.col(PAYLOAD).isNotNull())
    sizes: dict[Whose, int] = {}
    for scope, first, size in blobs.select("scope", FIRST, F.length(PAYLOAD)).collect():
        sizes[scope, first] = sizes.get((scope, first), 0) + size
    few = _few(sizes)
    found: dict[Whose, list[pa.Table]] = {query: [] for query in few}
    if few:
        own = F.concat_ws(":", "scope", FIRST).isin([f"{scope}:{first}" for scope, first in few])
        for row in blobs.where(own).select("scope", FIRST, PAYLOAD).collect():
            found[row[0], row[1]].append(read_table(bytes(row[2])))
    opened = {query: pa.concat_tables(tables) for query, tables in found.items()}
    return DriverRows(opened, frozenset(sizes.keys() - opened.keys()))


def _few(sizes: Mapping[Whose, int]) -> list[Whose]:
    """Choose the queries with the fewest bytes, as many as the driver takes.

    >>> _few({(0, 0): 300_000, (0, 1): 5_000, (1, 0): 90})
    [(1, 0), (0, 1)]
    """
    chosen: list[Whose] = []
    left = MOST_OF_ALL
    for who, size in sorted(sizes.items(), key=lambda item: item[1]):
        if size > min(MOST_OF_ONE, left):
            break
        chosen.append(who)
        left -= size
    return chosen
