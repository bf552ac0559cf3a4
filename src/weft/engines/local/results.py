"""Results as tables: rows of all windows of a query, in the order of (end, window, start, key)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.lowering import typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.arrow import Array
    from weft.engines.local.keys import KeyCodes
    from weft.kernels.partials import Int64s

_MOST = 2**63 - 1


class Closed(NamedTuple):
    """Closed instances of one or several windows of a query, with their lowered aggregates."""

    query: str
    places: Int64s  # of each row's window in its query
    keys: npt.NDArray[np.integer]
    starts_us: Int64s
    ends_us: Int64s
    values: tuple[Array, ...]
    unique: bool  # no two rows of a key and window have the same bounds


def result_table(
    schema: pa.Schema, labels: Sequence[str], keys: KeyCodes, closed: Sequence[Closed]
) -> pa.Table:
    """Put the instances of all windows into one table, ordered and typed."""
    closed = [one for one in closed if one.keys.size]
    if not closed:
        return schema.empty_table()
    codes, places, starts_us, ends_us = (
        _concatenated([one[at] for one in closed]) for at in (2, 1, 3, 4)
    )
    unique = all(one.unique for one in closed)
    order = result_order(ends_us, places, starts_us, keys.ranks()[codes], unique=unique)
    rows = pa.array(order)
    columns: list[Any] = [
        *keys.decode(codes[order]),
        pa.array(labels, pa.string()).take(pa.array(places[order])),
        pa.array(starts_us[order]),
        pa.array(ends_us[order]),
    ]
    for at in range(len(closed[0].values)):
        parts = _alike([one.values[at] for one in closed])
        columns.append((parts[0] if len(parts) == 1 else pa.concat_arrays(parts)).take(rows))
    arrays = [typed(array, field.type) for array, field in zip(columns, schema, strict=True)]
    fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


def _concatenated(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _alike(parts: list[Array]) -> list[Array]:
    """Bring values whose type only they tell, those of custom aggregates, to one type."""
    types = {part.type for part in parts if not pa.types.is_null(part.type)}
    if len({part.type for part in parts}) == 1 or not types:
        return parts
    if len(types) == 1:
        (one,) = types
        return [part.cast(one) for part in parts]
    told: Array = pa.array([value for part in parts for value in part.to_pylist()])
    return [told]


def result_order(
    ends_us: Int64s, places: Int64s, starts_us: Int64s, ranks: Int64s, *, unique: bool
) -> npt.NDArray[np.intp]:
    """Order rows by (end, window, start, key): as one integer where it fits, by columns else.

    >>> a, b = np.array([4, 4, 2]), np.array([0, 0, 0])
    >>> result_order(a, b, a - 2, np.array([1, 0, 1]), unique=True).tolist()
    [2, 1, 0]
    """
    first = int(ends_us.min())
    grain = int(np.gcd.reduce(ends_us - first)) or 1
    # Of equal ends the longer instance starts first. A periodic window has but one length, which
    # is left out: only what an instance is shorter than the longest of its window counts.
    lengths = ends_us - starts_us
    longest = np.zeros(int(places.max()) + 1, np.int64)
    np.maximum.at(longest, places, lengths)
    shorter = longest[places] - lengths
    columns = ((ends_us - first) // grain, places, shorter, ranks)
    counts = [int(column.max()) + 1 for column in columns]
    if counts[0] * counts[1] * counts[2] * counts[3] > _MOST:
        return np.lexsort((ranks, starts_us, places, ends_us))
    number = columns[0]
    for column, count in zip(columns[1:], counts[1:], strict=True):
        number = number * count + column
    # Windows that events delimit may have equal bounds; those keep the order of their events.
    return np.argsort(number, kind=None if unique else "stable")
