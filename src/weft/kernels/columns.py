"""Partials in columns: one array for a scalar partial, a tuple of arrays for a partial of fields.

A kernel never looks inside: `load(column, i)` gives a scalar or a tuple, `store` takes one. Input
and output are 1-D; the partials a window keeps are 2-D, [key, slot], read and written by `get` and
`put`. The number of fields is part of the type, so access to a scalar compiles to one plain load.
The Python bodies run as they are when numba is switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numba.extending import overload

from weft.kernels.parallel import read_only

if TYPE_CHECKING:
    from numba import types

Partial: TypeAlias = Any  # a scalar, or a tuple with one scalar per field
Columns: TypeAlias = Any  # an array, or a tuple with one array per field
Compiled: TypeAlias = Callable[..., Any] | None


def load(columns: Columns, i: int) -> Partial:
    """Read partial `i` of 1-D columns."""
    if isinstance(columns, tuple):
        return tuple(column[i] for column in columns)
    return columns[i]


def store(columns: Columns, i: int, partial: Partial) -> None:
    """Write partial `i` of 1-D columns."""
    if isinstance(columns, tuple):
        for column, field in zip(columns, partial, strict=True):
            column[i] = field
    else:
        columns[i] = partial


def get(columns: Columns, key: int, slot: int) -> Partial:
    """Read one slot of one key."""
    if isinstance(columns, tuple):
        return tuple(column[key, slot] for column in columns)
    return columns[key, slot]


def put(columns: Columns, key: int, slot: int, partial: Partial) -> None:
    """Write one slot of one key."""
    if isinstance(columns, tuple):
        for column, field in zip(columns, partial, strict=True):
            column[key, slot] = field
    else:
        columns[key, slot] = partial


def length(columns: Columns) -> int:
    """Count the partials of 1-D columns."""
    return len(columns[0] if isinstance(columns, tuple) else columns)


def only_read(columns: Columns) -> Columns:
    """View columns that a kernel only reads, so that it is compiled once and not twice.

    >>> only_read((np.zeros(3), np.ones(3)))[1].flags.writeable
    False
    """
    if isinstance(columns, tuple):
        return tuple(read_only(column) for column in columns)
    return read_only(columns)


def mask(columns: Columns) -> int:
    """Turn a position into a slot: `position & mask`; rings have a power of two of slots."""
    slots: int = (columns[0] if isinstance(columns, tuple) else columns).shape[1]
    return slots - 1


# No index here is negative. Told so by the unsigned type, numba leaves out the test for an index
# that counts from the end, which costs as much as a combine.


_MANY = (5, 6)  # numbers of fields that are three and some more; of four, one would be left over


def _fields(columns: Any) -> int:
    return int(getattr(columns, "count", 1))  # an array type has no count


@overload(load, strict=False)
def _load(columns: types.Type, i: types.Type) -> Compiled:
    def load_pair(columns: Columns, i: int) -> Partial:
        at = np.uint64(i)
        return columns[0][at], columns[1][at]

    def load_triple(columns: Columns, i: int) -> Partial:
        at = np.uint64(i)
        return columns[0][at], columns[1][at], columns[2][at]

    def load_scalar(columns: Columns, i: int) -> Partial:
        return columns[np.uint64(i)]

    def load_many(columns: Columns, i: int) -> Partial:
        return load(columns[:3], i) + load(columns[3:], i)

    by_fields = {1: load_scalar, 2: load_pair, 3: load_triple, **dict.fromkeys(_MANY, load_many)}
    return by_fields.get(_fields(columns))


@overload(store, strict=False)
def _store(columns: types.Type, i: types.Type, partial: types.Type) -> Compiled:
    def store_scalar(columns: Columns, i: int, partial: Partial) -> None:
        columns[np.uint64(i)] = partial

    def store_pair(columns: Columns, i: int, partial: Partial) -> None:
        at = np.uint64(i)
        columns[0][at] = partial[0]
        columns[1][at] = partial[1]

    def store_triple(columns: Columns, i: int, partial: Partial) -> None:
        at = np.uint64(i)
        columns[0][at] = partial[0]
        columns[1][at] = partial[1]
        columns[2][at] = partial[2]

    def store_many(columns: Columns, i: int, partial: Partial) -> None:
        store(columns[:3], i, partial[:3])
        store(columns[3:], i, partial[3:])

    many = dict.fromkeys(_MANY, store_many)
    return {1: store_scalar, 2: store_pair, 3: store_triple, **many}.get(_fields(columns))


@overload(get, strict=False)
def _get(columns: types.Type, key: types.Type, slot: types.Type) -> Compiled:
    def get_scalar(columns: Columns, key: int, slot: int) -> Partial:
        return columns[np.uint64(key), np.uint64(slot)]

    def get_pair(columns: Columns, key: int, slot: int) -> Partial:
        at = np.uint64(key), np.uint64(slot)
        return columns[0][at], columns[1][at]

    def get_triple(columns: Columns, key: int, slot: int) -> Partial:
        at = np.uint64(key), np.uint64(slot)
        return columns[0][at], columns[1][at], columns[2][at]

    def get_many(columns: Columns, key: int, slot: int) -> Partial:
        return get(columns[:3], key, slot) + get(columns[3:], key, slot)

    many = dict.fromkeys(_MANY, get_many)
    return {1: get_scalar, 2: get_pair, 3: get_triple, **many}.get(_fields(columns))


@overload(put, strict=False)
def _put(columns: types.Type, key: types.Type, slot: types.Type, partial: types.Type) -> Compiled:
    def put_scalar(columns: Columns, key: int, slot: int, partial: Partial) -> None:
        columns[np.uint64(key), np.uint64(slot)] = partial

    def put_pair(columns: Columns, key: int, slot: int, partial: Partial) -> None:
        at = np.uint64(key), np.uint64(slot)
        columns[0][at] = partial[0]
        columns[1][at] = partial[1]

    def put_triple(columns: Columns, key: int, slot: int, partial: Partial) -> None:
        at = np.uint64(key), np.uint64(slot)
        columns[0][at] = partial[0]
        columns[1][at] = partial[1]
        columns[2][at] = partial[2]

    def put_many(columns: Columns, key: int, slot: int, partial: Partial) -> None:
        put(columns[:3], key, slot, partial[:3])
        put(columns[3:], key, slot, partial[3:])

    many = dict.fromkeys(_MANY, put_many)
    return {1: put_scalar, 2: put_pair, 3: put_triple, **many}.get(_fields(columns))


@overload(length, strict=False)
def _length(columns: types.Type) -> Compiled:
    if _fields(columns) > 1:
        return lambda columns: len(columns[0])
    return lambda columns: len(columns)


@overload(mask, strict=False)
def _mask(columns: types.Type) -> Compiled:
    if _fields(columns) > 1:
        return lambda columns: columns[0].shape[1] - 1
    return lambda columns: columns.shape[1] - 1
