"""Declarative Pipelines of Spark: a workload as tables that a pipeline keeps."""

from weft.pipelines.tables import pipeline_table

__all__ = ["pipeline_table"]
