"""Rows that Spark has not been asked for yet: steps over a DataFrame, gathered as one text.

Each step on a DataFrame has Spark look through all the steps below it. Where several results are
made of the same rows, that is most of what planning takes; one text is looked through once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

Rows = TypeVar("Rows", "DataFrame", "TextRows")


@dataclass(frozen=True, slots=True)
class TextRows:
    """A query over a DataFrame, as text in which braces are told apart from its place."""

    frame: DataFrame
    text: str = ""

    @property
    def _source(self) -> str:
        return f"({self.text})" if self.text else "{weft_rows}"

    def selectExpr(self, *columns: str) -> TextRows:
        """Take expressions."""
        return TextRows(self.frame, f"SELECT {_escaped(', '.join(columns))} FROM {self._source}")

    def where(self, condition: str) -> TextRows:
        """Keep rows."""
        return TextRows(self.frame, f"SELECT * FROM {self._source} WHERE {_escaped(condition)}")

    def grouped(self, by: Sequence[str], aggregates: Sequence[str]) -> TextRows:
        """Group rows, and aggregate."""
        listed = _escaped(", ".join((*by, *aggregates)))
        grouped = f" GROUP BY {', '.join(by)}" if by else ""
        return TextRows(self.frame, f"SELECT {listed} FROM {self._source}{grouped}")

    def over(self, name: str) -> str:
        """Return the text with the rows under another name."""
        return self.text.replace("{weft_rows}", f"{{{name}}}")

    def taken(self) -> DataFrame:
        """Hand the text to Spark."""
        return self.frame.sparkSession.sql(self.text, weft_rows=self.frame)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def taken(rows: DataFrame | TextRows) -> DataFrame:
    """Return rows as Spark has them."""
    return rows.taken() if isinstance(rows, TextRows) else rows
