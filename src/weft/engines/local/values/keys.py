"""Grouping keys as small integers: of any type, several at once, NULL and NaN included.

Codes are given in the order of appearance and kept from batch to batch, so partials hold four
bytes where events held a text. `ranks` orders codes as their keys, for results.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.values.arrow import Array, of_numbers, pc
from weft.engines.local.values.coding import canonical_floats, sortable
from weft.errors import UnsupportedError
from weft.kernels.arrow_columns import column_of
from weft.kernels.compiled import unlocked
from weft.kernels.grouping.dense import bounds_of
from weft.kernels.grouping.known_keys import KnownKeys
from weft.kernels.parallel import over_chunks, threads_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.kernels.partials import Bools, Int64s

Codes = npt.NDArray[np.int32]
_NEAR = 1 << 20  # integers this close together are looked up by position
# Rows that tell whether keys are few: each comes so often among them.
_SAMPLE, _FEW = 1 << 14, 8


@unlocked
def _mark(values: npt.NDArray[np.integer], least: int, used: Bools) -> None:
    for i in range(values.size):
        used[values[i] - least] = True


@unlocked
def _look_up(values: npt.NDArray[np.integer], least: int, table: Codes, out: Codes) -> None:
    for i in range(values.size):
        out[i] = table[values[i] - least]


@unlocked
def _look_up_known(values: npt.NDArray[np.integer], least: int, table: Codes, out: Codes) -> bool:
    """Look up as long as all values have codes; tell whether they had."""
    for i in range(values.size):
        place = values[i] - least
        if place < 0 or place >= table.size or table[place] < 0:
            return False
        out[i] = table[place]
    return True


def _integers(array: Array) -> npt.NDArray[np.integer] | None:
    """View integers that fit 64 signed bits, of which there are some and none is NULL."""
    type = array.type
    if not pa.types.is_integer(type) or pa.types.is_uint64(type) or array.null_count:
        return None
    values: npt.NDArray[np.integer] = array.to_numpy(zero_copy_only=True)
    return values if values.size else None


def _encoded(array: Array) -> pa.DictionaryArray[Any, Any]:
    try:
        encoded: pa.DictionaryArray[Any, Any] = array.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        raise UnsupportedError(
            f"cannot group by values of type {array.type}",
            hint="group by their parts, or by a cast to text",
        ) from None
    return encoded


@dataclass(slots=True)
class ColumnCodes:
    """The codes of one key column: a list of its distinct values, NULL among them."""

    values: Array | None = None
    # Of a struct: whether it is one and not NULL, and its fields; `values` are codes of those.
    _fields: KeyCodes | None = None
    _type: pa.StructType | None = None
    # Codes by position, of integers from the first number on; -1 where there is none yet.
    _near: tuple[int, Codes] | None = None

    @classmethod
    def of(cls, values: Array) -> ColumnCodes:
        """Return the codes of distinct values, by their places."""
        if not isinstance(values.type, pa.StructType):
            return cls(values)
        codes = cls()
        codes.values = pa.array(codes._codes_of_fields(values, values.type))
        return codes

    def since(self, known: int) -> Array:
        """Return the values of the codes from one on."""
        if self._fields is not None:
            return self.decode(np.arange(known, len(self)))
        return pa.nulls(0) if self.values is None else self.values.slice(known)

    def encode(self, array: Array) -> Codes:
        """Return the code of each value; new values get the next codes.

        >>> codes = ColumnCodes()
        >>> codes.encode(pa.array(["b", None, "b"])).tolist()
        [0, 1, 0]
        >>> codes.encode(pa.array(["c", None])).tolist()
        [2, 1]
        """
        if isinstance(array.type, pa.StructType):
            array = pa.array(self._codes_of_fields(array, array.type))
        if pa.types.is_floating(array.type):
            array = canonical_floats(array).cast(array.type)
        near = self._near_integers(array)
        if near is not None:
            return near
        rows = len(array)
        threads = threads_for(rows)
        # To bring long lists of several threads together takes longer than they save.
        if threads == 1 or len(_encoded(array[:_SAMPLE]).dictionary) > _SAMPLE // _FEW:
            return self._codes(_encoded(array))
        parts = over_chunks(lambda a, b: _encoded(array[a:b]), rows, threads)
        return np.concatenate([*map(self._codes, parts)])

    def _codes_of_fields(self, array: Array, type: pa.StructType) -> Codes:
        if self._fields is None:
            self._fields, self._type = KeyCodes(type.num_fields + 1), type
        parts = [
            part.dictionary_decode() if isinstance(part, pa.DictionaryArray) else part
            for part in array.flatten()
        ]
        return self._fields.encode([array.is_valid(), *parts], len(array))

    def __copy__(self) -> ColumnCodes:
        fields = None if self._fields is None else self._fields.saved()
        return ColumnCodes(self.values, fields, self._type, self._near)

    def _codes(self, encoded: pa.DictionaryArray[Any, Any]) -> Codes:
        places = self._places(encoded.dictionary)
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        if places.size == 0:
            return np.empty(0, np.int32)
        if np.array_equal(places, np.arange(places.size)):
            plain: Codes = indices.astype(np.int32, copy=False)
            return plain
        codes: Codes = places[indices]
        return codes

    def __len__(self) -> int:
        return 0 if self.values is None else len(self.values)

    def encode_pairs(self, first: Codes, firsts: int, second: Codes, seconds: int) -> Codes:
        """Return the code of each pair of codes, of which there are so many of either.

        Few enough pairs are told apart by position, and only those that there are get codes.

        >>> pairs = ColumnCodes()
        >>> pairs.encode_pairs(np.array([0, 1, 0]), 2, np.array([2, 0, 2]), 3).tolist()
        [0, 1, 0]
        """
        if firsts * seconds > min(_NEAR, first.size):
            return self.encode(pa.array((first.astype(np.int64) << 32) | second))
        places = first.astype(np.int64) * seconds + second
        used = np.zeros(firsts * seconds, np.bool_)
        _mark(places, 0, used)
        there = np.flatnonzero(used)
        table = np.full(used.size, -1, np.int32)
        table[there] = self.encode(pa.array((there // seconds << 32) | there % seconds))
        out = np.empty(places.size, np.int32)
        _look_up(places, 0, table, out)
        return out

    def known(self, array: Array) -> KnownKeys | None:
        """Return integers with the table of codes, to be looked up later; they may be new yet.

        >>> codes = ColumnCodes()
        >>> _ = codes.encode(pa.array([7, 9]))
        >>> codes.known(pa.array([9])).table.tolist(), codes.known(pa.array([None, 9]))
        ([0, -1, 1], None)
        """
        values = _integers(array)
        if values is None or self._near is None or self.values is None:
            return None
        return KnownKeys(values, *self._near, len(self.values))

    def _near_integers(self, array: Array) -> Codes | None:
        """Encode integers that lie close together by position, much faster than by hashing."""
        values = _integers(array)
        if values is None:
            return None
        out = np.empty(values.size, np.int32)
        # From the second batch on there is seldom anything new.
        known, threads = self._near, threads_for(values.size)
        if known is not None and all(
            over_chunks(
                lambda a, b: _look_up_known(values[a:b], *known, out[a:b]), len(out), threads
            )
        ):
            return out
        least, greatest = bounds_of(values)
        if greatest - least >= _NEAR:
            return None
        used = np.zeros(greatest - least + 1, np.bool_)
        over_chunks(lambda a, b: _mark(values[a:b], least, used), len(out), threads)
        distinct = np.flatnonzero(used)
        table = np.full(used.size, -1, np.int32)
        table[distinct] = self._near_places(distinct + least, array.type)
        over_chunks(lambda a, b: _look_up(values[a:b], least, table, out[a:b]), len(out), threads)
        self._near = self._joined_near(least, table)
        return out

    def _near_places(self, distinct: Int64s, type: pa.DataType) -> Codes:
        """Find distinct integers by position if all values are known by it, else in the list."""
        known = 0 if self.values is None else len(self.values)
        if self._near is None or np.count_nonzero(self._near[1] >= 0) < known:
            return self._places(pa.array(distinct, pa.int64()).cast(type))
        least, table = self._near
        near = (distinct >= least) & (distinct < least + table.size)
        places = np.full(distinct.size, -1, np.int32)
        places[near] = table[distinct[near] - least]
        new = places < 0
        places[new] = np.arange(known, known + int(new.sum()), dtype=np.int32)
        added: Array = pa.array(distinct[new], pa.int64()).cast(type)
        self.values = pa.concat_arrays([self.values, added])
        return places

    def _joined_near(self, least: int, table: Codes) -> tuple[int, Codes]:
        """Put the codes of a batch to those known before, if they still lie close together."""
        if self._near is None:
            return least, table
        first = min(least, self._near[0])
        size = max(least + table.size, self._near[0] + self._near[1].size) - first
        if size > _NEAR:
            return least, table
        joined = np.full(size, -1, np.int32)
        for start, codes in (self._near, (least, table)):
            own = joined[start - first : start - first + codes.size]
            np.maximum(own, codes, out=own)
        return first, joined

    def _places(self, distinct: Array) -> Codes:
        """Find distinct values in the list, adding those that are new."""
        if self.values is None:
            self.values = distinct
            return np.arange(len(distinct), dtype=np.int32)
        found = pc.index_in(distinct, value_set=self.values)
        new = pc.is_null(found)
        if not pc.any(new).as_py():
            known: Codes = found.to_numpy(zero_copy_only=False).astype(np.int32)
            return known
        mask = new.to_numpy(zero_copy_only=False)
        places = np.where(mask, 0, found.fill_null(0).to_numpy(zero_copy_only=False))
        places[mask] = np.arange(len(self.values), len(self.values) + int(mask.sum()))
        self.values = pa.concat_arrays([self.values, distinct.filter(new)])
        return places.astype(np.int32)

    def decode(self, codes: npt.NDArray[Any]) -> Array:
        """Return the values of codes.

        >>> codes = ColumnCodes()
        >>> codes.encode(pa.array([{"x": 1}, None, {"x": 1}])).tolist()
        [0, 1, 0]
        >>> codes.decode(np.array([1, 0])).to_pylist()
        [None, {'x': 1}]
        """
        assert self.values is not None
        if self._fields is not None and self._type is not None:
            valid, *fields = self._fields.decode(self.values.to_numpy()[codes])
            named = zip(self._type, fields, strict=True)
            type = pa.struct([field.with_type(own.type) for field, own in named])
            bits = valid.buffers()[1]  # those of a boolean are those of what is valid
            made: Array = pa.Array.from_buffers(type, len(valid), [bits], children=fields)
            return made
        if pa.types.is_integer(self.values.type) and not self.values.null_count:
            return of_numbers(self.values.to_numpy()[codes], self.values.type)
        return self.values.take(pa.array(codes))

    def ranks(self) -> Int64s:
        """Return the place of each code in the order of values: NULL first, NaN last."""
        if self.values is None:
            return np.empty(0, np.int64)
        if self._fields is not None:
            places: Int64s = self._fields.ranks()[self.values.to_numpy()]
            return places
        column, _ = sortable(self.values)
        numbers = column.values
        valid = np.ones(numbers.size, np.bool_) if column.valid is None else column.valid
        if numbers.dtype.kind == "f":
            order = np.lexsort((np.where(valid, numbers, 0.0), valid))
        else:
            order = np.lexsort((numbers, valid))
        ranks = np.empty(order.size, np.int64)
        ranks[order] = np.arange(order.size)
        return ranks


@dataclass(slots=True)
class KeyCodes:
    """The codes of whole keys: of one column its own, of several the codes of their pairs."""

    width: int
    columns: list[ColumnCodes] = field(default_factory=list)
    pairs: list[ColumnCodes] = field(default_factory=list)
    _ranks: Int64s | None = None  # of the codes known when they were last asked for

    def __post_init__(self) -> None:
        self.columns = self.columns or [ColumnCodes() for _ in range(self.width)]
        self.pairs = self.pairs or [ColumnCodes() for _ in range(max(self.width - 1, 0))]

    def saved(self) -> KeyCodes:
        """Return the codes as they are now, to go back to; arrays are shared, never changed."""
        kept = copy(self)
        kept.columns, kept.pairs = [*map(copy, self.columns)], [*map(copy, self.pairs)]
        return kept

    def known(self, arrays: Sequence[Array]) -> KnownKeys | None:
        """Return keys that one pass over the events can look up; None where they are others."""
        return self.columns[0].known(arrays[0]) if self.width == 1 else None

    def encode(self, arrays: Sequence[Array], rows: int) -> Codes:
        """Return the code of each row's key; without keys all rows have the code 0.

        >>> keys = KeyCodes(2)
        >>> keys.encode([pa.array(["a", "a", "b"]), pa.array([1, 2, 1])], 3).tolist()
        [0, 1, 2]
        >>> [column.to_pylist() for column in keys.decode(np.array([2, 0]))]
        [['b', 'a'], [1, 1]]
        """
        if not arrays:
            return np.zeros(rows, np.int32)
        before, codes = self.columns[0], self.columns[0].encode(arrays[0])
        for column, pair, array in zip(self.columns[1:], self.pairs, arrays[1:], strict=True):
            codes = pair.encode_pairs(codes, len(before), column.encode(array), len(column))
            before = pair
        return codes

    def __len__(self) -> int:
        if not self.width:
            return 1
        return len((self.pairs or self.columns)[-1])

    def decode(self, codes: npt.NDArray[Any]) -> list[Array]:
        """Return the key columns of codes."""
        return [c.decode(own) for c, own in zip(self.columns, self._split(codes), strict=True)]

    def _split(self, codes: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        if not self.width:
            return []
        own: list[npt.NDArray[Any]] = []
        for pair in reversed(self.pairs):
            packed = column_of(pair.decode(codes)).values
            own.insert(0, packed & 0xFFFFFFFF)
            codes = packed >> 32
        return [codes, *own]

    def ranks(self) -> Int64s:
        """Return the place of each code in the order of keys, from 0 without gaps.

        >>> keys = KeyCodes(1)
        >>> _ = keys.encode([pa.array(["b", None, "a"])], 3)
        >>> keys.ranks().tolist()
        [2, 0, 1]
        """
        if self._ranks is None or self._ranks.size != len(self):
            self._ranks = self._ranked()
        return self._ranks

    def _ranked(self) -> Int64s:
        if not self.width:
            return np.zeros(1, np.int64)
        if self.width == 1:
            return self.columns[0].ranks()
        split = self._split(np.arange(len(self)))
        placed = [c.ranks()[own] for c, own in zip(self.columns, split, strict=True)]
        order = np.lexsort(tuple(reversed(placed)))
        ranks = np.empty(order.size, np.int64)
        ranks[order] = np.arange(order.size)
        return ranks
