"""Names in a query: which column each means, as Spark looks it up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from weft.errors import suggest
from weft.statement.local.values import Value, text
from weft.statement.relations import Obstacle

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Field:
    """A column that a query reads, and the alias of the table that it comes from."""

    value: Value
    table: str | None = None  # in lower case
    hidden: bool = False  # joined by USING: found under the alias of its table only

    @property
    def name(self) -> str | None:
        """The name of the column."""
        return self.value.name


@dataclass(frozen=True)
class Scope:
    """The columns that FROM offers, and those of the query around."""

    fields: tuple[Field, ...] = ()
    outer: Scope | None = None
    aliases: dict[str, Value] = field(default_factory=dict)  # of items before, in lower case

    def lookup(self, parts: Sequence[str]) -> Value:
        """Return what a name with dots means."""
        found = self._find([part.casefold() for part in parts], list(parts))
        if found is not None:
            return found
        known = [f.name for scope in self._all() for f in scope.fields if f.name is not None]
        hint = suggest(parts[-1], known, f"known are {', '.join(known)}")
        raise Obstacle(f"no table that it reads has a column {'.'.join(parts)}: {hint}")

    def knows(self, name: str) -> bool:
        """Tell whether FROM itself has a column of this name."""
        return any(_is(f.name, name.casefold()) for f in self.fields)

    def _all(self) -> list[Scope]:
        return [self, *(self.outer._all() if self.outer is not None else ())]

    def _find(self, folded: list[str], parts: list[str]) -> Value | None:
        matches = [
            (f, parts[1:])
            for f in self.fields
            if len(folded) > 1 and f.table == folded[0] and _is(f.name, folded[1])
        ]
        if not matches:
            matches = [(f, parts) for f in self.fields if not f.hidden and _is(f.name, folded[0])]
        if len(matches) > 1:
            raise Obstacle(f"{'.'.join(parts)} may mean several columns")
        if matches:
            ((found, path),) = matches
            return fields_of(found.value.named(path[0]), path[1:])
        if len(folded) >= 1 and folded[0] in self.aliases:
            return fields_of(self.aliases[folded[0]].named(parts[0]), parts[1:])
        return None if self.outer is None else self.outer._find(folded, parts)


def _is(name: str | None, folded: str) -> bool:
    return name is not None and name.casefold() == folded


def fields_of(value: Value, path: Sequence[str]) -> Value:
    """Return a field of a struct, and of structs in it."""
    for name in path:
        if not pa.types.is_struct(value.type):
            raise Obstacle(f"{value.name} is no struct, and has no field {name}")
        own = [f for f in value.type if f.name.casefold() == name.casefold()]
        if len(own) != 1:
            raise Obstacle(f"{value.name} has no field {name}")
        made = f"struct_extract({value.sql}, {text(own[0].name)})"
        value = Value(made, own[0].type, f"{value.name}.{name}" if value.name else None)
    return value


@dataclass(frozen=True)
class Column:
    """A column of a query."""

    name: str | None  # None: only Spark knows it
    type: pa.DataType


@dataclass(frozen=True)
class Rows:
    """A query: its SQL for DuckDB, whose columns are c0, c1, ..., and what Spark says of them."""

    sql: str
    columns: tuple[Column, ...]
