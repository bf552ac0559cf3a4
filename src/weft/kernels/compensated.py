"""Sums of float64 that carry their own rounding error: a pair (sum, correction).

The true sum is `sum + correction` up to about n * 2**-105 of the sum of magnitudes, so a value
1e16 times larger than the others costs them no digits once it has cancelled out (Neumaier's form
of Kahan's algorithm; the error of a single addition is Knuth's two-sum).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.aggregates.laws import Laws
from weft.kernels.compiled import unlocked
from weft.kernels.operations import Operation

Pair = tuple[float, float]


class CompensatedSum(NamedTuple):
    """Add pairs (sum, correction); an infinity or a NaN is right in the sum alone."""

    identity: Pair = (0.0, 0.0)

    def combine(op, a: Pair, b: Pair) -> Pair:
        """Add two pairs."""
        total = a[0] + b[0]
        part = total - a[0]
        return total, a[1] + b[1] + ((a[0] - (total - part)) + (b[0] - part))

    def extend(op, a: Pair, b: float) -> Pair:
        """Add one value to a pair."""
        total = a[0] + b
        part = total - a[0]
        return total, a[1] + ((a[0] - (total - part)) + (b - part))

    def same(op, a: Pair, b: Pair) -> bool:
        """Tell whether two pairs are equal, field by field."""
        return a[0] == b[0] and a[1] == b[1]


COMPENSATED_SUM = Operation(
    "compensated_sum", ("float64", "float64"), CompensatedSum(), Laws(commutative=True)
)


def rounded(
    totals: npt.NDArray[np.float64], corrections: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Lower pairs to plain float64.

    An infinity or a NaN among the values makes the correction meaningless; the plain sum already
    is the answer then.

    >>> rounded(np.array([1e16, np.inf]), np.array([4.0, np.nan])).tolist()
    [1.0000000000000004e+16, inf]
    """
    out = np.empty_like(totals)
    _round(totals, corrections, out)
    return out


@unlocked
def _round(
    totals: npt.NDArray[np.float64],
    corrections: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None:
    for i in range(totals.size):
        out[i] = totals[i] + corrections[i] if np.isfinite(totals[i]) else totals[i]
