"""The reference engine: pure Python, slow, always shipped; the oracle for all other engines."""

from __future__ import annotations

from weft.engines.reference.interpreter import Interpreter
from weft.engines.reference.oracle import ResultRow, evaluate

__all__ = ["Interpreter", "ResultRow", "evaluate"]
