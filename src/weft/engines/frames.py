"""Tables of any library (moved to `weft.frames`)."""

from weft.frames import FrameKind, from_arrow, kind_of, to_arrow

__all__ = ["FrameKind", "from_arrow", "kind_of", "to_arrow"]
