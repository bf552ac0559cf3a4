"""What sessions of Spark that tests share are told."""

from __future__ import annotations

_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"

# Of the two ways to rename a file of a checkpoint, Spark takes one that starts four processes for
# each file on a local disk. Tests that kill Spark have sessions of their own, as Spark gives them.
FEW_PROCESSES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
    )
}
