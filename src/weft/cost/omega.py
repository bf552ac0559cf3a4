"""The overlap factor of a tree: operations of final aggregation per edge, for each technique.

A tree of windows that share their slices, with E edges per time unit, costs E * Omega per time
unit beyond making the slices (Shein & Chrysanthis). P = range * E is a window's mean number of
partials. Three ways to count:

- `paper`: as published, every window charged at every edge;
- `corrected`: the same charging, with the published counts of FlatFAT and of the deque replaced
  by the true ones (the mean length of a monotone deque is the harmonic number H_P);
- `exact`: besides, a window is charged where one of its instances closes, and running aggregates
  are counted as they occur on the uneven slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from weft.cost.edges.rates import edge_rate, scale_classes
from weft.cost.lookups import RangeProfile, flat_fat_lookup, published_flat_fat_lookup
from weft.errors import UnsupportedError
from weft.window import PeriodicWindow, edge_classes, primitive_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weft.cost.lookups import LookupCost

    Floats = NDArray[np.float64]

Mode = Literal["paper", "corrected", "exact"]

# One structure per window, updated at every edge, or in the case of FlatFIT as good as that.
_OPERATIONS_PER_QUERY = {
    "flat_fit": 3.0,
    "subtract_on_evict": 2.0,
    "two_stacks": 3.0,
    "two_stacks_lite": 3.0,
    "daba": 5.0,
    "daba_lite": 4.0,
}
_SHARED = ("naive", "flat_fat", "slick_deque_inv", "slick_deque", "prefix_ring")
OMEGA_TECHNIQUES = (*_SHARED, *_OPERATIONS_PER_QUERY)

_EULER_GAMMA = 0.5772156649015329
_LONGEST_WALK = 1 << 20


@dataclass(frozen=True, slots=True)
class TreeSums:
    """What an overlap factor needs to know of a tree's windows; one entry per tree."""

    queries: Floats
    overlap: Floats  # sum of range / slide
    firings: Floats  # sum of 1 / slide
    range_max: Floats
    running: Floats | float = 0.0  # running aggregates of slick_deque_inv
    lookups: Floats | float = 0.0  # sum of the lookup costs of flat_fat


def check_omega(technique: str, mode: str) -> None:
    """Refuse a technique or a mode of counting that has no overlap factor.

    >>> check_omega("fiba", "paper")
    Traceback (most recent call last):
    weft.errors.UnsupportedError: technique fiba has no overlap factor
    hint: use one of naive, flat_fat, slick_deque_inv, slick_deque, prefix_ring, flat_fit,
    subtract_on_evict, two_stacks, two_stacks_lite, daba, daba_lite
    """
    if technique not in OMEGA_TECHNIQUES:
        raise UnsupportedError(
            f"technique {technique} has no overlap factor",
            hint=f"use one of {', '.join(OMEGA_TECHNIQUES)}",
        )
    if mode not in get_args(Mode):
        raise UnsupportedError(
            f"cannot count operations in mode {mode!r}: no such mode",
            hint=f"use one of {', '.join(get_args(Mode))}",
        )


def overlap_factor(
    windows: Sequence[PeriodicWindow],
    technique: str,
    mode: Mode = "paper",
    rate: float | None = None,
) -> float:
    """Return Omega of the tree of these windows, sliced at all their begins and ends.

    The edge rate, in edges per microsecond, is counted unless given.

    >>> tree = [PeriodicWindow(6, 2), PeriodicWindow(8, 4)]
    >>> overlap_factor(tree, "naive"), overlap_factor(tree, "flat_fit")
    (5.0, 6.0)
    >>> [round(overlap_factor(tree, "slick_deque", mode), 4) for mode in ("paper", "exact")]
    [5.2083, 5.0833]
    """
    check_omega(technique, mode)
    if rate is None:
        rate = edge_rate(edge_classes(windows, "pairs"))
    rates = np.array([rate])
    ranges = np.array([window.range_us for window in windows], dtype=np.float64)
    slides = np.array([window.slide_us for window in windows], dtype=np.float64)
    lookups: Floats | float = 0.0
    if technique == "flat_fat":
        profile = RangeProfile.of(ranges, lookup_weights(mode, slides))
        lookups = profile.total(rates, lookup_cost(mode))
    sums = TreeSums(
        queries=np.array([float(len(windows))]),
        overlap=np.array([float((ranges / slides).sum())]),
        firings=np.array([float((1 / slides).sum())]),
        range_max=np.array([float(ranges.max())]),
        running=float(running_aggregates(windows, mode)) if technique == "slick_deque_inv" else 0.0,
        lookups=lookups,
    )
    return float(overlap_factors(technique, mode, sums, rates)[0])


def overlap_factors(technique: str, mode: Mode, sums: TreeSums, rates: Floats) -> Floats:
    """Return Omega of many trees at once, each at its edge rate.

    The published formulas are Omega = sum of r/s (naive), the lookups alone (FlatFAT), 3 Q
    (FlatFIT), twice the running aggregates (SlickDeque, invertible), and 2 - 2/P + Q + the sum of
    1/i! for i = 1..P (SlickDeque, selective; P of the longest window). Q becomes the windows that
    close per edge in exact mode; FlatFIT then takes the smaller of 1 + 2 Q and 3 + Q, which was
    within a third of the combines counted on nine in ten of 63 random trees.
    """
    charged = sums.firings / rates if mode == "exact" else sums.queries
    longest = np.maximum(sums.range_max * rates, 1.0)
    omega: Floats
    if technique == "naive":
        omega = sums.overlap
    elif technique == "flat_fat" and mode == "paper":
        omega = sums.lookups + np.zeros_like(rates)
    elif technique == "flat_fat":
        looked_up = sums.lookups / rates if mode == "exact" else sums.lookups
        omega = np.ceil(np.log2(longest * (1 - 1e-12))).clip(0) + looked_up
    elif technique == "slick_deque_inv":
        omega = 2.0 * sums.running + np.zeros_like(rates)
    elif technique == "slick_deque":
        length = _inverse_factorials(longest) if mode == "paper" else harmonic(longest)
        omega = 2 - 2 / longest + charged + length
    elif technique == "prefix_ring":
        omega = 1 + charged
    elif technique == "flat_fit" and mode == "exact":
        omega = np.minimum(1 + 2 * charged, 3 + charged)
    else:
        omega = _OPERATIONS_PER_QUERY[technique] * sums.queries
    return omega


def lookup_cost(mode: Mode) -> LookupCost:
    """Return what one FlatFAT lookup costs in this mode of counting."""
    return published_flat_fat_lookup() if mode == "paper" else flat_fat_lookup()


def lookup_weights(mode: Mode, slides: Floats) -> Floats:
    """Return how often each window looks up: once per edge, or once per slide in exact mode."""
    return 1 / slides if mode == "exact" else np.ones_like(slides)


def running_aggregates(windows: Sequence[PeriodicWindow], mode: Mode = "exact") -> int:
    """Count the running aggregates that SlickDeque (invertible) keeps for a tree.

    As published, one per distinct range. In truth one per distinct number of slices that an
    instance can span, and on uneven slices the same window spans different numbers at different
    phases. Where the composite period is too long to walk, two per distinct range are assumed.

    >>> four = [(12, 4), (24, 6), (60, 20), (60, 10)]
    >>> tree = [PeriodicWindow(r, s) for r, s in four]
    >>> running_aggregates(tree, "paper"), running_aggregates(tree)
    (3, 6)
    """
    distinct = len({window.range_us for window in windows})
    if mode != "exact":
        return distinct
    edges = primitive_classes(edge_classes(windows, "pairs"))
    classes, unit, origin = scale_classes(edges)
    period = lcm(*(modulus for _, modulus in classes))
    shapes = {
        (w.range_us // unit, gcd(w.slide_us // unit, period), (w.offset_us - origin) // unit)
        for w in windows
    }
    if sum(period // step for _, step, _ in shapes) + period > _LONGEST_WALK:
        return 2 * distinct
    marks = np.zeros(period, dtype=np.int64)
    for residue, modulus in classes:
        marks[residue::modulus] = 1
    before = np.concatenate(([0], np.cumsum(marks)))
    spans: set[int] = set()
    for extent, step, offset in shapes:
        begins = np.arange(offset % step, period, step)
        periods, ends = np.divmod(begins + extent, period)
        spans.update(np.unique(periods * before[period] + before[ends] - before[begins]).tolist())
    return len(spans)


def harmonic(n: Floats) -> Floats:
    """Return H_n = 1 + 1/2 + ... + 1/n, and in between the smooth function through it.

    >>> import numpy as np
    >>> harmonic(np.array([1.0, 4.0, 22.0])).round(6).tolist()
    [1.0, 2.083333, 3.690813]
    """
    # The expansion is accurate to 1e-10 from 5 on; below, H_n follows from H_{n + 4}.
    x = n + 4
    square = 1 / (x * x)
    series = 1 / 252 - square * (1 / 240 - square / 132)
    series = square * (1 / 12 - square * (1 / 120 - square * series))
    skipped = 1 / (n + 1) + 1 / (n + 2) + 1 / (n + 3) + 1 / x
    total: Floats = np.log(x) + _EULER_GAMMA + 0.5 / x - series - skipped
    return total


def _inverse_factorials(n: Floats) -> Floats:
    """Return 1/1! + ... + 1/floor(n)!, the published mean length of a deque."""
    sums = np.cumsum(1 / np.cumprod(np.arange(1.0, 21.0)))
    return sums[np.minimum(n + 1e-9, 20.0).astype(np.int64) - 1]
