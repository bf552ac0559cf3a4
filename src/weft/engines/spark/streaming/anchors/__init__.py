"""Rolling windows over Spark streams: rows come out when the watermark has passed them."""

from __future__ import annotations

from weft.engines.spark.streaming.anchors.compile import rolling_stream

__all__ = ["rolling_stream"]
