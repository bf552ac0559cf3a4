"""Columns of Spark as keys and filters: computed by Spark, and known to weft by a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    By = Sequence[str | Column] | Mapping[str, str | Column]


def computed(
    frame: DataFrame, by: By, where: str | Column | None
) -> tuple[DataFrame, By, str | None]:
    """Filter rows and add keys where these are columns of Spark's; return what is left to weft."""
    if where is not None and not isinstance(where, str):
        frame, where = frame.where(where), None
    listed = () if isinstance(by, str) else by.values() if isinstance(by, Mapping) else by
    if all(isinstance(key, str) for key in listed):
        return frame, by, where
    if not isinstance(by, Mapping):
        # A column without a name of its own has the one that Spark gives it.
        by = {(key if isinstance(key, str) else frame.select(key).columns[0]): key for key in by}
    keys: dict[str, str | Column] = {}
    added: dict[str, Column] = {}
    for name, key in by.items():
        keys[name] = key
        if not isinstance(key, str):
            keys[name] = place = f"weft_key_{len(added)}"
            added[place] = key
    return frame.withColumns(added), keys, where
