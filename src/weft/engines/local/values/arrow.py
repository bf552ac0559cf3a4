"""Arrow for code that works on columns of any type, which its stubs type too narrowly for."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute

Array: TypeAlias = Any  # a pyarrow.Array
pc: Any = pyarrow.compute
buffer: Any = pyarrow.py_buffer
from_buffers: Any = pyarrow.Array.from_buffers
NOTHING: Any = pyarrow.scalar(None, pyarrow.null())  # NULL of no type


def recast(array: Array, type: Any, *, safe: bool = False) -> Array:
    """Cast to a type that the array may well have already, or is the numbers of.

    In a stream every call of Arrow's counts, and a view looks at no value.

    >>> recast(pyarrow.array([0]), pyarrow.timestamp("us")).to_pylist()
    [datetime.datetime(1970, 1, 1, 0, 0)]
    """
    given = array.type
    if given == type:
        return array
    if pyarrow.types.is_int64(given) and pyarrow.types.is_timestamp(type):
        return array.view(type)
    return array.cast(type, safe=safe)


def of_numbers(values: np.ndarray[Any, Any], type: Any) -> Array:
    """View numbers without NULLs as an array of a type that lays them out alike.

    >>> of_numbers(np.array([1_000_000]), pyarrow.timestamp("us")).to_pylist()
    [datetime.datetime(1970, 1, 1, 0, 0, 1)]
    """
    numbers = np.ascontiguousarray(values)
    return from_buffers(type, numbers.size, [None, buffer(numbers)])


def repeated(value: Any, rows: int) -> Array:
    """Return a column that holds one value in every row.

    >>> repeated(pyarrow.scalar(7), 2).to_pylist()
    [7, 7]
    """
    repeat: Any = pyarrow.repeat
    return repeat(value, rows)
