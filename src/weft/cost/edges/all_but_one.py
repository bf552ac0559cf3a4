"""What is left of a union when one of its parts goes, for every part at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def all_but_one(rows: NDArray[Any], combine: np.ufunc) -> NDArray[Any]:
    """Combine all rows but the first, all but the second, and so on; at least two rows.

    For an operation that cannot be undone (OR, maximum), from the left and from the right: three
    passes instead of one for each row.

    >>> import numpy as np
    >>> all_but_one(np.array([3, 9, 4]), np.maximum).tolist()
    [9, 4, 9]
    """
    left = combine.accumulate(rows, axis=0)
    right = combine.accumulate(rows[::-1], axis=0)[::-1]
    rest = np.empty_like(rows)
    rest[0], rest[-1] = right[1], left[-2]
    combine(left[:-2], right[2:], out=rest[1:-1])
    return rest
