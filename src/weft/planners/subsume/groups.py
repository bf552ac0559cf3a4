"""Groups of windows that subsume one another, so that one chain of partials serves them all.

Patroumpas & Sellis, "Subsuming Multiple Sliding Windows for Shared Stream Computation" (ADBIS
2011): a window is subsumed under another when it is no longer and the other ends only where it
ends too. In a group every member is subsumed under the next; the next keeps only what the member
does not reach. A window of the same range as a member needs nothing of its own: it piggybacks, and
takes every q-th result of the member.

The paper's windows end at multiples of their slide; here a window starts at `offset + m*slide`.
Where the range is a multiple of the slide that is the same. Otherwise the paper's window of range
w and slide b is `PeriodicWindow(w, b, -w)`. Two conditions the paper leaves out are kept here: the
phases must agree, and for aggregates (not for queues of events) the range must be a multiple of
the slide, or the parts do not add up.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING, Literal

from weft.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft.window.periodic import PeriodicWindow

Role = Literal["seed", "enclosing", "piggybacked"]


@dataclass(frozen=True, slots=True)
class Group:
    """A chain of windows, each subsumed under the next, and the piggybacks of each.

    `piggybacks[i]` ride on `chain[i]`, finest slide first. `reason` says why a window that could
    not be grouped stands alone; such a group admits nobody.
    """

    chain: tuple[PeriodicWindow, ...]
    piggybacks: tuple[tuple[PeriodicWindow, ...], ...]
    reason: str | None = None

    @property
    def base_slide_us(self) -> int:
        """Slide of the seed, which all slides of the group are multiples of."""
        return self.chain[0].slide_us

    @property
    def roles(self) -> tuple[tuple[PeriodicWindow, Role], ...]:
        """All windows of the group with their roles: each member, followed by its piggybacks."""
        found: list[tuple[PeriodicWindow, Role]] = []
        for member, riders in zip(self.chain, self.piggybacks, strict=True):
            found.append((member, "enclosing" if found else "seed"))
            found += [(rider, "piggybacked") for rider in riders]
        return tuple(found)

    @property
    def windows(self) -> tuple[PeriodicWindow, ...]:
        """All windows of the group: each member, followed by its piggybacks."""
        return tuple(window for window, _ in self.roles)


def subsumes(outer: PeriodicWindow, inner: PeriodicWindow) -> bool:
    """True when `inner` is no longer than `outer`, and ends wherever `outer` ends.

    >>> from weft.window.periodic import PeriodicWindow
    >>> subsumes(PeriodicWindow(12, 6), PeriodicWindow(6, 3)), subsumes(
    ...     PeriodicWindow(12, 6, 1), PeriodicWindow(6, 3))
    (True, False)
    """
    slide = inner.slide_us
    if outer.slide_us % slide or inner.range_us > outer.range_us:
        return False
    distance = outer.offset_us + outer.range_us - inner.offset_us - inner.range_us
    return distance % slide == 0


def reason_to_stand_alone(window: PeriodicWindow, *, for_aggregates: bool = True) -> str | None:
    """Say why `window` can share a chain with nobody; None if it can.

    >>> from weft.window.periodic import PeriodicWindow
    >>> reason_to_stand_alone(PeriodicWindow(10, 4))
    'its range is no multiple of its slide, so parts of one slide do not add up to it'
    """
    if for_aggregates and window.range_us % window.slide_us:
        return "its range is no multiple of its slide, so parts of one slide do not add up to it"
    return None


def subsume_windows(
    windows: Iterable[PeriodicWindow], *, for_aggregates: bool = True
) -> tuple[Group, ...]:
    """Group `windows` from the shortest to the longest, each after the coarsest group it fits on.

    Algorithm 1 of the paper. A group is found by the slide it ends with, not by trying them all.

    >>> from weft.window.periodic import PeriodicWindow
    >>> wanted = [PeriodicWindow(*w) for w in ((4, 2), (6, 3), (8, 4), (8, 2), (12, 3))]
    >>> for group in subsume_windows(wanted):
    ...     print([str(w) for w in group.chain], [str(w) for p in group.piggybacks for w in p])
    ['HOP 4us/2us', 'HOP 8us/2us'] ['HOP 8us/4us']
    ['HOP 6us/3us', 'HOP 12us/3us'] []
    """
    ordered = _in_order(windows)
    builder = _Builder(sorted({window.slide_us for window in ordered}))
    for window in ordered:
        reason = reason_to_stand_alone(window, for_aggregates=for_aggregates)
        if reason is not None:
            builder.found(window, reason)
            continue
        number = builder.coarsest_fit(window)
        if number is None:
            builder.found(window)
        else:
            builder.place(number, window)
    return builder.groups()


def minimum_groups(
    windows: Iterable[PeriodicWindow], *, for_aggregates: bool = True
) -> tuple[Group, ...]:
    """Group `windows` into as few groups as there can be.

    Piggybacks are set aside first. What is left is a partial order, and a smallest set of chains
    that covers it is a largest matching of windows with direct successors (Dilworth).

    >>> from weft.window.periodic import PeriodicWindow
    >>> wanted = [PeriodicWindow(*w) for w in ((2, 2), (3, 3), (6, 6), (9, 3))]
    >>> len(subsume_windows(wanted)), len(minimum_groups(wanted))
    (3, 2)
    """
    alone: list[Group] = []
    members: list[PeriodicWindow] = []
    riders: dict[PeriodicWindow, list[PeriodicWindow]] = {}
    same_range: list[PeriodicWindow] = []
    for window in _in_order(windows):
        reason = reason_to_stand_alone(window, for_aggregates=for_aggregates)
        if reason is not None:
            alone.append(Group((window,), ((),), reason))
            continue
        if same_range and same_range[0].range_us != window.range_us:
            same_range = []
        host = next((member for member in same_range if subsumes(window, member)), None)
        if host is not None:
            riders[host].append(window)
            continue
        riders[window] = []
        same_range.append(window)
        members.append(window)
    chains = _cover_by_chains(members)
    grouped = (Group(tuple(c), tuple(tuple(riders[w]) for w in c)) for c in chains)
    return (*grouped, *alone)


def check_groups(groups: Iterable[Group], *, for_aggregates: bool = True) -> None:
    """Raise an `InternalError` unless every group keeps its promises and no window is in two."""
    seen: set[PeriodicWindow] = set()
    for group in groups:
        if len(group.chain) != len(group.piggybacks) or not group.chain:
            raise InternalError("a group of windows has a level without a member")
        for shorter, longer in zip(group.chain, group.chain[1:], strict=False):
            if shorter.range_us == longer.range_us or not subsumes(longer, shorter):
                raise InternalError(f"{shorter} is followed by {longer}, which does not enclose it")
        for member, riders in zip(group.chain, group.piggybacks, strict=True):
            for rider in riders:
                if rider.range_us != member.range_us or not subsumes(rider, member):
                    raise InternalError(f"{rider} cannot ride on {member}")
        for window in group.windows:
            if window in seen:
                raise InternalError(f"{window} is in two groups")
            seen.add(window)
            reason = reason_to_stand_alone(window, for_aggregates=for_aggregates)
            if reason != group.reason or (reason and len(group.windows) > 1):
                raise InternalError(f"{window} is in a group that does not suit it")


class _Builder:
    """Groups while they grow at their long end, indexed by the window they end with."""

    def __init__(self, slides: Sequence[int]) -> None:
        self._slides = slides
        self._divisors: dict[int, list[int]] = {}
        self._chains: list[list[PeriodicWindow]] = []
        self._riders: list[list[list[PeriodicWindow]]] = []
        self._reasons: list[str | None] = []
        # (slide, phase of the ends) of the last member -> groups, coarsest seed first. An entry
        # goes stale when its group grows, and is dropped when it comes to the top.
        self._ending: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def coarsest_fit(self, window: PeriodicWindow) -> int | None:
        """Find the group of the coarsest seed, the oldest of equals, whose end `window` fits on."""
        best: tuple[int, int] | None = None
        end = window.offset_us + window.range_us
        for slide in self._divisors_of(window.slide_us):
            key = (slide, end % slide)
            entries = self._ending.get(key)
            while entries and self._key(entries[0][1]) != key:
                heappop(entries)
            if entries and (best is None or entries[0] < best):
                best = entries[0]
        return None if best is None else best[1]

    def place(self, number: int, window: PeriodicWindow) -> None:
        """Put `window` at the long end of a group, or on the back of its last member."""
        chain = self._chains[number]
        if chain[-1].range_us == window.range_us:
            self._riders[number][-1].append(window)
        else:
            chain.append(window)
            self._riders[number].append([])
            self._index(number)

    def found(self, window: PeriodicWindow, reason: str | None = None) -> None:
        """Make `window` the seed of a new group."""
        self._chains.append([window])
        self._riders.append([[]])
        self._reasons.append(reason)
        if reason is None:
            self._index(len(self._chains) - 1)

    def groups(self) -> tuple[Group, ...]:
        """Freeze the groups, in the order of their seeds."""
        return tuple(
            Group(tuple(chain), tuple(map(tuple, riders)), reason)
            for chain, riders, reason in zip(self._chains, self._riders, self._reasons, strict=True)
        )

    def _key(self, number: int) -> tuple[int, int]:
        last = self._chains[number][-1]
        return last.slide_us, (last.offset_us + last.range_us) % last.slide_us

    def _index(self, number: int) -> None:
        entry = (-self._chains[number][0].slide_us, number)
        heappush(self._ending.setdefault(self._key(number), []), entry)

    def _divisors_of(self, slide: int) -> list[int]:
        if slide not in self._divisors:
            self._divisors[slide] = [s for s in self._slides if slide % s == 0]
        return self._divisors[slide]


def _in_order(windows: Iterable[PeriodicWindow]) -> list[PeriodicWindow]:
    """Sort by range, then slide, then offset, without duplicates."""
    return sorted(set(windows), key=lambda w: (w.range_us, w.slide_us, w.offset_us))


def _cover_by_chains(members: Sequence[PeriodicWindow]) -> list[list[PeriodicWindow]]:
    """Cover `members`, sorted by range, by as few chains of enclosing windows as possible."""
    by_ends: dict[tuple[int, int], list[int]] = {}
    for number, window in enumerate(members):
        end = (window.offset_us + window.range_us) % window.slide_us
        by_ends.setdefault((window.slide_us, end), []).append(number)
    enclosing: list[list[int]] = []
    for number, inner in enumerate(members):
        slide, end = inner.slide_us, inner.offset_us + inner.range_us
        enclosing.append(
            [
                outer
                for (outer_slide, outer_end), numbers in by_ends.items()
                if outer_slide % slide == 0 and (outer_end - end) % slide == 0
                for outer in numbers[bisect_left(numbers, number + 1) :]
                if members[outer].range_us > inner.range_us
            ]
        )
    successor = _largest_matching(enclosing)
    preceded = set(successor)
    chains = []
    for number in range(len(members)):
        if number in preceded:
            continue
        linked = [members[number]]
        following = successor[number]
        while following >= 0:
            linked.append(members[following])
            following = successor[following]
        chains.append(linked)
    return chains


def _largest_matching(neighbours: Sequence[Sequence[int]]) -> list[int]:
    """Match as many nodes as possible with one neighbour each, none twice; -1 is no partner."""
    import numpy as np
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not neighbours:
        return []
    first = np.cumsum([0, *map(len, neighbours)])
    arcs = np.fromiter(chain.from_iterable(neighbours), np.intc, int(first[-1]))
    graph = csr_array((np.ones(arcs.size, np.bool_), arcs, first), (len(neighbours),) * 2)
    partners: list[int] = maximum_bipartite_matching(graph, perm_type="column").tolist()
    return partners
