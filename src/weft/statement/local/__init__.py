"""This process as the host of statements: the local engine, and DuckDB around it."""

from __future__ import annotations

from weft.statement.local.host import LocalHost

__all__ = ["LocalHost"]
