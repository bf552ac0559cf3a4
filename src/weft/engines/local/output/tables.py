"""Results as tables: rows of all windows of a query, in the order of (end, window, start, key)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.output.counting_order import Placement, placed
from weft.engines.local.partials.lower import typed
from weft.engines.local.values.arrow import of_numbers
from weft.kernels.parallel import over_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.output.closed import Closed
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.values.keys import KeyCodes
    from weft.kernels.partials import Int64s

FEW_ROWS = 1 << 14


def result_table(
    schema: pa.Schema, labels: Sequence[str], keys: KeyCodes, closed: Sequence[Closed]
) -> pa.Table:
    """Put the instances of all windows into one table, ordered and typed.

    `labels` has the names of the windows by their places.
    """
    closed = [one for one in closed if one.keys.size]
    if not closed:
        return schema.empty_table()
    start_type, end_type = schema.types[keys.width + 1 : keys.width + 3]  # both in microseconds
    names: Array = pa.array(labels, pa.string())
    values = [[one.values[at] for one in closed] for at in range(len(closed[0].values))]
    placement = _placed(closed, keys)
    if placement is not None:
        codes = placement.written([one.keys for one in closed])
        starts = of_numbers(placement.starts_us, start_type)
        ends = of_numbers(placement.ends_us, end_type)
        texts = names.take(pa.array(placement.places))
        window = [placement.repeated(of_runs) for of_runs in (texts, starts, ends)]
        taken = _values_placed(values, placement)
    else:
        codes, places, starts_us, ends_us, taken = _in_order(closed, values, keys)
        starts, ends = of_numbers(starts_us, start_type), of_numbers(ends_us, end_type)
        window = [names.take(pa.array(places)), starts, ends]
    columns = [*keys.decode(codes), *window, *taken]
    types = schema.types
    arrays = [typed(array, type) for array, type in zip(columns, types, strict=True)]
    if any(array.type != type for array, type in zip(arrays, types, strict=True)):
        fields = [pa.field(f.name, a.type) for f, a in zip(schema, arrays, strict=True)]
        schema = pa.schema(fields)  # of a custom aggregate only its values tell the type
    return pa.Table.from_arrays(arrays, schema=schema)


def _placed(closed: Sequence[Closed], keys: KeyCodes) -> Placement | None:
    """Find the places of many rows that are not in order yet, where counting tells them."""
    if closed[0].ordered or sum(one.keys.size for one in closed) <= FEW_ROWS:
        return None
    return placed(closed, keys.ranks())


def _values_placed(values: Sequence[list[Array]], placement: Placement) -> list[Array]:
    columns = [placement.in_order(parts) for parts in values]
    if any(column is None for column in columns):
        rows: Array = pa.array(placement.order())
        return [
            _concatenated_arrays(parts).take(rows) if column is None else column
            for column, parts in zip(columns, values, strict=True)
        ]
    return columns


def _in_order(
    closed: Sequence[Closed], values: Sequence[list[Array]], keys: KeyCodes
) -> tuple[npt.NDArray[np.integer], Int64s, Int64s, Int64s, list[Array]]:
    """Return codes, places, starts, ends and values of all rows, sorted unless they are."""
    codes, places, starts_us, ends_us = (
        _concatenated([one[at] for one in closed]) for at in (2, 1, 3, 4)
    )
    given = [_concatenated_arrays(parts) for parts in values]
    if len(closed) == 1 and closed[0].ordered:
        return codes, places, starts_us, ends_us, given
    order = result_order(ends_us, places, starts_us, keys.ranks()[codes])
    rows: Array = pa.array(order)
    taking = [(column, order) for column in (codes, places, starts_us, ends_us)]
    taking += [(column, rows) for column in given]
    codes, places, starts_us, ends_us, *taken = over_parts(
        lambda pair: pair[0].take(pair[1]), taking, order.size
    )
    return codes, places, starts_us, ends_us, taken


def _concatenated(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _concatenated_arrays(parts: list[Array]) -> Array:
    alike = parts if len(parts) == 1 else _alike(parts)
    return alike[0] if len(alike) == 1 else pa.concat_arrays(alike)


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


def result_order(ends_us: Int64s, places: Int64s, starts_us: Int64s, ranks: Int64s) -> Int64s:
    """Order rows by (end, window, start, key), equal ones as they came.

    >>> a, b = np.array([4, 4, 2]), np.array([0, 0, 0])
    >>> result_order(a, b, a - 2, np.array([1, 0, 1])).tolist()
    [2, 1, 0]
    """
    return np.lexsort((ranks, starts_us, places, ends_us))
