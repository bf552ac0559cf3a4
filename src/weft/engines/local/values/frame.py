"""A batch as plain Arrow arrays by name: one chunk each, no dictionaries, microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.local.values.arrow import Array, pc
from weft.errors import DataError
from weft.frames import in_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Columns of equal length."""

    columns: Mapping[str, Array]
    rows: int

    @classmethod
    def of(cls, table: pa.Table, names: Iterable[str]) -> Frame:
        """Take some columns of a table; a missing one is an error.

        >>> Frame.of(pa.table({"a": [1, 2]}), ["a"]).rows
        2
        """
        schema = table.schema
        for name in names:
            if schema.get_field_index(name) < 0 and name not in schema.names:
                raise DataError(
                    f"the events have no column {name!r}",
                    hint=f"the columns are {', '.join(schema.names)}",
                )
        return cls({name: plain(table.column(name)) for name in names}, table.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        return pa.schema([(name, array.type) for name, array in self.columns.items()])

    def filter(self, mask: Array) -> Frame:
        """Keep the rows for which the mask is true."""
        columns = {name: array.filter(mask) for name, array in self.columns.items()}
        kept = pc.sum(mask).as_py() or 0
        return Frame(columns, kept)

    def take(self, rows: Any) -> Frame:
        """Select rows by position."""
        at = pa.array(rows)
        columns = {name: array.take(at) for name, array in self.columns.items()}
        return Frame(columns, len(at))


def plain(column: pa.ChunkedArray[Any]) -> Array:
    """Bring a column to one chunk of its plain type, instants in microseconds."""
    type = column.type
    if pa.types.is_dictionary(type):
        column, type = column.cast(type.value_type), type.value_type
    if pa.types.is_timestamp(type):
        column = in_microseconds(column)
    elif pa.types.is_string_view(type):
        column = column.cast(pa.string())
    array: Array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return array
