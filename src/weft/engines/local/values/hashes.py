"""The hash of `weft.aggregates.sketches`, over whole columns: the same 64 bits for every value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.aggregates.sketches import hash64
from weft.engines.local.partials.bag_kernels import text_hashes
from weft.engines.local.values.coding import canonical_floats
from weft.kernels.arrow_columns import column_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft.engines.local.values.arrow import Array

    Hashes = npt.NDArray[np.uint64]

_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def mixed(x: Hashes) -> Hashes:
    """Scramble 64 bits (the finalizer of SplitMix64).

    >>> hex(mixed(np.array([1], np.uint64))[0])
    '0x5692161d100b05e5'
    """
    for shift, factor in _STEPS:
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def hashes(array: Array) -> Hashes:
    """Hash every value; the hash of NULL means nothing.

    >>> from weft.aggregates.sketches import hash64
    >>> words = ["a", "", "weft"]
    >>> hashes(pa.array(words)).tolist() == [hash64(word) for word in words]
    True
    """
    kind = array.type
    if pa.types.is_floating(kind):
        return mixed(column_of(canonical_floats(array.cast(pa.float64()))).values.view(np.uint64))
    if pa.types.is_uint64(kind):
        return mixed(array.fill_null(0).to_numpy(zero_copy_only=False))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return mixed(column_of(array).values.view(np.uint64))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return mixed(_of_text(array))
    return _of_distinct(array)


def _of_text(array: Array) -> Hashes:
    _, offsets, text = array.buffers()
    width: Any = np.int64 if pa.types.is_large_string(array.type) else np.int32
    if offsets is None or not len(array):
        return np.empty(0, np.uint64)
    bounds = np.frombuffer(memoryview(offsets), width)[array.offset :][: len(array) + 1]
    letters = np.empty(0, np.uint8) if text is None else np.frombuffer(memoryview(text), np.uint8)
    return text_hashes(bounds, letters)


def _of_distinct(array: Array) -> Hashes:
    """Hash the distinct values one by one, by their text: decimals, instants, bytes."""
    encoded = array.dictionary_encode()
    values: list[Any] = encoded.dictionary.to_pylist()
    known = np.array([hash64(value) for value in values] or [0], np.uint64)
    found: Hashes = known[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return found
