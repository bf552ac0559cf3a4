"""Arrow arrays as the columns that kernels take: no copy of the values, NULLs as flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.errors import DataError
from weft.kernels.grouping.batches import Column

if TYPE_CHECKING:
    from weft.kernels.partials import Bools, Int64s


def column_of(array: pa.Array[Any]) -> Column:
    """View an Arrow array of numbers or booleans as a column; NULLs of no type as integers.

    >>> column = column_of(pa.array([1.5, None, 2.5]))
    >>> column.values[[0, 2]].tolist(), column.valid.tolist()
    ([1.5, 2.5], [True, False, True])
    """
    if pa.types.is_boolean(array.type):
        return Column.of(_bits(array, 1), validity(array))
    if pa.types.is_null(array.type):
        return Column(np.zeros(len(array), np.int64), validity(array))
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise DataError(
            f"a column of {array.type} cannot be aggregated as numbers",
            hint="cast it to bigint or double",
        )
    dtype = np.dtype(array.type.to_pandas_dtype())
    return Column.of(values_of(array, dtype), validity(array))


def times_of(array: pa.Array[Any]) -> tuple[Int64s, Bools | None]:
    """View Arrow timestamps, or integers of microseconds, as int64 and the flags of NULLs.

    >>> times, valid = times_of(pa.array([1, None], pa.timestamp("s")))
    >>> times.tolist()[0], valid.tolist()
    (1000000, [True, False])
    """
    if pa.types.is_timestamp(array.type):
        if array.type.unit != "us":
            array = array.cast(pa.timestamp("us", tz=array.type.tz))
    elif pa.types.is_integer(array.type):
        array = array if array.type == pa.int64() else array.cast(pa.int64())
    else:
        raise DataError(
            f"a column of {array.type} cannot be the event time",
            hint="use a timestamp, or an integer of microseconds",
        )
    return values_of(array, np.dtype(np.int64)), validity(array)


def validity(array: pa.Array[Any]) -> Bools | None:
    """Unpack Arrow's bitmap of what is not NULL; None when nothing is.

    >>> validity(pa.array([7, None, 7, None])[1:]).tolist()
    [False, True, False]
    >>> validity(pa.nulls(2)).tolist()
    [False, False]
    """
    if not array.null_count:
        return None
    if pa.types.is_null(array.type):  # which has no bitmap
        return np.zeros(len(array), np.bool_)
    return _bits(array, 0)


def _bits(array: pa.Array[Any], buffer: int) -> Bools:
    stop = array.offset + len(array)
    packed = _buffer(array, buffer, np.dtype(np.uint8))
    return np.unpackbits(packed, count=stop, bitorder="little")[array.offset :].view(np.bool_)


def values_of(array: pa.Array[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """View the values of an array that lays them out as `dtype` does, whatever their type.

    >>> values_of(pa.array([0, 7, 9], pa.timestamp("us"))[1:], np.dtype(np.int64)).tolist()
    [7, 9]
    """
    return _buffer(array, 1, dtype)[array.offset : array.offset + len(array)]


def _buffer(array: pa.Array[Any], index: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    given = array.buffers()[index]
    # An empty array may come without buffers.
    return np.empty(0, dtype) if given is None else np.frombuffer(memoryview(given), dtype)
