"""Results of a run, whatever the engine: how many rows there are, the first, and all if needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weft.query import AnyQuery, Workload


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of one query, of which Spark hands over no more than are asked for."""

    rows: int
    first: pa.Table
    whole: pa.Table | None


def results_of(
    made: Mapping[str, Any], workload: Workload, limit: int, *, whole: bool
) -> dict[str, Result]:
    """Compute lazy results, in the order that every engine has: by end, window, start and key."""
    queries = {query.name: query for query in workload}
    return {name: _result(table, queries[name], limit, whole) for name, table in made.items()}


def _result(table: Any, query: AnyQuery, limit: int, whole: bool) -> Result:
    from weft.frames import kind_of

    if kind_of(table) != "spark":
        return Result(table.num_rows, table, table)
    from weft.engines.spark.versions import collected

    label, start, end = query.window_columns
    order = [end, label, start, *(name for name, _ in query.keys)]
    if whole:
        rows = collected(table).sort_by([(name, "ascending") for name in order])
        return Result(rows.num_rows, rows, rows)
    kept = table.persist()
    try:
        return Result(kept.count(), collected(kept.orderBy(*order).limit(limit)), None)
    finally:
        kept.unpersist()
