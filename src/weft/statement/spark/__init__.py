"""Spark as the host of statements: it runs what stands around shared blocks."""

from __future__ import annotations

from weft.statement.spark.host import SparkHost
from weft.statement.spark.tables import Tables

__all__ = ["SparkHost", "Tables"]
