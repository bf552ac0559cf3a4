"""Results as tables: rows of all windows of a query, in the order of (end, window, start, key)."""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.output.counting_order import MOST_BUCKETS, Placement, placed
from weft.engines.local.partials.lower import typed
from weft.engines.local.values.arrow import buffer, from_buffers, of_numbers
from weft.kernels.compiled import unlocked
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
    values = [[one.values[at] for one in closed] for at in range(len(closed[0].values))]
    placement = _placed(closed, keys)
    if placement is not None:
        codes = placement.written([one.keys for one in closed])
        texts = _texts(tuple(labels))[0].take(pa.array(placement.places))
        starts = of_numbers(placement.starts_us, start_type)
        ends = of_numbers(placement.ends_us, end_type)
        window = [placement.repeated(of_runs) for of_runs in (texts, starts, ends)]
        taken = _values_placed(values, placement)
    else:
        codes, places, starts_us, ends_us, taken = _in_order(closed, values, keys)
        starts, ends = of_numbers(starts_us, start_type), of_numbers(ends_us, end_type)
        window = [_labelled(tuple(labels), places), starts, ends]
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


def _labelled(labels: tuple[str, ...], places: Int64s) -> Array:
    """Spell out the window of each row; of few rows without Arrow, whose calls take longer."""
    texts, longest, starts, letters = _texts(labels)
    if places.size > FEW_ROWS:
        return texts.take(pa.array(places))
    ends = np.empty(places.size + 1, np.int32)
    spelled = np.empty(longest * places.size, np.uint8)
    size = _spell(places, starts, letters, ends, spelled)
    buffers = [None, buffer(ends), buffer(spelled[:size])]
    return from_buffers(pa.string(), places.size, buffers)


@lru_cache(maxsize=1 << 8)
def _texts(labels: tuple[str, ...]) -> tuple[Array, int, Int64s, npt.NDArray[np.uint8]]:
    """Return labels as an array, and as letters: the most of one, where each begins, and all."""
    spelled = [label.encode() for label in labels]
    sizes = [*map(len, spelled)]
    letters = np.frombuffer(b"".join(spelled), np.uint8)
    return pa.array(labels, pa.string()), max(sizes), np.cumsum([0, *sizes]), letters


@unlocked
def _spell(
    places: Int64s,
    starts: Int64s,
    letters: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
) -> int:
    size = 0
    ends[0] = 0
    for i in range(places.size):
        for at in range(starts[places[i]], starts[places[i] + 1]):
            out[size] = letters[at]
            size += 1
        ends[i + 1] = size
    return size


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

    Sorts by counting, twice: by key, then by instance. Where the instances are so far apart that
    there is no counting them, by comparison.

    >>> a, b = np.array([4, 4, 2]), np.array([0, 0, 0])
    >>> result_order(a, b, a - 2, np.array([1, 0, 1])).tolist()
    [2, 1, 0]
    """
    order = np.empty(ends_us.size, np.int64)
    if order.size and not _ordered(ends_us, places, starts_us, ranks, MOST_BUCKETS, order):
        return np.lexsort((ranks, starts_us, places, ends_us))
    return order


@unlocked
def _survey(
    ends_us: Int64s, places: Int64s, starts_us: Int64s, longest: Int64s
) -> tuple[int, int, int, int]:
    """Return the first and last end, what all ends are multiples of, and the largest shortfall.

    Writes the longest instance of each window.
    """
    first, last = ends_us[0], ends_us[0]
    for i in range(ends_us.size):
        first, last = min(first, ends_us[i]), max(last, ends_us[i])
        longest[places[i]] = max(longest[places[i]], ends_us[i] - starts_us[i])
    grain, shortest, before = np.int64(0), np.int64(0), first
    for i in range(ends_us.size):
        shortest = max(shortest, longest[places[i]] - (ends_us[i] - starts_us[i]))
        if ends_us[i] != before:  # mostly the same few ends, whose divisor is known
            before = ends_us[i]
            grain = np.int64(gcd(before - first, grain))
    return int(first), int(last), max(int(grain), 1), int(shortest)


@unlocked
def _number(
    ends_us: Int64s,
    places: Int64s,
    starts_us: Int64s,
    longest: Int64s,
    first: int,
    grain: int,
    lengths: int,
    buckets: Int64s,
) -> None:
    """Number instances in their order."""
    for i in range(ends_us.size):
        shorter = longest[places[i]] - (ends_us[i] - starts_us[i])
        ordinal = (ends_us[i] - first) // grain * longest.size + places[i]
        buckets[i] = ordinal * lengths + shorter


@unlocked
def _distribute(numbers: Int64s, rows: Int64s, counts: Int64s, out: Int64s) -> None:
    """Sort rows by their numbers, those of one number staying in order."""
    for i in range(numbers.size):
        counts[numbers[i] + 1] += 1
    for i in range(1, counts.size):
        counts[i] += counts[i - 1]
    for i in range(rows.size):
        number = numbers[rows[i]]
        out[counts[number]] = rows[i]
        counts[number] += 1


def _ordered(
    ends_us: Int64s, places: Int64s, starts_us: Int64s, ranks: Int64s, most: int, order: Int64s
) -> bool:
    """Write the order, or tell that it would take more than `most` buckets a row."""
    # Of equal ends the longer instance starts first. A periodic window has but one length, which
    # is left out: only what an instance is shorter than the longest of its window counts.
    longest = np.zeros(places.max() + 1, np.int64)
    first, last, grain, shortest = _survey(ends_us, places, starts_us, longest)
    # Divided by one count after the other: their product may take more than 64 bits.
    instants = (last - first) // grain + 1
    if not 0 < instants <= most * order.size // longest.size // (shortest + 1):
        return False
    count = instants * longest.size * (shortest + 1)
    rows, by_key, buckets = np.arange(order.size), np.empty_like(order), np.empty_like(order)
    _distribute(ranks, rows, np.zeros(ranks.max() + 2, np.int64), by_key)
    _number(ends_us, places, starts_us, longest, first, grain, shortest + 1, buckets)
    _distribute(buckets, by_key, np.zeros(count + 1, np.int64), order)
    return True
