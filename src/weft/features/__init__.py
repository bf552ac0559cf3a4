"""Features for models: as of every label, at every event, and served from a session."""

from __future__ import annotations

from weft.features.door import Events, as_of, rolling

__all__ = ["Events", "as_of", "rolling"]
