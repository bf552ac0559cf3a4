"""Random draws over whole columns; no draw here loops over rows.

Every column of every set has a random stream of its own, found from the seed and the column's
name. A column that is added, or drawn differently, leaves all the others as they were.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import QueryError
from weft.time import SECOND, instant_us

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# An Arrow array, in one chunk or many; the published stubs of Arrow do not know the two as one.
Column: TypeAlias = Any

TIMESTAMP = pa.timestamp("us", tz="UTC")

# Arrow strings have 32-bit offsets: a column is built in pieces that stay far below 2 GiB.
CHUNK_ROWS = 1 << 20

_LAST_US = instant_us(dt.datetime(9999, 12, 31, tzinfo=dt.UTC))
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)
_DIGITS = np.frombuffer(b"0123456789", dtype=np.uint8)


def stream(seed: int, column: str) -> np.random.Generator:
    """Open the random stream that belongs to `column` under `seed`.

    >>> again = stream(7, "sensors.temp").random(3) == stream(7, "sensors.temp").random(3)
    >>> bool(again.all()), bool(stream(7, "a").random() == stream(7, "b").random())
    (True, False)
    """
    key = tuple(column.encode())
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def steady_us(positions: Ints, rate: float) -> Ints:
    """Place events at a steady `rate` per second: microseconds from the first, rounded down.

    >>> steady_us(np.arange(4), rate=3.0).tolist()
    [0, 333333, 666666, 1000000]
    """
    # Multiplied first: the product is exact, so whole seconds do not lose a microsecond.
    elapsed_us: Ints = np.floor(positions * float(SECOND) / rate).astype(np.int64)
    return elapsed_us


def check_span(rows: int, rate: float, start_us: int, spare_rows: int = 0) -> None:
    """Refuse a set whose last event, and the time of `spare_rows` more, lies beyond the calendar.

    >>> check_span(1000, 1.0, 0)
    >>> check_span(1000, 1e-12, 0)
    Traceback (most recent call last):
    weft.errors.QueryError: 1000 rows at 1e-12 a second do not fit between 1 and 9999 AD
    hint: raise the rate, or move the start
    """
    if abs(start_us) > _LAST_US or start_us + (rows + spare_rows) * (SECOND / rate) > _LAST_US:
        raise QueryError(
            f"{rows} rows at {rate:g} a second do not fit between 1 and 9999 AD",
            hint="raise the rate, or move the start",
        )


def zipf(random: np.random.Generator, rows: int, ranks: int, exponent: float) -> Ints:
    """Draw ranks 0, 1, ... `ranks` - 1 with probability proportional to 1 / (rank + 1)^exponent.

    Exponent 0 is uniform; the larger the exponent, the more rows the first ranks take.

    >>> counts = np.bincount(zipf(stream(7, "example"), 70_000, 3, 2.0))
    >>> (counts / 70_000).round(2).tolist()  # 36, 9 and 4 parts of 49
    [0.73, 0.18, 0.08]
    """
    weights = np.arange(1, ranks + 1, dtype=np.float64) ** -exponent
    return weighted(random, rows, weights)


def weighted(random: np.random.Generator, rows: int, weights: npt.ArrayLike) -> Ints:
    """Draw positions in `weights`, each with a probability proportional to its weight.

    >>> np.bincount(weighted(stream(7, "example"), 1000, [0.0, 1.0, 0.0])).tolist()
    [0, 1000]
    """
    cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
    # The last edge is left out: a draw that rounds up to the total stays in the last position.
    edges = cumulative[:-1] / cumulative[-1]
    return np.searchsorted(edges, random.random(rows), side="right").astype(np.int64)


def uniform_between(random: np.random.Generator, least: Ints, most: Ints) -> Ints:
    """Draw one whole number between `least` and `most`, both included, for each pair of bounds.

    >>> uniform_between(stream(7, "example"), np.array([5, 1]), np.array([5, 1])).tolist()
    [5, 1]
    """
    width = (most - least + 1).astype(np.float64)
    return least + np.floor(random.random(len(least)) * width).astype(np.int64)


def numbers(values: Ints | Floats, missing: Bools | None = None) -> Column:
    """Turn a numpy array into an Arrow column without a copy, NULL where `missing`.

    >>> numbers(np.array([1.5, 0.0]), missing=np.array([False, True])).to_pylist()
    [1.5, None]
    """
    return _fixed_width(pa.from_numpy_dtype(values.dtype), values, missing)


def timestamps(instants_us: Ints) -> Column:
    """Turn microseconds since 1970 into an Arrow column of instants in UTC.

    >>> timestamps(np.array([0])).type
    TimestampType(timestamp[us, tz=UTC])
    """
    return _fixed_width(TIMESTAMP, instants_us, None)


def pick(names: list[str], codes: Ints) -> Column:
    """Spell out a column of positions in `names` as strings.

    >>> pick(["ok", "fault"], np.array([0, 0, 1])).to_pylist()
    ['ok', 'ok', 'fault']
    """
    dictionary = _spelled(names)
    chunks = [
        dictionary.take(numbers(codes[at : at + CHUNK_ROWS]))
        for at in range(0, len(codes), CHUNK_ROWS)
    ]
    return pa.chunked_array(chunks, type=pa.string())


def literal(text: str) -> Any:
    """Wrap one string for Arrow's functions.

    >>> literal("null")
    <pyarrow.StringScalar: 'null'>
    """
    return _spelled([text])[0]


def concat(*pieces: Column | str) -> Column:
    """Set strings side by side, row by row; a NULL in any piece makes the row NULL.

    >>> concat("<", pa.array(["a", None]), ">").to_pylist()
    ['<a>', None]
    """
    parts = [literal(piece) if isinstance(piece, str) else piece for piece in pieces]
    return pc.call_function("binary_join_element_wise", [*parts, literal("")])


def byte_lengths(strings: Column) -> Ints:
    """Count the bytes of each string of a column without NULLs.

    >>> byte_lengths(pick(["", "auction"], np.array([1, 0, 1]))).tolist()
    [7, 0, 7]
    """
    # Through the buffers, because `to_numpy` of a chunked column loads pandas too.
    lengths = [pc.binary_length(chunk) for chunk in strings.chunks]
    views = [np.frombuffer(part.buffers()[1], dtype=np.int32, count=len(part)) for part in lengths]
    return np.concatenate([np.empty(0, dtype=np.int64), *views])


def letters(random: np.random.Generator, lengths: Ints) -> Column:
    """Draw words of lower-case letters, one for each of `lengths`.

    >>> [len(word) for word in letters(stream(7, "example"), np.array([3, 0, 5])).to_pylist()]
    [3, 0, 5]
    """
    chunks = []
    for at in range(0, len(lengths), CHUNK_ROWS):
        ends = np.cumsum(lengths[at : at + CHUNK_ROWS])
        codes = random.integers(0, len(_LETTERS), size=int(ends[-1]), dtype=np.uint8)
        chunks.append(_strings(np.concatenate(([0], ends)), _LETTERS[codes]))
    return pa.chunked_array(chunks, type=pa.string())


def digits(random: np.random.Generator, rows: int, groups: int) -> Column:
    """Draw `groups` groups of four digits with a space between them, as on a bank card.

    >>> [len(card) for card in digits(stream(7, "example"), 2, groups=4).to_pylist()]
    [19, 19]
    """
    width = groups * 5 - 1
    chunks = []
    for at in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - at)
        codes = random.integers(0, len(_DIGITS), size=(count, width), dtype=np.uint8)
        characters = _DIGITS[codes]
        characters[:, 4::5] = ord(" ")
        chunks.append(_strings(np.arange(count + 1) * width, characters.reshape(-1)))
    return pa.chunked_array(chunks, type=pa.string())


def _fixed_width(kind: pa.DataType, values: Ints | Floats, missing: Bools | None) -> Column:
    # From buffers, because `pa.array` and `pa.scalar` load pandas: slower than all the rest.
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little").data)
    content = pa.py_buffer(np.ascontiguousarray(values).data)
    return pa.Array.from_buffers(kind, len(values), [valid, content])


def _spelled(names: list[str]) -> Column:
    encoded = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, encoded)])
    return _strings(ends, np.frombuffer(b"".join(encoded), dtype=np.uint8))


def _strings(offsets: Ints, characters: npt.NDArray[np.uint8]) -> Column:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).data), pa.py_buffer(characters.data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
