"""Statements of Spark SQL, run as they are; window aggregates in them are shared."""

from __future__ import annotations

from weft.statement.door import run_in_process, run_statements, sql, streamed
from weft.statement.explanation import Explanation, explain

__all__ = ["Explanation", "explain", "run_in_process", "run_statements", "sql", "streamed"]
