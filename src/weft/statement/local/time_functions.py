"""Functions of times and dates that DuckDB computes to Spark's answer, in UTC."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.statement.local.column_types import INSTANT, INTEGERS, is_time
from weft.statement.local.rules import Rule, need
from weft.statement.local.values import Value, cast, floored, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EXTRACTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "dayofmonth": "day",
    "dayofyear": "dayofyear",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}
_CLOCK = ("hour", "minute", "second")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_PATTERNS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def _moment(value: Value) -> Value:
    """Read a time, a date, or the text of a time as a time."""
    if is_time(value.type):
        return value
    need(value.type in (pa.date32(), pa.string()))
    return cast(value, INSTANT)


def _extract(part: str) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        (one,) = values
        if part in _CLOCK or one.type != pa.date32():
            one = _moment(one)
        return Value(f"CAST({_EXTRACTS[part]}({one.sql}) AS INTEGER)", pa.int32())

    return rule


def _dayofweek(shift: str) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        one = values[0] if values[0].type == pa.date32() else _moment(values[0])
        return Value(f"CAST({shift.format(f'dayofweek({one.sql})')} AS INTEGER)", pa.int32())

    return rule


def _date_trunc(values: Sequence[Value]) -> Value:
    unit, time = values
    word = str(unit.literal).casefold()
    need(isinstance(unit.literal, str) and word in _UNITS)
    time = cast(_moment(time), INSTANT)  # of a time without a zone too
    made = f"CAST(date_trunc('{word}', {time.sql}) AS TIMESTAMP)"
    return Value(made, time.type)


def _to_date(values: Sequence[Value]) -> Value:
    (one,) = values
    need(is_time(one.type) or one.type in (pa.date32(), pa.string()))
    return cast(one, pa.date32()).named(None)


def _to_timestamp(values: Sequence[Value]) -> Value:
    (one,) = values
    return cast(_moment(one), INSTANT).named(None)


def _unix(unit_us: int) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        (one,) = values
        need(one.type == INSTANT)
        made = f"epoch_us({one.sql})"
        if unit_us > 1:
            made = floored(made, unit_us)
        return Value(made, pa.int64())

    return rule


def _from_unix(unit_us: int) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        (one,) = values
        need(one.type in INTEGERS)
        return Value(f"make_timestamp({cast(one, pa.int64()).sql} * {unit_us})", INSTANT)

    return rule


def _date_format(values: Sequence[Value]) -> Value:
    time, pattern = values
    need(isinstance(pattern.literal, str))
    written, rest = "", str(pattern.literal)
    while rest:
        known = next((word for word in _PATTERNS if rest.startswith(word)), None)
        if known is None:
            need(not rest[0].isalpha() and rest[0] not in "'%[]#{}")
            written, rest = written + rest[0], rest[1:]
        else:
            written, rest = written + _PATTERNS[known], rest[len(known) :]
            need(not rest.startswith(known[0]))
    return Value(f"strftime({_moment(time).sql}, {text(written)})", pa.string())


def _datediff(values: Sequence[Value]) -> Value:
    end, start = (_to_date([value]) for value in values)
    return Value(f"CAST({end.sql} - {start.sql} AS INTEGER)", pa.int32())


def _date_moved(sign: str) -> Rule:
    def rule(values: Sequence[Value]) -> Value:
        day, count = values
        need(count.type in INTEGERS[:3])
        made = f"({_to_date([day]).sql} {sign} CAST({count.sql} AS INTEGER))"
        return Value(made, pa.date32())

    return rule


def _last_day(values: Sequence[Value]) -> Value:
    (one,) = values
    return Value(f"last_day({_to_date([one]).sql})", pa.date32())


def _window_time(values: Sequence[Value]) -> Value:
    (one,) = values
    need(pa.types.is_struct(one.type) and [f.name for f in one.type] == ["start", "end"])
    made = f"make_timestamp(epoch_us(struct_extract({one.sql}, 'end')) - 1)"
    return Value(made, one.type.field(1).type)


TIME_FUNCTIONS: Mapping[str, Rule] = MappingProxyType(
    {
        "date": _to_date,
        "date_add": _date_moved("+"),
        "date_format": _date_format,
        "date_sub": _date_moved("-"),
        "date_trunc": _date_trunc,
        "datediff": _datediff,
        **{part: _extract(part) for part in _EXTRACTS},
        "dayofweek": _dayofweek("{} + 1"),
        "last_day": _last_day,
        "timestamp": _to_timestamp,
        "timestamp_micros": _from_unix(1),
        "timestamp_millis": _from_unix(1_000),
        "timestamp_seconds": _from_unix(1_000_000),
        "to_date": _to_date,
        "to_timestamp": _to_timestamp,
        "unix_micros": _unix(1),
        "unix_millis": _unix(1_000),
        "unix_seconds": _unix(1_000_000),
        "weekday": _dayofweek("(({} + 6) % 7)"),
        "window_time": _window_time,
    }
)
