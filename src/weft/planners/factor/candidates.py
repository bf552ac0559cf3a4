"""Which auxiliary windows are worth considering as feeders of a set of windows.

Any window that serves a subset of the wanted ones is possible, and there are far too many. A
factor that serves a subset may as well start as seldom as the subset allows, because a coarser
slide means fewer instances and the same readers. So slides come from the closure of the wanted
windows under "starts where both start", the gcd of slides and of the distance of their phases.
What remains open is the range:

- side by side (`tiled`): ranges that divide the ranges served. Tumbling factors are the coarsest
  of them; overlapping ones trade more reads of their own for fewer reads of their readers.
- overlapping (`covered`): ranges congruent to those served. The price is linear in the range
  between two ranges served, so only its ends matter: the shortest, a range served, and just below.
- range for range (`reused`): the common range of several windows, with the slide they share.
"""

from __future__ import annotations

from functools import cache
from math import gcd, sqrt
from typing import TYPE_CHECKING, Literal

from weft.window.periodic import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Relation = Literal["covered", "tiled", "reused"]

# (coarsest common slide, its phase, what the subset says about ranges)
Family = tuple[int, int, int]

# A closure grows with the number of distinct gcds, in practice a few dozen; coprime-looking
# inputs could double it with every window. Families of few windows and fine slides are given up.
_FAMILY_LIMIT = 128
# Of a range with very many divisors, as many are tried, evenly spread.
_DIVISOR_LIMIT = 12
# Quotients of clock times are smooth; a larger prime factor is not looked for.
_PRIME_LIMIT = 4096
# Ranges served at which an overlapping factor may end, per family, shortest first.
_RANGE_LIMIT = 3


def factor_candidates(
    windows: Sequence[PeriodicWindow], relation: Relation, *, published: bool = False
) -> tuple[PeriodicWindow, ...]:
    """List the factor windows worth pricing for `windows`, none of which is one of them.

    `published` keeps to what Wu et al. allow: tumbling factors side by side, and no reuse of
    equal ranges.

    >>> wanted = [PeriodicWindow(r, r) for r in (6, 10, 15)]
    >>> [str(f) for f in factor_candidates(wanted, "tiled", published=True)]
    ['TUMBLE 5us', 'TUMBLE 3us', 'TUMBLE 2us', 'TUMBLE 1us']
    """
    found: dict[tuple[int, int, int], None] = {}
    if relation != "reused":
        found.update(_tumbling(windows))
        if not published:
            found.update(_side_by_side(windows))
    if relation == "covered":
        found.update(_overlapping(windows))
    if not published:
        found.update(_range_for_range(windows))
    for window in windows:
        found.pop((window.range_us, window.slide_us, window.offset_us), None)
    coarsest_first = sorted(found, key=lambda f: (-f[1], f[0], f[2]))
    return tuple(PeriodicWindow(*parts) for parts in coarsest_first)


def _closure(
    seeds: Sequence[Family], meet: Callable[[Family, Family], Family]
) -> dict[Family, None]:
    """Collect the meets of all subsets of `seeds`."""
    # How many seeds a family serves, as far as known: a meet that changes nothing is one more.
    served: dict[Family, int] = {}
    for seed in dict.fromkeys(seeds):
        for family, count in tuple(served.items()):
            common = meet(seed, family)
            served[common] = max(served.get(common, 0), count + 1)
        served.setdefault(seed, 1)
        if len(served) > 2 * _FAMILY_LIMIT:
            ranked = sorted(served, key=lambda f: (-served[f] * sqrt(f[0]), f))
            served = {family: served[family] for family in ranked[:_FAMILY_LIMIT]}
    return dict.fromkeys((*served, *seeds))


def _meet_dividing(a: Family, b: Family) -> Family:
    """Common starts, and the common divisor of the ranges."""
    slide = gcd(a[0], b[0], a[1] - b[1])
    return slide, a[1] % slide, gcd(a[2], b[2])


def _meet_congruent(a: Family, b: Family) -> Family:
    """Common starts whose slide also divides the distance of the ranges."""
    slide = gcd(a[0], b[0], a[1] - b[1], a[2] - b[2])
    return slide, a[1] % slide, a[2] % slide


def _tumbling(windows: Sequence[PeriodicWindow]) -> dict[tuple[int, int, int], None]:
    seeds = []
    for window in windows:
        slide = gcd(window.range_us, window.slide_us)
        seeds.append((slide, window.offset_us % slide, 0))
    return {(s, s, o): None for s, o, _ in _closure(seeds, _meet_dividing)}


def _side_by_side(windows: Sequence[PeriodicWindow]) -> Iterator[tuple[tuple[int, int, int], None]]:
    seeds = [(w.slide_us, w.offset_us, w.range_us) for w in windows]
    for starts, offset, common_range in _closure(seeds, _meet_dividing):
        # A feeder read side by side has a range that is a multiple of its slide.
        slide = gcd(starts, common_range)
        for times in _spread(divisors(common_range // slide)):
            yield (slide * times, slide, offset % slide), None


def _overlapping(windows: Sequence[PeriodicWindow]) -> Iterator[tuple[tuple[int, int, int], None]]:
    seeds = [(w.slide_us, w.offset_us, w.range_us % w.slide_us) for w in windows]
    parts = sorted({(w.range_us, w.slide_us, w.offset_us) for w in windows})
    families = _closure(seeds, _meet_congruent)
    # Where the range is no multiple, the coarsest slide may leave no shorter range at all.
    finer = {
        (slide // part, offset % (slide // part), residue % (slide // part)): None
        for slide, offset, residue in families
        for part in (2, 3, 5)
        if residue and slide % part == 0
    }
    for slide, offset, residue in families | finer:
        shortest = slide + residue  # no gaps: a covering feeder is at least as long as its slide
        yield (shortest, slide, offset), None
        served = {
            r: r % s
            for r, s, o in parts
            if s % slide == 0 and (o - offset) % slide == 0 and (r - residue) % slide == 0
        }
        for range_us in tuple(served)[:_RANGE_LIMIT]:
            if range_us - slide > shortest:
                yield (range_us - slide, slide, offset), None
            # Multiples are served as well from side by side.
            if served[range_us]:
                yield (range_us, slide, offset), None


def _range_for_range(
    windows: Sequence[PeriodicWindow],
) -> Iterator[tuple[tuple[int, int, int], None]]:
    by_range: dict[int, list[Family]] = {}
    for window in windows:
        seed = (window.slide_us, window.offset_us, window.range_us)
        by_range.setdefault(window.range_us, []).append(seed)
    for range_us, seeds in by_range.items():
        if len(seeds) > 1:
            for slide, offset, _ in _closure(seeds, _meet_dividing):
                yield (range_us, slide, offset), None


@cache
def divisors(number: int) -> tuple[int, ...]:
    """List the divisors of `number`, smallest first; a factor without small primes counts as prime.

    >>> divisors(60)
    (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)
    """
    found = [1]
    rest, prime = number, 2
    while prime * prime <= rest and prime <= _PRIME_LIMIT:
        powers = [1]
        while rest % prime == 0:
            rest //= prime
            powers.append(powers[-1] * prime)
        found = [d * power for power in powers for d in found]
        prime += 1
    if rest > 1:
        found += [d * rest for d in found]
    return tuple(sorted(found))


def _spread(values: Sequence[int]) -> Sequence[int]:
    """Thin out `values` evenly when there are very many."""
    last = len(values) - 1
    if last < _DIVISOR_LIMIT:
        return values
    return [values[i * last // (_DIVISOR_LIMIT - 1)] for i in range(_DIVISOR_LIMIT)]
