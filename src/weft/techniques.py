"""The final aggregation techniques: what each needs, what it can answer, what it costs.

This table is what planners read; it holds no code and loads no numba. The kernels that run the
techniques are in `weft.kernels`, one file each, under the same names. Combines are counted per
slide in the steady state, n partials in the window, as in `docs/algorithms.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING

from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.aggregates.laws import Laws


@dataclass(frozen=True, slots=True)
class Technique:
    """One way to turn a window's partials into its result."""

    name: str
    needs: tuple[str, ...]
    several_ranges: bool
    combines_per_slide: Callable[[float], float]
    partials_stored: Callable[[float], float]

    def check(self, laws: Laws, aggregate: str) -> None:
        """Refuse an aggregate whose laws this technique lacks.

        >>> from weft.aggregates.laws import Laws
        >>> TECHNIQUES["slick_deque"].check(Laws(commutative=True, invertible=True), "sum(x)")
        Traceback (most recent call last):
        weft.errors.UnsupportedError: technique slick_deque cannot run sum(x): it needs a
        selective combine
        hint: use one of naive, subtract_on_evict, prefix_ring, flat_fat, b_int, flat_fit,
        two_stacks, two_stacks_lite, daba, daba_lite, slick_deque_inv, fiba
        """
        missing = laws.missing(self.needs)
        if missing:
            legal = [t.name for t in TECHNIQUES.values() if not laws.missing(t.needs)]
            raise UnsupportedError(
                f"technique {self.name} cannot run {aggregate}: it needs "
                f"{'an' if missing[0][0] in 'aei' else 'a'} {' and '.join(missing)} combine",
                hint=f"use one of {', '.join(legal)}",
            )


def _log2(n: float) -> float:
    return log2(n) if n > 1 else 0.0


_ALL = (
    Technique("naive", ("associative",), True, lambda n: n - 1, lambda n: n),
    Technique(
        "subtract_on_evict", ("associative", "invertible"), False, lambda n: 2.0, lambda n: n + 1
    ),
    Technique("prefix_ring", ("associative", "invertible"), True, lambda n: 2.0, lambda n: n + 1),
    Technique(
        "flat_fat",
        ("associative",),
        True,
        lambda n: ceil(_log2(n)) + max(_log2(n) - 1 + 1 / max(n, 1), 0.0),
        lambda n: 2 * n,
    ),
    Technique(
        "b_int",
        ("associative",),
        True,
        lambda n: 1 - 1 / max(n, 1) + max(_log2(n) - 1 + 1 / max(n, 1), 0.0),
        lambda n: 2 * n,
    ),
    Technique("flat_fit", ("associative",), True, lambda n: 3 * (n - 1) / (n + 1), lambda n: 2 * n),
    Technique("two_stacks", ("associative",), False, lambda n: 3 - 3 / max(n, 1), lambda n: 2 * n),
    Technique(
        "two_stacks_lite", ("associative",), False, lambda n: 3 - 3 / max(n, 1), lambda n: n + 1
    ),
    Technique("daba", ("associative",), False, lambda n: 5 - 8 / max(n, 2), lambda n: 2 * n),
    Technique("daba_lite", ("associative",), False, lambda n: 4 - 6 / max(n, 2), lambda n: n + 2),
    Technique(
        "slick_deque_inv", ("associative", "invertible"), True, lambda n: 2.0, lambda n: n + 1
    ),
    Technique(
        "slick_deque",
        ("associative", "selective"),
        True,
        lambda n: 2 - 2 / max(n, 1),
        lambda n: 2 * n,
    ),
    Technique("fiba", ("associative",), True, lambda n: 12.0, lambda n: 2 * n),
)

TECHNIQUES: dict[str, Technique] = {technique.name: technique for technique in _ALL}
