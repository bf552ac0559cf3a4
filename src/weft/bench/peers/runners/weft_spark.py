"""weft on Spark: DataFrames over parquet files, one plan, rows written to files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import weft

from .protocol import serve
from .spark_stock import hottest, read, spark_version, write
from .stream_state import of_spark
from .weft_asked import trailing_of, workload_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Job


def _windows(job: Job, tables: dict[str, Any]) -> None:
    found = weft.run(workload_of(job), tables)
    queries = job["queries"]
    if not isinstance(found, dict):
        write(job, queries[0]["name"], hottest(found, queries[0]))
        return
    with found:  # type: ignore[attr-defined]
        for query in queries:
            write(job, query["name"], hottest(found[query["name"]], query))


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    tables = read(job)

    def run() -> None:
        match job["kind"]:
            case "windows":
                _windows(job, tables)
            case "trailing":
                write(job, "rows", weft.rolling(tables["events"], **trailing_of(job)))
            case "as_of":
                asked = trailing_of(job)
                write(job, "rows", weft.as_of(tables["labels"], tables["events"], at="ts", **asked))
            case _:
                write(job, "rows", weft.run(weft.parse(job["sql"]), tables))

    return run


if __name__ == "__main__":
    serve(start, spark_version, partial(of_spark, shared=True))
