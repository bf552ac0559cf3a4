"""Whether two tables of results are the same rows, column by column, without a loop over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.frames import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from weft.aggregates import AggregateCall
    from weft.query import AnyQuery

# Doubles may differ in their last bits, because sums are taken in another order.
RELATIVE_ERROR = 1e-9


class Difference(NamedTuple):
    """The first row in which two results differ."""

    query: str
    engine: str
    column: str
    window: str
    key: tuple[Any, ...]
    wanted: Any
    got: Any

    def __str__(self) -> str:
        where = f"query {self.query!r}, window {self.window}, key {self.key}"
        if self.column == "":
            return f"{where}: {self.engine} has {self.got}, the other has {self.wanted}"
        return f"{where}: {self.column} is {self.got!r} on {self.engine}, not {self.wanted!r}"


def first_difference(
    query: AnyQuery, got: pa.Table, wanted: pa.Table, engine: str
) -> Difference | None:
    """Return the first difference between two results of a query, rows in any order, or None.

    Exact columns must be equal; doubles may differ by 1e-9 of their size; approximate aggregates
    by the error they declare.
    """
    for name, wanted_type in zip(wanted.schema.names, wanted.schema.types, strict=True):
        found = got.schema.field(name).type if name in got.schema.names else None
        if found is None or _family(found) != _family(wanted_type):
            texts = str(wanted_type), "no such column" if found is None else str(found)
            return Difference(query.name, engine, name, "any", (), *texts)
    identity = [*(name for name, _ in query.keys), *query.window_columns]
    got, wanted = _sorted(got, identity), _sorted(wanted, identity)
    rows = min(got.num_rows, wanted.num_rows)
    unequal = np.zeros(rows, bool)
    for name in identity:
        unequal |= ~_equal(got[name].slice(0, rows), wanted[name].slice(0, rows), 0.0)
    if unequal.any() or got.num_rows != wanted.num_rows:
        at = int(np.argmax(unequal)) if unequal.any() else rows
        return _missing_row(query, got, wanted, at, engine)
    for alias, call in query.aggs:
        place = first_unlike(got[alias], wanted[alias], call)
        if place is not None:
            values = wanted[alias][place].as_py(), got[alias][place].as_py()
            return Difference(query.name, engine, alias, *_place(query, wanted, place), *values)
    return None


def first_unlike(
    got: pa.ChunkedArray[Any], wanted: pa.ChunkedArray[Any], call: AggregateCall
) -> int | None:
    """Return the first row in which two columns of an aggregate differ, or None.

    >>> from weft import agg
    >>> first_unlike(pa.chunked_array([[1, None]]), pa.chunked_array([[1, 2]]), agg.count())
    1
    """
    same = _equal(got, wanted, _allowed_error(call), call.aggregate.absolute_error)
    return None if same.all() else int(np.argmin(same))


def _allowed_error(call: AggregateCall) -> float:
    """An aggregate that picks one of its inputs must be exact, doubles or not."""
    if call.laws().selective:
        return 0.0
    return max(call.aggregate.relative_error, RELATIVE_ERROR)


def _family(type: pa.DataType) -> str:
    """Types whose values compare: engines may differ in width and unit, not in kind."""
    tests: dict[str, Callable[[pa.DataType], bool]] = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "floating": pa.types.is_floating,
        "decimal": pa.types.is_decimal,
        "timestamp": pa.types.is_timestamp,
    }
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return f"list of {_family(type.value_type)}"  # engines call an element what they like
    text = pa.types.is_string(type) or pa.types.is_large_string(type)
    known = next((name for name, test in tests.items() if test(type)), str(type))
    return "text" if text or pa.types.is_string_view(type) else known


def _sorted(table: pa.Table, by: list[str]) -> pa.Table:
    if not table.num_rows:
        return table
    parts = in_parts(table, by)
    plain = parts.append_column("position", pa.array(range(table.num_rows)))
    order = pc.sort_indices(plain, sort_keys=[(name, "ascending") for name in plain.column_names])
    return table.take(order)


def _same(got: Any, wanted: Any) -> bool:
    """Compare nested values; NaN equals NaN."""
    if isinstance(got, list) and isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(_same, got, wanted))
    if isinstance(got, dict) and isinstance(wanted, dict):
        return all(map(_same, got.values(), wanted.values()))
    return bool(got == wanted or (got != got and wanted != wanted))


def _equal(
    got: pa.ChunkedArray[Any],
    wanted: pa.ChunkedArray[Any],
    error: float,
    near_zero: float = 0.0,
) -> npt.NDArray[np.bool_]:
    """Compare two columns value by value; NULL equals NULL, NaN equals NaN."""
    if pa.types.is_nested(wanted.type):
        pairs = zip(got.to_pylist(), wanted.to_pylist(), strict=True)
        return np.array([_same(a, b) for a, b in pairs], bool)
    if pa.types.is_null(wanted.type):
        return np.ones(len(wanted), bool)
    nulls = _mask(pc.is_null(got)) & _mask(pc.is_null(wanted))
    approximate = error > RELATIVE_ERROR and pa.types.is_integer(wanted.type)
    if not (pa.types.is_floating(wanted.type) or approximate):
        return nulls | _mask(pc.equal(got.cast(wanted.type), wanted))
    a, b = _doubles(got), _doubles(wanted)
    with np.errstate(invalid="ignore"):
        near = np.isfinite(a) & np.isfinite(b)
        near &= np.abs(a - b) <= error * np.maximum(np.abs(a), np.abs(b)) + near_zero
    both_nan = np.isnan(a) & np.isnan(b)
    one_null = _mask(pc.is_null(got)) ^ _mask(pc.is_null(wanted))
    same: npt.NDArray[np.bool_] = nulls | ((near | (a == b) | both_nan) & ~one_null)
    return same


def _doubles(column: pa.ChunkedArray[Any]) -> npt.NDArray[np.float64]:
    wide = pc.cast(column, pa.float64(), safe=False)
    return np.asarray(wide.to_numpy(zero_copy_only=False), np.float64)


def _mask(values: Any) -> npt.NDArray[np.bool_]:
    filled = pc.fill_null(values, False)
    return np.asarray(filled.to_numpy(zero_copy_only=False), bool)


def _place(query: AnyQuery, table: pa.Table, at: int) -> tuple[str, tuple[Any, ...]]:
    label, start, end = (table[name][at].as_py() for name in query.window_columns)
    return f"{label} [{start}, {end})", tuple(table[name][at].as_py() for name, _ in query.keys)


def _missing_row(
    query: AnyQuery, got: pa.Table, wanted: pa.Table, at: int, engine: str
) -> Difference:
    """Name the row that only one side has; both are sorted, so it is the lesser of the two."""
    sides: Mapping[bool, pa.Table] = {True: got, False: wanted}
    only_got = at >= wanted.num_rows
    if at < got.num_rows and at < wanted.num_rows:
        identity = [*(name for name, _ in query.keys), *query.window_columns]
        pair = pa.concat_tables(
            [got.select(identity).slice(at, 1), wanted.select(identity).slice(at, 1)]
        )
        order = pc.sort_indices(pair, sort_keys=[(name, "ascending") for name in identity])
        only_got = order[0].as_py() == 0
    place = _place(query, sides[only_got], at)
    texts = ("no such row", "a row") if only_got else ("a row", "no such row")
    return Difference(query.name, engine, "", *place, *texts)
