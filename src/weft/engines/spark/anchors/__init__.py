"""Windows at anchors on Spark: points and events meet by key in one shuffle, sorted once."""

from __future__ import annotations

from weft.engines.spark.anchors.compile import run_features

__all__ = ["run_features"]
