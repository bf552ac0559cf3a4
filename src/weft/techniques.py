"""The final aggregation techniques: what each needs, what it can answer, what it costs.

This table is what planners read; it holds no code and loads no numba. The kernels that run the
techniques are in `weft.kernels`, one file each, under the same names. Combines are counted per
slide in the steady state, n partials in the window, as in `docs/algorithms.md`.

Techniques have one of three forms. Those that are `incremental` keep the partials of open windows
as they come, so that closing one costs the same whatever its range: for sessions and streams, and
over a whole table as well. `whole` ones answer all instances at once from an array of partials.
`spread` hands every partial to all instances that hold it, as Spark's own windows do. Partials
that grow with what they have seen, such as sets, are gathered when they are read, whatever the
technique.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import TYPE_CHECKING, Literal

from weft.errors import QueryError, UnsupportedError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.aggregates.laws import Laws

Form = Literal["incremental", "whole", "spread"]


@dataclass(frozen=True, slots=True)
class Technique:
    """One way to turn a window's partials into its result."""

    name: str
    needs: tuple[str, ...]
    several_ranges: bool
    combines_per_slide: Callable[[float], float]
    partials_stored: Callable[[float], float]
    form: Form = "incremental"

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
            alike = [t for t in TECHNIQUES.values() if t.form == self.form]
            legal = [t.name for t in alike if not laws.missing(t.needs)]
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
    Technique("one_by_one", ("associative",), True, lambda n: n - 1, lambda n: n, "whole"),
    Technique(
        "prefix_sums", ("associative", "invertible"), True, lambda n: 2.0, lambda n: n + 1, "whole"
    ),
    Technique(
        "sliding_ranges",
        ("associative",),
        False,
        lambda n: 3 - 3 / max(n, 1),
        lambda n: n + 1,
        "whole",
    ),
    # 3 - 4/n where all ranges are of one length, which gaps in the events undo.
    Technique(
        "van_herk", ("associative",), False, lambda n: 3 - 3 / max(n, 1), lambda n: 2 * n, "whole"
    ),
    Technique(
        "sparse_table",
        ("associative", "idempotent"),
        True,
        lambda n: ceil(_log2(n)) + 1.0,
        lambda n: n * (1 + _log2(n)),
        "whole",
    ),
    Technique(
        "disjoint_sparse_table",
        ("associative",),
        True,
        lambda n: ceil(_log2(n)) + 1.0,
        lambda n: n * (1 + _log2(n)),
        "whole",
    ),
    Technique("fan_out", ("associative",), False, lambda n: n - 1, lambda n: n, "spread"),
)

TECHNIQUES: dict[str, Technique] = {technique.name: technique for technique in _ALL}
INCREMENTAL = tuple(t.name for t in _ALL if t.form == "incremental")
# Each window has a structure of its own; the ranges of SlickDeque (Inv) must be known up front.
ONE_RANGE = (*(t.name for t in _ALL if not t.several_ranges), "slick_deque_inv")
WHOLE = tuple(t.name for t in _ALL if t.form == "whole")
FAN_OUT = "fan_out"
# What combines all partials of an instance anew.
LAZY = (None, "naive", "one_by_one", FAN_OUT)


def technique_named(name: str) -> Technique:
    """Return a technique, or refuse a name that there is not.

    >>> technique_named("fan_out").form
    'spread'
    >>> technique_named("two_stack")
    Traceback (most recent call last):
    weft.errors.QueryError: unknown technique 'two_stack'
    hint: did you mean 'two_stacks'?
    """
    found = TECHNIQUES.get(name)
    if found is None:
        listed = f"use one of {', '.join(TECHNIQUES)}"
        raise QueryError(f"unknown technique {name!r}", hint=suggest(name, TECHNIQUES, listed))
    return found


def refused_technique(name: str) -> QueryError:
    """Say that a plan names its techniques already."""
    return QueryError(
        f"a plan is run as it is, and technique {name!r} is asked for",
        hint="plan with it: weft.optimize(..., technique=...)",
    )
