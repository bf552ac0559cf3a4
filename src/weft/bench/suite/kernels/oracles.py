"""Answers to sliding windows from numpy and scipy alone, for the checks of the kernel entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


def moving_max(values: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return the greatest of the last n values at each; of fewer at the start.

    >>> import numpy as np
    >>> moving_max(np.array([6, 1, 5, 2, 8, 3]), 3).tolist()
    [6, 6, 6, 5, 8, 8]
    """
    from scipy.ndimage import maximum_filter1d

    least = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    padded = np.concatenate([np.full(n - 1, least, values.dtype), values])
    # The filter looks (n - 1) // 2 to the right; `origin` turns it into one that looks back only.
    filtered = maximum_filter1d(padded, n, mode="nearest", origin=(n - 1) // 2)
    return np.asarray(filtered)[n - 1 :]


def moving_sum(values: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """Return the sum of the last n values at each, from prefixes in twice the precision.

    >>> import numpy as np
    >>> moving_sum(np.array([6, 1, 5, 2, 8, 3]), 3).tolist()
    [6, 7, 12, 8, 15, 13]
    """
    wide = np.longdouble if values.dtype.kind == "f" else np.int64
    prefixes = np.concatenate([np.zeros(1, wide), np.cumsum(values, dtype=wide)])
    sums = prefixes[1:].copy()
    sums[n:] -= prefixes[1:-n]
    return sums.astype(values.dtype)


def identical(expected: npt.NDArray[Any], answer: npt.NDArray[Any]) -> str:
    """Compare two arrays value by value; say where they first differ.

    >>> import numpy as np
    >>> identical(np.array([1, 2, 3]), np.array([1, 5, 3]))
    'at 1: expected 2, got 5'
    """
    return _first_difference(expected, answer, lambda x, y: x != y)


def close(expected: Floats, answer: Floats) -> str:
    """Compare two arrays of floats to nine digits; say where they first differ.

    >>> import numpy as np
    >>> close(np.array([1.0, 0.3]), np.array([1.0, 0.1 + 0.2]))
    ''
    """
    return _first_difference(expected, answer, lambda x, y: ~np.isclose(x, y, rtol=1e-9, atol=1e-9))


def _first_difference(
    expected: npt.NDArray[Any],
    answer: npt.NDArray[Any],
    differs: Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[np.bool_]],
) -> str:
    if expected.shape != answer.shape:
        return f"expected shape {expected.shape}, got {answer.shape}"
    places = np.argwhere(differs(expected, answer))
    if not len(places):
        return ""
    place = tuple(int(i) for i in places[0])
    at = ", ".join(map(str, place))
    return f"at {at}: expected {expected[place]!s}, got {answer[place]!s}"
