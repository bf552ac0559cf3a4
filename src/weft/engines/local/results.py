"""Results as tables: columns of all windows of a query, in the order of (end, window, start, key)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.lowering import typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.coding import Array
    from weft.engines.local.keys import KeyCodes
    from weft.kernels.partials import Int64s

_MOST = 2**63 - 1


class Closed(NamedTuple):
    """The closed instances of one window of a query, with their lowered aggregates."""

    label: str
    place: int  # of the window in its query
    keys: npt.NDArray[np.integer]
    starts_us: Int64s
    ends_us: Int64s
    values: tuple[Array, ...]
    unique: bool  # no two rows of a key have the same bounds


def result_table(schema: pa.Schema, keys: KeyCodes, closed: Sequence[Closed]) -> pa.Table:
    """Put the instances of all windows into one table, ordered and typed."""
    closed = [one for one in closed if one.keys.size]
    if not closed:
        return schema.empty_table()
    codes = np.concatenate([one.keys for one in closed])
    starts_us = np.concatenate([one.starts_us for one in closed])
    ends_us = np.concatenate([one.ends_us for one in closed])
    sizes = [one.keys.size for one in closed]
    order = result_order(closed, codes, starts_us, ends_us, keys.ranks())
    labels = pa.array([one.label for one in closed])
    places = np.repeat(np.arange(len(closed)), sizes)
    columns: list[Any] = [
        *keys.decode(codes[order]),
        labels.take(pa.array(places[order])),
        pa.array(starts_us[order]),
        pa.array(ends_us[order]),
    ]
    rows = pa.array(order)
    for at in range(len(closed[0].values)):
        parts = _alike([one.values[at] for one in closed])
        columns.append(pa.concat_arrays(parts).take(rows))
    arrays = [typed(array, field.type) for array, field in zip(columns, schema, strict=True)]
    fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
    return pa.table(arrays, schema=pa.schema(fields))


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
    closed: Sequence[Closed],
    codes: npt.NDArray[np.integer],
    starts_us: Int64s,
    ends_us: Int64s,
    ranks: Int64s,
) -> npt.NDArray[np.intp]:
    """Order rows by (end, window, start, key): as one integer where it fits, by columns else."""
    sizes = [one.keys.size for one in closed]
    places = np.repeat(np.array([one.place for one in closed], np.int64), sizes)
    first = int(ends_us.min())
    grain = int(np.gcd.reduce(ends_us - first)) or 1
    # Of equal ends the longer instance starts first. A periodic window has but one length.
    longest = np.repeat([int((one.ends_us - one.starts_us).max()) for one in closed], sizes)
    shorter = longest - (ends_us - starts_us)
    counts = (
        (int(ends_us.max()) - first) // grain + 1,
        int(places.max()) + 1,
        int(shorter.max()) + 1,
        max(ranks.size, 1),
    )
    if counts[0] * counts[1] * counts[2] * counts[3] > _MOST:
        return np.lexsort((ranks[codes], starts_us, places, ends_us))
    number = (ends_us - first) // grain
    for column, count in zip((places, shorter, ranks[codes]), counts[1:], strict=True):
        number = number * count + column
    # Windows that events delimit may have equal bounds; those keep the order of their events.
    return np.argsort(number, kind=None if all(one.unique for one in closed) else "stable")
