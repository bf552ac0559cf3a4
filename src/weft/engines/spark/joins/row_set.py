"""Rows of a join with what is known of them: their keys, and when they count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


INSTANT = "instant"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of some inputs, matched with one another."""

    frame: DataFrame
    sides: tuple[int, ...]
    keys: tuple[str, ...]  # join variables, grouping columns, and what several inputs' calls read
    count: str | None  # the column of it; without one each row is a match of single tuples
    when: tuple[str, ...]  # when a row counts: (from, until), (from,) on, (at an instant,), always
    early: bool = False  # was an input of it aggregated?

    @property
    def at_instants(self) -> bool:
        """Tell whether rows were fanned out."""
        return self.when == (INSTANT,)
