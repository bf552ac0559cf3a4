"""Rows that Spark has not been asked for yet: steps over a DataFrame, gathered as one text.

Each step on a DataFrame has Spark look through all the steps below it, which takes longer than to
compute a few windows; one text is looked through once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

Rows: TypeAlias = "DataFrame | TextRows"

_PLACE = re.compile(r"(?<!\{)\{weft_rows\}(?!\})")
# Spark reads text by going down into it, and its stack is not endless.
_MOST_STEPS = 32


@dataclass(frozen=True, slots=True)
class TextRows:
    """A query over a DataFrame, as text in which braces are told apart from its place."""

    frame: DataFrame
    text: str = ""
    steps: int = 0  # one inside the other

    def selectExpr(self, *columns: str) -> TextRows:
        """Take expressions."""
        return self._step(f"SELECT {_escaped(', '.join(columns))} FROM ", "")

    def where(self, condition: str) -> TextRows:
        """Keep rows."""
        return self._step("SELECT * FROM ", f" WHERE {_escaped(condition)}")

    def grouped(self, by: Sequence[str], aggregates: Sequence[str]) -> TextRows:
        """Group rows, and aggregate."""
        listed = _escaped(", ".join((*by, *aggregates)))
        return self._step(f"SELECT {listed} FROM ", f" GROUP BY {', '.join(by)}" if by else "")

    def repartition(self, *by: str) -> TextRows:
        """Bring rows together by columns."""
        return self._step("SELECT * FROM ", f" DISTRIBUTE BY {', '.join(by)}")

    def sortWithinPartitions(self, *order: str) -> TextRows:
        """Sort the rows of each partition."""
        return self._step("SELECT * FROM ", f" SORT BY {', '.join(order)}")

    def _step(self, before: str, after: str) -> TextRows:
        rows = self if self.steps < _MOST_STEPS else TextRows(self.taken())
        source = f"({rows.text})" if rows.text else "{weft_rows}"
        return TextRows(rows.frame, f"{before}{source}{after}", rows.steps + 1)

    def over(self, name: str) -> str:
        """Return the text with the rows under another name.

        >>> TextRows(None).where("word <> '{weft_rows}'").over("events")
        "SELECT * FROM {events} WHERE word <> '{{weft_rows}}'"
        """
        return _PLACE.sub(f"{{{name}}}", self.text)

    def taken(self) -> DataFrame:
        """Hand the text to Spark."""
        if not self.text:
            return self.frame
        return self.frame.sparkSession.sql(self.text, weft_rows=self.frame)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def taken(rows: Rows) -> DataFrame:
    """Return rows as Spark has them."""
    return rows.taken() if isinstance(rows, TextRows) else rows
