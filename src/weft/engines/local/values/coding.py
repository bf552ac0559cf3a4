"""Values of any type as numbers that order as the values do, and back.

Kernels know int64 and float64. Integers, booleans and instants are themselves; text, decimals and
the like are numbered in their order (`Listed`). Numberings of several batches are brought together
when their partials are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.values.arrow import Array, of_numbers, pc, recast
from weft.errors import UnsupportedError
from weft.kernels.arrow_columns import column_of, validity
from weft.kernels.grouping.batches import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.kernels.partials import Bools, Int64s

NULL_NUMBER = -(2**63)  # stands for NULL where a number must have no NULL
_MAGNITUDE = 2**63 - 1


def canonical_floats(array: Array) -> Array:
    """Make equal doubles identical: one NaN, and 0.0 for -0.0.

    >>> canonical_floats(pa.array([-0.0, None])).to_pylist()
    [0.0, None]
    """
    column = column_of(array)
    values = column.values + 0.0
    values[np.isnan(values)] = np.nan
    missing = None if column.valid is None else ~column.valid
    made: Array = pa.array(values, pa.float64(), mask=missing)
    return made


def is_direct(type: pa.DataType) -> bool:
    """Tell whether values of a type are numbers to a kernel as they are."""
    return (
        pa.types.is_boolean(type)
        or (pa.types.is_integer(type) and not pa.types.is_uint64(type))
        or pa.types.is_floating(type)
        or pa.types.is_temporal(type)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """Numbers that are the values themselves: integers, doubles, booleans, instants."""

    type: pa.DataType
    null_number: bool = False  # NULL is NULL_NUMBER

    def decode(self, numbers: npt.NDArray[Any], valid: Bools | None) -> Array:
        """Return the values; those that are not valid as NULL."""
        if pa.types.is_null(self.type):
            return pa.nulls(numbers.size)
        if self.null_number:
            some = numbers != NULL_NUMBER
            valid = some if valid is None else valid & some
        missing = None if valid is None else ~valid
        if pa.types.is_boolean(self.type):
            return pa.array(numbers != 0, pa.bool_(), mask=missing)
        if missing is None and pa.types.is_float64(self.type):
            return of_numbers(numbers, self.type)
        if pa.types.is_floating(self.type):
            return recast(pa.array(numbers, pa.float64(), mask=missing), self.type)
        whole: Array = pa.array(numbers, pa.int64(), mask=missing)
        if pa.types.is_temporal(self.type):
            return recast(whole, _wide(self.type)).view(self.type)
        return recast(whole, self.type, safe=True)


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """Doubles as int64 that order alike: the bits, those of negative numbers turned over."""

    type: pa.DataType

    def decode(self, numbers: Int64s, valid: Bools | None) -> Array:
        """Return the doubles; NULL_NUMBER is NULL."""
        some = numbers != NULL_NUMBER
        valid = some if valid is None else valid & some
        bits = np.where(numbers < 0, numbers ^ _MAGNITUDE, numbers)
        return pa.array(bits.view(np.float64), mask=~valid).cast(self.type, safe=False)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Places in a sorted list of the distinct values; NULL is -1."""

    values: Array

    @property
    def type(self) -> pa.DataType:
        """The type of the values."""
        found: pa.DataType = self.values.type
        return found

    def decode(self, numbers: Int64s, valid: Bools | None) -> Array:
        """Look the values up."""
        missing = (numbers < 0) | (numbers >= len(self.values))
        if valid is not None:
            missing |= ~valid
        return self.values.take(pa.array(np.where(missing, 0, numbers), mask=missing))


Coding = Direct | Bits | Listed


def _wide(type: pa.DataType) -> pa.DataType:
    return pa.int32() if type.bit_width == 32 else pa.int64()


@lru_cache(maxsize=1 << 8)
def _direct(type: pa.DataType) -> Direct:
    """Return the one coding of a type, so that batches are seen at once to have the same."""
    return Direct(type)


def direct_column(array: Array) -> tuple[Column, Direct]:
    """View an array of a direct type as numbers."""
    coding = _direct(array.type)
    if pa.types.is_temporal(array.type):
        array = array.view(_wide(array.type))
    return column_of(array), coding


def listed_column(array: Array) -> tuple[Column, Listed]:
    """Number values by their order: equal values alike, NULL as -1 and not valid.

    >>> column, coding = listed_column(pa.array(["b", None, "a", "b"]))
    >>> column.values.tolist(), coding.values.to_pylist()
    ([1, -1, 0, 1], ['a', 'b'])
    """
    if pa.types.is_floating(array.type):
        array = canonical_floats(array)
    try:
        encoded = array.dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise UnsupportedError(
            f"values of type {array.type} have no order here",
            hint="cast the column to text or to numbers",
        ) from None
    values = encoded.dictionary.take(pa.array(order))
    # One place more, for NULL: where nothing but NULL was seen there is no other.
    ranks = np.full(order.size + 1, -1, np.int64)
    ranks[order] = np.arange(order.size)
    places = encoded.indices.fill_null(order.size).to_numpy(zero_copy_only=False)
    return Column(ranks[places], validity(array)), Listed(values)


def sortable(array: Array) -> tuple[Column, Coding]:
    """Turn values into numbers for MIN, MAX, FIRST and LAST: int64 or float64, with NULLs."""
    return direct_column(array) if is_direct(array.type) else listed_column(array)


def carried(array: Array) -> tuple[Int64s, Coding]:
    """Turn values into int64 without NULL, for MIN_BY and MAX_BY; NULL orders below everything.

    >>> carried(pa.array([1.5, None, -1.5]))[0].argsort().tolist()
    [1, 2, 0]
    """
    if pa.types.is_floating(array.type):
        column = column_of(canonical_floats(array))
        bits = column.values.view(np.int64)
        numbers = np.where(bits < 0, bits ^ _MAGNITUDE, bits)
        if column.valid is not None:
            numbers[~column.valid] = NULL_NUMBER
        return numbers, Bits(array.type)
    if not is_direct(array.type):
        listed, coding = listed_column(array)
        return listed.values, coding
    column, direct = direct_column(array)
    if column.valid is None:
        return column.values, direct
    numbers = np.where(column.valid, column.values, NULL_NUMBER)
    if bool(np.any((column.values == NULL_NUMBER) & column.valid)):
        listed, coding = listed_column(array)  # a value that looks like NULL
        return listed.values, coding
    return numbers, Direct(direct.type, null_number=True)


def united(
    parts: Sequence[tuple[npt.NDArray[Any], Coding]],
) -> tuple[list[npt.NDArray[Any]], Coding]:
    """Bring numbers of several batches under one coding.

    >>> a, b = (listed_column(pa.array(v)) for v in (["b", "d"], ["a", "d"]))
    >>> numbers, coding = united([(a[0].values, a[1]), (b[0].values, b[1])])
    >>> [n.tolist() for n in numbers], coding.values.to_pylist()
    ([[1, 2], [0, 2]], ['a', 'b', 'd'])
    """
    codings = [coding for _, coding in parts]
    first = codings[0]
    if all(c is first for c in codings) or all(isinstance(c, Bits) for c in codings):
        return [numbers for numbers, _ in parts], first
    direct = _united_direct(parts)
    if direct is not None:
        return [numbers for numbers, _ in parts], direct
    lists = [_as_listed(numbers, coding) for numbers, coding in parts]
    merged = pa.concat_arrays([coding.values for _, coding in lists])
    column, coding = listed_column(merged)
    ends = np.cumsum([len(listed.values) for _, listed in lists])
    out: list[npt.NDArray[Any]] = []
    for (numbers, listed), end in zip(lists, ends, strict=True):
        places = column.values[end - len(listed.values) : end]
        known = (numbers >= 0) & (numbers < places.size)
        # Numbers beyond the list are the identities of MIN and MAX, and stay what they are.
        out.append(np.where(known, np.append(places, 0)[np.where(known, numbers, 0)], numbers))
    return out, coding


def _united_direct(parts: Sequence[tuple[npt.NDArray[Any], Coding]]) -> Direct | None:
    """Return the coding of numbers that stand for themselves, if they still can side by side."""
    kinds = [coding for _, coding in parts if isinstance(coding, Direct)]
    if len(kinds) < len(parts):
        return None
    if not any(coding.null_number for coding in kinds):
        return kinds[0]
    # NULL as a number must not meet a value that is this very number.
    plain = [numbers for (numbers, _), c in zip(parts, kinds, strict=True) if not c.null_number]
    if any(bool(np.any(numbers == NULL_NUMBER)) for numbers in plain):
        return None
    return Direct(kinds[0].type, null_number=True)


def _as_listed(numbers: npt.NDArray[Any], coding: Coding) -> tuple[Int64s, Listed]:
    if isinstance(coding, Listed):
        return numbers, coding
    column, listed = listed_column(coding.decode(numbers, None))
    return column.values, listed
