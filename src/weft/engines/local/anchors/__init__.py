"""Windows at anchors in this process: features of points from events, by sorted positions."""

from __future__ import annotations

from weft.engines.local.anchors.batch import run_features

__all__ = ["run_features"]
