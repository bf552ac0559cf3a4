"""Partials in columns: one array for a scalar partial, a tuple of arrays for a partial of fields.

A kernel never looks inside: `load(columns, slot)` gives a scalar or a tuple, `store` takes one.
The number of fields is part of the type, so the compiled access to a scalar is one plain load.
The Python bodies run as they are when numba is switched off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import overload

Partial: TypeAlias = Any  # a scalar, or a tuple with one scalar per field
Columns: TypeAlias = Any  # an array, or a tuple with one array per field
Compiled: TypeAlias = Callable[..., Any] | None


def load(columns: Columns, slot: int) -> Partial:
    """Read the partial in `slot`; on keyed columns `slot` is a key and the answer its row."""
    if isinstance(columns, tuple):
        return tuple(column[slot] for column in columns)
    return columns[slot]


def store(columns: Columns, slot: int, partial: Partial) -> None:
    """Write `partial` into `slot`."""
    if isinstance(columns, tuple):
        for column, field in zip(columns, partial, strict=True):
            column[slot] = field
    else:
        columns[slot] = partial


def length(columns: Columns) -> int:
    """Count the slots; for keyed columns, the keys."""
    return len(columns[0] if isinstance(columns, tuple) else columns)


def scratch(columns: Columns, size: int) -> Columns:
    """Allocate `size` slots of the same fields as `columns`, not initialised."""
    if isinstance(columns, tuple):
        return tuple(np.empty(size, column.dtype) for column in columns)
    return np.empty(size, columns.dtype)


def _fields(columns: types.Type) -> int:
    return columns.count if isinstance(columns, types.BaseTuple) else 0


# A slot is never negative. Told so by the unsigned type, numba leaves out the test for an index
# that counts from the end, which costs as much as a combine.


@overload(load, strict=False)
def _load(columns: types.Type, slot: types.Type) -> Compiled:
    def load_pair(columns: Columns, slot: int) -> Partial:
        at = np.uint64(slot)
        return columns[0][at], columns[1][at]

    def load_triple(columns: Columns, slot: int) -> Partial:
        at = np.uint64(slot)
        return columns[0][at], columns[1][at], columns[2][at]

    if not _fields(columns):
        return lambda columns, slot: columns[np.uint64(slot)]
    return {2: load_pair, 3: load_triple}.get(_fields(columns))


@overload(store, strict=False)
def _store(columns: types.Type, slot: types.Type, partial: types.Type) -> Compiled:
    def store_scalar(columns: Columns, slot: int, partial: Partial) -> None:
        columns[np.uint64(slot)] = partial

    def store_pair(columns: Columns, slot: int, partial: Partial) -> None:
        at = np.uint64(slot)
        columns[0][at] = partial[0]
        columns[1][at] = partial[1]

    def store_triple(columns: Columns, slot: int, partial: Partial) -> None:
        at = np.uint64(slot)
        columns[0][at] = partial[0]
        columns[1][at] = partial[1]
        columns[2][at] = partial[2]

    return {0: store_scalar, 2: store_pair, 3: store_triple}.get(_fields(columns))


@overload(length, strict=False)
def _length(columns: types.Type) -> Compiled:
    if _fields(columns):
        return lambda columns: len(columns[0])
    return lambda columns: len(columns)


@overload(scratch, strict=False)
def _scratch(columns: types.Type, size: types.Type) -> Compiled:
    match _fields(columns):
        case 0:
            return lambda columns, size: np.empty(size, columns.dtype)
        case 2:
            return lambda columns, size: (
                np.empty(size, columns[0].dtype),
                np.empty(size, columns[1].dtype),
            )
        case 3:
            return lambda columns, size: (
                np.empty(size, columns[0].dtype),
                np.empty(size, columns[1].dtype),
                np.empty(size, columns[2].dtype),
            )
    return None
