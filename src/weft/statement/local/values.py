"""Values: expressions of a statement in the words of DuckDB, with the type and name Spark has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.statement.local.column_types import (
    INSTANT,
    INTEGERS,
    REALS,
    WALL_TIME,
    duck_name,
    is_time,
    spark_name,
    widest,
)
from weft.statement.relations import Obstacle

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Value:
    """An expression: its SQL for DuckDB, its type, and the name that Spark makes of its text."""

    sql: str
    type: pa.DataType
    name: str | None = None  # None: only Spark knows
    literal: Decimal | str | None = None  # what is written out, a number or a text

    def named(self, name: str | None) -> Value:
        """Return the same value under another name."""
        return replace(self, name=name)


def number(value: int) -> str:
    """Write an integer that fits BIGINT."""
    return f"CAST({value} AS BIGINT)"


def text(value: str) -> str:
    """Write a text of DuckDB."""
    if "\0" in value:
        raise Obstacle("a text holds a character 0")
    return "'" + value.replace("'", "''") + "'"


def failure(reason: str) -> str:
    """Write what ends the run with a reason."""
    return f"error({text(reason)})"


def can_fail(sql: str) -> bool:
    """Tell whether a value may end the run.

    >>> can_fail(failure("too long")), can_fail("a + 1")
    (True, False)
    """
    return "error(" in sql


def unless(condition: str, reason: str, sql: str) -> str:
    """Write a value that is computed only where a condition does not hold, NULL included."""
    return f"CASE WHEN {condition} THEN {failure(reason)} ELSE {sql} END"


def floored(sql: str, unit: int) -> str:
    """Write how many whole units an integer has, counted down from zero too."""
    return f"(({sql} - (({sql} % {unit} + {unit}) % {unit})) // {unit})"


# Texts that Spark and DuckDB read as the same value: anything else ends the run.
_CLOCK = r"[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_OFFSET = r"[+-](0\d|1[0-7]):[0-5]\d$"
_FORMS: dict[pa.DataType, str] = {
    INSTANT: rf"^\d{{4}}-\d{{2}}-\d{{2}}({_CLOCK}(Z|{_OFFSET})?)?$",
    WALL_TIME: rf"^\d{{4}}-\d{{2}}-\d{{2}}({_CLOCK})?$",
    pa.date32(): r"^\d{4}-\d{2}-\d{2}$",
    pa.int32(): r"^[+-]?\d{1,18}$",
    pa.int64(): r"^[+-]?\d{1,18}$",
    pa.float64(): r"^[+-]?\d{1,15}(\.\d{1,15})?$",
}


def _read(value: Value, target: pa.DataType) -> str:
    """Read a text of a known form; one of another form ends the run."""
    made = f"TRY_CAST({value.sql} AS {duck_name(target)})"
    if target == INSTANT:
        made = _instant(value.sql)
    known = f"regexp_matches({value.sql}, {text(_FORMS[target])})"
    reason = f"a text is no plain {spark_name(target)}; Spark may read it in its own way"
    return unless(f"NOT {known} OR {value.sql} IS NOT NULL AND {made} IS NULL", reason, made)


def _instant(sql: str) -> str:
    """Read a time with its offset from UTC, which DuckDB would leave out."""
    local = f"TRY_CAST(regexp_replace({sql}, '(Z|{_OFFSET})$', '') AS TIMESTAMP)"
    offset = f"regexp_extract({sql}, '{_OFFSET}')"
    hours, minutes = (
        f"coalesce(TRY_CAST(substring({offset}, {at}, 2) AS BIGINT), 0)" for at in (2, 5)
    )
    sign = f"CASE WHEN starts_with({offset}, '-') THEN -60000000 ELSE 60000000 END"
    return f"make_timestamp(epoch_us({local}) - ({hours} * 60 + {minutes}) * {sign})"


def cast(value: Value, target: pa.DataType, *, trial: bool = False) -> Value:
    """Return a value as another type, where Spark and DuckDB agree what that is."""
    source = value.type
    sql = _cast_sql(value, source, target, trial=trial)
    if sql is None:
        raise Obstacle(f"CAST from {spark_name(source)} to {spark_name(target)} is Spark's")
    return Value(sql, target, value.name, value.literal)


def _cast_sql(value: Value, source: pa.DataType, target: pa.DataType, *, trial: bool) -> str | None:
    plain = f"CAST({value.sql} AS {duck_name(target)})"
    if source == target:
        return value.sql
    if pa.types.is_null(source):
        return f"CAST(NULL AS {duck_name(target)})"
    if source in INTEGERS and (target in INTEGERS or target in REALS):
        wider = target in REALS or INTEGERS.index(target) >= INTEGERS.index(source)
        return plain.replace("CAST", "TRY_CAST", 1) if trial and not wider else plain
    if source in INTEGERS and pa.types.is_decimal(target):
        return plain if not trial else None
    if pa.types.is_decimal(source) and target == pa.float64():
        if isinstance(value.literal, Decimal):
            return f"CAST('{value.literal}' AS DOUBLE)"
        return f"CAST(CAST({value.sql} AS VARCHAR) AS DOUBLE)"
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        return plain if not trial else None
    if source == pa.float32() and target == pa.float64():
        return plain
    if source in REALS and target in INTEGERS and not trial:
        return _whole(f"CAST({value.sql} AS DOUBLE)", target)
    if pa.types.is_date(source) and is_time(target):
        return plain
    if is_time(source) and (pa.types.is_date(target) or is_time(target)):
        return value.sql if is_time(target) else plain
    if source == INSTANT and target == pa.int64():
        return floored(f"epoch_us({value.sql})", 1_000_000)
    if target == pa.string():
        return _written(value, source)
    if source == pa.string() and target in _FORMS and not trial:
        return _read(value, target)
    return None


def _whole(sql: str, target: pa.DataType) -> str:
    """Cut a number towards zero; what is no integer of the type ends the run, as in Spark."""
    reason = f"a number is out of the range of {spark_name(target)}"
    limit = 2 ** (8 * 2 ** INTEGERS.index(target) - 1)
    outside = f"isnan({sql}) OR trunc({sql}) >= {limit}::DOUBLE OR trunc({sql}) < -{limit}::DOUBLE"
    return unless(outside, reason, f"CAST(trunc({sql}) AS {duck_name(target)})")


def _written(value: Value, source: pa.DataType) -> str | None:
    if source in INTEGERS or source in (pa.bool_(), pa.date32()):
        return f"CAST({value.sql} AS VARCHAR)"
    return None


def together(values: Sequence[Value], what: str) -> list[Value]:
    """Return values as the one type that Spark brings them to."""
    target = widest((value.type for value in values), what)
    return [cast(value, target) for value in values]
