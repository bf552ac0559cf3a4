"""The session that the Spark entries run in: weft's own, or one as Spark gives it.

Spark's has adaptive plans and Java's default collector, and of what users set anyway the memory
and eight partitions. Which one it is cannot change within a process, for Java has started by then.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from weft.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

CORES = 2
SESSIONS = ("weft", "spark")
_AS_SPARK_GIVES_IT = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
    "spark.driver.extraJavaOptions": "-XX:+UseG1GC",
}
_chosen = ContextVar("session", default=SESSIONS[0])


@contextmanager
def in_session(name: str) -> Iterator[None]:
    """Let entries run in one of the sessions."""
    if name not in SESSIONS:
        raise QueryError(f"unknown session {name!r}", hint=f"use one of {', '.join(SESSIONS)}")
    token = _chosen.set(name)
    try:
        yield
    finally:
        _chosen.reset(token)


def bench_session() -> SparkSession:
    """Start the session that was chosen, or return it if it runs."""
    from weft.engines.spark.session import local_session

    return local_session(CORES, _AS_SPARK_GIVES_IT if _chosen.get() == "spark" else None)
