"""Statements over DataFrames by name: text for Spark, without a view that stays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.engines.spark.text_rows import TextRows
from weft.expression import column
from weft.statement.syntax import tokens_of, written_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp

_PLACE = re.compile(r"\bweft_(?:table|result)_\d+\b")


def place_of(number: int) -> str:
    """Name the place of a table of results in a statement."""
    return f"weft_result_{number}"


@dataclass(frozen=True)
class Tables:
    """The DataFrames that the user named; they hide tables of the catalog under these names."""

    session: SparkSession
    frames: Mapping[str, DataFrame]
    args: Mapping[str, Any] | None = None  # of parameters in the text, by name

    @property
    def zone(self) -> str:
        """The zone of the session."""
        return self.session.conf.get("spark.sql.session.timeZone") or ""

    def run(
        self, statement: str | exp.Expr, results: Mapping[str, DataFrame | TextRows] | None = None
    ) -> DataFrame:
        """Hand a query to Spark, with places in it for tables of results.

        Named DataFrames come in front as common table expressions: no view of the session is
        made or hidden, and a name in the statement that means something else there still does.
        """
        text = statement if isinstance(statement, str) else written_of(statement)
        places: dict[str, Any] = dict(results or {})
        definitions = []
        for number, (name, frame) in enumerate(self._named_in(text).items()):
            place = f"weft_table_{number}"
            places[place] = frame
            definitions.append(f"{column(name)} AS (SELECT * FROM {place})")
        if definitions:
            text = f"WITH {', '.join(definitions)} (\n{text}\n)"
        if not places:
            return self.session.sql(text, args=self._args)
        # Braces of the text are its own; those around a place are for the DataFrame.
        escaped = text.replace("{", "{{").replace("}", "}}")
        below: dict[str, Any] = {}

        def placed(match: re.Match[str]) -> str:
            rows = places[match[0]]
            if not isinstance(rows, TextRows):
                return f"{{{match[0]}}}"
            # Results that are made of the same rows name them alike.
            name = next((own for own, frame in below.items() if frame is rows.frame), None)
            name = name or f"weft_rows_{len(below)}"
            below[name] = rows.frame
            return f"({rows.over(name)}) AS {match[0]}"

        marked = _PLACE.sub(placed, escaped)
        return self.session.sql(marked, args=self._args, **places, **below)

    @property
    def _args(self) -> dict[str, Any] | None:
        return dict(self.args) if self.args else None

    def _named_in(self, text: str) -> dict[str, DataFrame]:
        tokens = tokens_of(text)
        if tokens is None:
            return dict(self.frames)
        words = {token.text.casefold() for token in tokens}
        return {name: frame for name, frame in self.frames.items() if name.casefold() in words}
