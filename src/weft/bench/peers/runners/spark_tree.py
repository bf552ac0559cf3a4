"""Spark's frames with its segment tree, which is off unless a user switches it on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .protocol import serve
from .spark_stock import frames, labels_among_events, read, rolling, spark_version, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocol import Job


def start(job: Job) -> Callable[[], None]:
    """Get ready, and return what is timed."""
    from pyspark.sql import functions as F

    tables = read(job)
    session = tables["events"].sparkSession
    session.conf.set("spark.sql.window.segmentTree.enabled", "true")

    def run() -> None:
        if job["kind"] == "trailing":
            write(job, "rows", rolling(job, tables))
            return
        found = labels_among_events(tables).select("id", *frames(job, F.count("amount"), 1))
        write(job, "rows", found.where("id IS NOT NULL"))

    return run


if __name__ == "__main__":
    serve(start, spark_version)
