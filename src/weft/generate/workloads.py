"""The window sets that the papers measure their optimizers on, drawn anew from a seed.

All are lists of windows in whole seconds; equal arguments give equal lists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Literal

from weft.cost.edges.divisors import divisors
from weft.errors import QueryError
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable

SECOND_US = 1_000_000

SubsumptionClass = Literal["smooth", "medium", "abrupt"]

_SLIDE_MAX: dict[str, int] = {"smooth": 10, "medium": 20, "abrupt": 30}
_RANGE_MAX = 60
_SEED_RANGES = (2, 5, 10)
_SEED_SLIDES = (5, 10, 20)
_MULTIPLES = range(2, 51)


@dataclass(frozen=True, slots=True)
class WeaveSetting:
    """One point of the plan experiments of Shein & Chrysanthis (IEEE TKDE); times in seconds."""

    queries: int = 100
    slide_max: int = 1_000
    overlap_max: int = 10_000
    rate: float = 1.0
    skew: float = 0.0

    def windows(self, seed: int) -> list[PeriodicWindow]:
        """Draw the windows: slides divide the largest slide, ranges are multiples of slides.

        Slides follow a Zipf law: none at skew 0, towards large slides above, small ones below.

        >>> [str(w) for w in WeaveSetting(queries=3, slide_max=12, overlap_max=4).windows(seed=1)]
        ['HOP 36s/12s', 'TUMBLE 1s', 'HOP 8s/2s']
        """
        random = Random(seed)
        slides = divisors(self.slide_max)[::-1]
        weights = accumulate(1 / rank**self.skew for rank in range(1, len(slides) + 1))
        chosen = random.choices(slides, cum_weights=list(weights), k=self.queries)
        return [_window(slide * random.randint(1, self.overlap_max), slide) for slide in chosen]


def weave_experiment(number: int) -> tuple[WeaveSetting, ...]:
    """List the settings of one of the five published experiments, one per decade or step.

    They vary the number of queries, the largest slide, the overlap, the input rate and the skew.

    >>> [setting.queries for setting in weave_experiment(1)]
    [1, 10, 100, 1000, 10000]
    >>> [setting.skew for setting in weave_experiment(5)]
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    middle = WeaveSetting()
    experiments: dict[int, Iterable[WeaveSetting]] = {
        1: (replace(middle, queries=10**power) for power in range(5)),
        2: (replace(middle, slide_max=10**power) for power in range(1, 6)),
        3: (replace(middle, overlap_max=10**power) for power in range(2, 7)),
        4: (replace(middle, rate=float(f"1e{power}")) for power in range(-2, 3)),
        5: (replace(middle, skew=step / 2) for step in range(-2, 3)),
    }
    if number not in experiments:
        raise QueryError(f"there is no weave experiment {number}", hint="give a number from 1 to 5")
    return tuple(experiments[number])


def random_windows(count: int, seed: int, *, tumbling: bool) -> list[PeriodicWindow]:
    """Draw a set of windows as RandomGen of Wu et al., "Factor Windows" (arXiv:2008.12379).

    Tumbling: a range of 2 to 50 times 2, 5 or 10. Hopping: a slide of 2 to 50 times 5, 10 or 20
    and twice that range. A window drawn twice is drawn again, so the set has `count` windows.

    >>> [str(w) for w in random_windows(3, seed=7, tumbling=True)]
    ['TUMBLE 55s', 'TUMBLE 215s', 'TUMBLE 12s']
    """
    bases = _SEED_RANGES if tumbling else _SEED_SLIDES
    most = len({base * multiple for base in bases for multiple in _MULTIPLES})
    _check_count(count, most)
    random = Random(seed)
    drawn: dict[PeriodicWindow, None] = {}
    while len(drawn) < count:
        slide = random.choice(bases) * random.choice(_MULTIPLES)
        drawn[_window(slide if tumbling else 2 * slide, slide)] = None
    return list(drawn)


def sequential_windows(count: int, seed: int, *, tumbling: bool) -> list[PeriodicWindow]:
    """Draw a set of windows as SequentialGen of the same paper: 2, 3, 4, ... times one base.

    >>> [str(w) for w in sequential_windows(3, seed=1, tumbling=False)]
    ['HOP 20s/10s', 'HOP 30s/15s', 'HOP 40s/20s']
    """
    _check_count(count, len(_MULTIPLES))
    base = Random(seed).choice(_SEED_RANGES if tumbling else _SEED_SLIDES)
    slides = [base * multiple for multiple in _MULTIPLES[:count]]
    return [_window(slide if tumbling else 2 * slide, slide) for slide in slides]


def subsumption_windows(
    kind: SubsumptionClass, count: int, seed: int, *, whole_slides: bool = False
) -> list[PeriodicWindow]:
    """Draw windows of one class of Patroumpas & Sellis (ADBIS 2011), duplicates included.

    Slides of at most 10 (smooth), 20 (medium) or 30 (abrupt) seconds, ranges longer than the
    slide and at most 60 seconds; with `whole_slides` only multiples of the slide, as stairwise
    aggregation needs.

    >>> [str(w) for w in subsumption_windows("smooth", 2, seed=3, whole_slides=True)]
    ['HOP 44s/4s', 'HOP 27s/9s']
    """
    if kind not in _SLIDE_MAX:
        raise QueryError(
            f"there is no window class {kind!r}", hint=f"use one of {', '.join(_SLIDE_MAX)}"
        )
    random = Random(seed)
    windows = []
    for _ in range(count):
        slide = random.randint(1, _SLIDE_MAX[kind])
        if whole_slides:
            windows.append(_window(slide * random.randint(2, _RANGE_MAX // slide), slide))
        else:
            windows.append(_window(random.randint(slide + 1, _RANGE_MAX), slide))
    return windows


def _window(range_s: int, slide_s: int) -> PeriodicWindow:
    return PeriodicWindow(range_s * SECOND_US, slide_s * SECOND_US)


def _check_count(count: int, most: int) -> None:
    if not 0 < count <= most:
        raise QueryError(
            f"cannot draw a set of {count} windows: there are {most}",
            hint=f"ask for 1 to {most} windows",
        )
