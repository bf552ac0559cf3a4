"""Events of a scope as a DataFrame: filtered, with keys and arguments computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from weft.engines.spark.times import micros_of
from weft.errors import InternalError
from weft.expression import column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from weft.aggregates import Partial
    from weft.engines.spark.scopes import PlannedScope
    from weft.window import SessionWindow

TIME = "time"


@dataclass(frozen=True, slots=True)
class Events:
    """Events under names of our own, which no column of the user's can clash with."""

    frame: DataFrame
    keys: tuple[str, ...]
    arguments: dict[str, str]  # expression -> column
    types: dict[str, DataType]  # expression -> type
    time_type: DataType

    @staticmethod
    def of(scope: PlannedScope, source: DataFrame) -> Events:
        """Prepare the events that a scope reads; those without a time are dropped."""
        scan = scope.scan
        if scan.time is None:
            raise InternalError(f"the time column of {scan.source!r} was not looked up")
        time_type = source.schema[scan.time].dataType
        texts = tuple(dict.fromkeys(a for p in scope.partials for a in p.args))
        arguments = {text: f"a{i}" for i, text in enumerate(texts)}
        keys = {f"k{i}": text for i, (_, text) in enumerate(scope.keys)}
        time = F.col(column(scan.time))
        kept = source.where(time.isNotNull())
        if scan.where is not None:
            kept = kept.where(F.expr(scan.where))
        frame = kept.select(
            *(F.expr(text).alias(name) for name, text in keys.items()),
            micros_of(time, time_type, scan.time).alias(TIME),
            *(F.expr(text).alias(name) for text, name in arguments.items()),
        )
        fields = {field.name: field.dataType for field in frame.schema}
        types = {text: fields[name] for text, name in arguments.items()}
        return Events(frame, tuple(keys), arguments, types, time_type)

    def args(self, partial: Partial) -> tuple[Column, ...]:
        """The columns that a partial is lifted from."""
        return tuple(F.col(self.arguments[text]) for text in partial.args)

    def arg_types(self, partial: Partial) -> tuple[DataType, ...]:
        """The types of the columns that a partial is lifted from."""
        return tuple(self.types[text] for text in partial.args)

    def with_sessions(self, windows: Iterable[SessionWindow]) -> DataFrame:
        """Add the start of each event's session, in a column per window; one sort serves all."""
        own = Window.partitionBy(*self.keys).orderBy(TIME)
        previous = F.lag(TIME).over(own)
        frame = self.frame.withColumn("previous", previous)
        upto = own.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        for window in windows:
            apart = F.col(TIME) - F.col("previous") > window.gap_us
            begins = F.when(F.col("previous").isNull() | apart, F.col(TIME))
            frame = frame.withColumn(session_column(window), F.max(begins).over(upto))
        return frame.drop("previous")


def session_column(window: SessionWindow) -> str:
    """Name the column that holds the start of a session of this window."""
    return f"session_{window.gap_us}"
