"""The session of Spark that tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

from weft.engines.spark.session import local_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

# Of the two ways to rename a file of a checkpoint, Spark takes one that starts four processes for
# each file on a local disk. Tests that kill Spark have sessions of their own, as Spark gives them.
_FEW_PROCESSES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
    )
}


def shared_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start the session, or return the one that is running, with two cores and partitions."""
    wanted = {"spark.sql.shuffle.partitions": "2"} | _FEW_PROCESSES | dict(settings or {})
    session = local_session(2, wanted)
    _keep_names()
    return session


def _keep_names() -> None:
    """Keep the names of Java's packages that PySpark asks for at the end of every Java collection.

    Each report of a micro-batch has a dozen of those. Java would look each name up in all jars of
    Spark, fourteen times a collection, and find no class of that name.
    """
    gateway: Any = SparkContext._gateway
    if gateway is None:  # of a client of Spark Connect
        return
    view = gateway.jvm
    if "py4j" not in vars(view):
        package = view.py4j
        reflection = package.reflection
        vars(reflection)["TypeUtil"] = reflection.TypeUtil
        vars(package)["reflection"] = reflection
        vars(view)["py4j"] = package
