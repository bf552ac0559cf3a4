"""Events that know the types of their columns, which their values alone do not tell."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.kinds import INSTANT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.engines.types import Types

Row = Mapping[str, Any]


class EventRow(dict[str, Any]):
    """One event of a table; all events of a table share `types`."""

    __slots__ = ("types",)

    def __init__(self, values: Mapping[str, Any], types: Types) -> None:
        super().__init__(values)
        self.types = types


def rows_of(table: pa.Table) -> list[EventRow]:
    """Read a table into events.

    >>> (row,) = rows_of(pa.table({"x": pa.array([1], pa.int8())}))
    >>> row, row.types
    ({'x': 1}, {'x': DataType(int8)})
    """
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    return [EventRow(values, types) for values in table.to_pylist()]


def guessed_types(row: Row, names: Iterable[str]) -> tuple[tuple[str, pa.DataType], ...]:
    """Guess the types of some columns from their values, for events that come without."""
    return tuple((name, _guessed(row[name])) for name in names if name in row)


_PLAIN: dict[type, pa.DataType] = {
    type(None): pa.null(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


def _guessed(value: Any) -> pa.DataType:
    plain = _PLAIN.get(type(value))
    if plain is not None:
        return plain
    match value:
        case Decimal():
            exponent = value.as_tuple().exponent
            return pa.decimal128(38, -exponent if isinstance(exponent, int) else 0)
        case dt.datetime():
            return INSTANT if value.tzinfo is not None else pa.timestamp("us")
        case dt.date():
            return pa.date32()
        case _:
            found: pa.DataType = pa.scalar(value).type
            return found
