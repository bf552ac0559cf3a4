"""Events of a scope as a DataFrame: filtered, with keys and arguments computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    AtomicType,
    BooleanType,
    DataType,
    IntegralType,
    LongType,
    NullType,
    NumericType,
)

from weft.engines.schema import check_input
from weft.engines.spark.sql.fan_out import START
from weft.engines.spark.sql.timestamps import micros_of
from weft.errors import InternalError
from weft.expression import column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame

    from weft.aggregates import AggregateCall, Partial
    from weft.plan import Emit
    from weft.plan.planned_scope import PlannedScope

TIME = "time"


@dataclass(frozen=True, slots=True)
class Events:
    """Events under names of our own, which no column of the user's can clash with.

    `time` is when an event happened, and `start` the same: as a row, it begins where it happens.
    """

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
        texts = tuple(dict.fromkeys(a for p in scope.partials for a in p.reads))
        # A number that is written out stays one: functions of Spark ask for constants.
        arguments = {t: t if t.isdigit() else f"a{i}" for i, t in enumerate(texts)}
        keys = {f"k{i}": text for i, (_, text) in enumerate(scope.keys)}
        time = column(scan.time)
        kept = source.where(f"{time} IS NOT NULL")
        if scan.where is not None:
            kept = kept.where(scan.where)
        micros = micros_of(time, time_type, scan.time)
        frame = kept.selectExpr(
            *(f"{text} AS {name}" for name, text in keys.items()),
            *(f"{micros} AS {name}" for name in (TIME, START)),
            *(f"{text} AS {name}" for text, name in arguments.items() if text != name),
        )
        fields = {field.name: field.dataType for field in frame.schema}
        types = {text: fields.get(name, LongType()) for text, name in arguments.items()}
        return Events(frame, tuple(keys), arguments, types, time_type)

    @property
    def argument_columns(self) -> tuple[str, ...]:
        """The columns that are arguments of partials."""
        return tuple(name for text, name in self.arguments.items() if text != name)

    def args(self, partial: Partial) -> tuple[str, ...]:
        """The columns that a partial is lifted from."""
        return tuple(self.arguments[text] for text in partial.reads)

    def arg_types(self, partial: Partial) -> tuple[DataType, ...]:
        """The types of the columns that a partial is lifted from."""
        return tuple(self.types[text] for text in partial.reads)


def check_inputs(emits: Iterable[Emit], types: Mapping[str, DataType]) -> None:
    """Refuse the first aggregate whose input is of a type that it does not take."""
    for emit in emits:
        for _, call in emit.outputs:
            check_argument(call, types)


def check_argument(call: AggregateCall, types: Mapping[str, DataType]) -> None:
    """Refuse an input that a function does not take, before Spark converts it silently."""
    takes = {
        "anything": DataType,
        "plain values": AtomicType,
        "numbers": NumericType,
        "integers": IntegralType,
        "booleans": BooleanType,
    }
    given = types[call.reads[0]] if call.args else NullType()
    fits = {name: isinstance(given, kind | NullType) for name, kind in takes.items()}
    check_input(call, given.simpleString(), fits)
