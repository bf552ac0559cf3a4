"""Whether engines, streams and sessions agree, row by row."""

from __future__ import annotations

from weft.verification.report import Report, verify

__all__ = ["Report", "verify"]
