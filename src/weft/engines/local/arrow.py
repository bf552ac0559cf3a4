"""Arrow for code that works on columns of any type, which its stubs type too narrowly for."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute

Array: TypeAlias = Any  # a pyarrow.Array
pc: Any = pyarrow.compute
NOTHING: Any = pyarrow.scalar(None, pyarrow.null())  # NULL of no type


def repeated(value: Any, rows: int) -> Array:
    """Return a column that holds one value in every row.

    >>> repeated(pyarrow.scalar(7), 2).to_pylist()
    [7, 7]
    """
    repeat: Any = pyarrow.repeat
    return repeat(value, rows)
