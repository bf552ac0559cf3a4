"""What rules of functions have in common: which arguments they are for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from weft.statement.local.values import Value, cast

Rule = Callable[[Sequence[Value]], Value]


class Mismatch(Exception):
    """Arguments that a rule is not for."""


def need(condition: bool) -> None:
    """End a rule whose arguments are not those that it is for."""
    if not condition:
        raise Mismatch


def texts(values: Sequence[Value]) -> list[str]:
    """Return arguments that are texts, as DuckDB has them."""
    need(all(value.type in (pa.string(), pa.null()) for value in values))
    return [cast(value, pa.string()).sql for value in values]
