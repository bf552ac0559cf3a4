"""Arrow for code that works on columns of any type, which its stubs type too narrowly for."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute

Array: TypeAlias = Any  # a pyarrow.Array
pc: Any = pyarrow.compute
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


def repeated(value: Any, rows: int) -> Array:
    """Return a column that holds one value in every row.

    >>> repeated(pyarrow.scalar(7), 2).to_pylist()
    [7, 7]
    """
    repeat: Any = pyarrow.repeat
    return repeat(value, rows)
