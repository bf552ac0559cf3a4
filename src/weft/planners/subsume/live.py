"""Windows that come and go: embed one into existing groups, suspend one, and say what changed.

Groups are values: both functions return new ones and leave the old alone. The printed embedding of
Patroumpas & Sellis (ADBIS 2011) puts the wrong window in, checks one neighbour only and overlooks
members of equal range; here a window goes between two members when it fits on both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from weft.errors import InternalError
from weft.planners.subsume.groups import (
    Group,
    Role,
    first_not_shorter,
    reason_to_stand_alone,
    subsumes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.window.periodic import PeriodicWindow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Embedding:
    """Where a window went, and what an engine that holds partials has to do about it.

    - `host`: it rides on this member and takes every `every`-th of its results; nothing moves.
    - `splits`: the next longer member. Of the parts it keeps beyond the previous member, the newer
      ones, up to the range of the window, now belong to the window.
    - `replaces`: a coarser member of equal range, which now rides on the window. The window keeps
      its parts; they stay as coarse as they are until new ones push them out.
    - none of them: it starts with no parts of its own, at the long end of a chain or alone.
    """

    window: PeriodicWindow
    group: int
    level: int
    role: Role
    host: PeriodicWindow | None = None
    every: int = 1
    splits: PeriodicWindow | None = None
    replaces: PeriodicWindow | None = None


@dataclass(frozen=True, slots=True)
class Suspension:
    """What became of the parts of a suspended window, and of those that rode on it.

    - `heir`: a piggyback that took its place and its parts.
    - `absorbed_by`: the next longer member, which takes over its parts; without heir and absorber
      the parts are dropped, or there were none.
    - `moved`: piggybacks that could not stay, with their new places.
    - `dissolved`: its group has gone, and later groups have moved up by one.
    """

    window: PeriodicWindow
    role: Role
    heir: PeriodicWindow | None = None
    absorbed_by: PeriodicWindow | None = None
    moved: tuple[Embedding, ...] = ()
    dissolved: bool = False


def embed(
    groups: Sequence[Group], window: PeriodicWindow, *, for_aggregates: bool = True
) -> tuple[tuple[Group, ...], Embedding]:
    """Add `window` to the group of the coarsest seed that admits it, or found a new one.

    >>> from weft.planners.subsume.groups import subsume_windows
    >>> from weft.window.periodic import PeriodicWindow
    >>> groups = subsume_windows([PeriodicWindow(4, 2), PeriodicWindow(16, 8)])
    >>> groups, placed = embed(groups, PeriodicWindow(8, 4))
    >>> placed.role, placed.level, str(placed.splits)
    ('enclosing', 1, 'HOP 16us/8us')
    >>> groups, placed = embed(groups, PeriodicWindow(8, 8))
    >>> placed.role, str(placed.host), placed.every, len(groups)
    ('piggybacked', 'HOP 8us/4us', 2, 1)
    """
    _refuse_duplicate(groups, window)
    reason = reason_to_stand_alone(window, for_aggregates=for_aggregates)
    if reason is None:
        slide = window.slide_us
        related = [
            (-group.base_slide_us, number)
            for number, group in enumerate(groups)
            if group.reason is None
            and (slide % group.base_slide_us == 0 or group.base_slide_us % slide == 0)
        ]
        for _, number in sorted(related):
            admitted = _admit(groups[number], number, window)
            if admitted is not None:
                group, embedding = admitted
                return (*groups[:number], group, *groups[number + 1 :]), embedding
    alone = Group((window,), ((),), reason)
    return (*groups, alone), Embedding(window, len(groups), 0, "seed")


def suspend(
    groups: Sequence[Group], window: PeriodicWindow, *, for_aggregates: bool = True
) -> tuple[tuple[Group, ...], Suspension]:
    """Take `window` out of its group; its piggybacks stay if they can, and move if not.

    The finest piggyback that the next member fits on takes its place.

    >>> from weft.planners.subsume.groups import subsume_windows
    >>> from weft.window.periodic import PeriodicWindow
    >>> wanted = [PeriodicWindow(*w) for w in ((8, 2), (8, 4), (16, 4))]
    >>> groups, gone = suspend(subsume_windows(wanted), wanted[0])
    >>> str(gone.heir), [str(w) for w in groups[0].chain]
    ('HOP 8us/4us', ['HOP 8us/4us', 'HOP 16us/4us'])
    """
    number, level = _locate(groups, window)
    group = groups[number]
    role = group.role_of(window)
    riders = group.piggybacks[level]
    if role == "piggybacked":
        staying = tuple(rider for rider in riders if rider != window)
        changed = replace(group, piggybacks=_with(group.piggybacks, level, (staying,)))
        return _with(groups, number, (changed,)), Suspension(window, role)
    following = group.chain[level + 1] if level + 1 < len(group.chain) else None
    heir = next((r for r in riders if following is None or subsumes(following, r)), None)
    if heir is None:
        changed_groups = _without_level(groups, number, level)
        orphans = riders
    else:
        staying = tuple(r for r in riders if r != heir and subsumes(r, heir))
        orphans = tuple(r for r in riders if r != heir and r not in staying)
        changed = Group(
            _with(group.chain, level, (heir,)), _with(group.piggybacks, level, (staying,))
        )
        changed_groups = _with(groups, number, (changed,))
    moved = []
    for orphan in orphans:
        changed_groups, embedding = embed(changed_groups, orphan, for_aggregates=for_aggregates)
        moved.append(embedding)
    return changed_groups, Suspension(
        window,
        role,
        heir=heir,
        absorbed_by=following if heir is None else None,
        moved=tuple(moved),
        dissolved=heir is None and len(group.chain) == 1,
    )


def _admit(group: Group, number: int, window: PeriodicWindow) -> tuple[Group, Embedding] | None:
    """Put `window` into the group if there is a place for it."""
    chain, riders = group.chain, group.piggybacks
    level = first_not_shorter(chain, window.range_us)
    role: Role = "enclosing" if level else "seed"
    fits_on_shorter = level == 0 or subsumes(window, chain[level - 1])
    following = chain[level] if level < len(chain) else None
    if following is not None and following.range_us == window.range_us:
        if subsumes(window, following):
            joined = tuple(sorted((*riders[level], window), key=lambda w: w.slide_us))
            grown = replace(group, piggybacks=_with(riders, level, (joined,)))
            every = window.slide_us // following.slide_us
            return grown, Embedding(
                window, number, level, "piggybacked", host=following, every=every
            )
        if not (fits_on_shorter and subsumes(following, window)):
            return None
        demoted = (following, *riders[level])
        grown = Group(_with(chain, level, (window,)), _with(riders, level, (demoted,)))
        return grown, Embedding(window, number, level, role, replaces=following)
    if not fits_on_shorter or (following is not None and not subsumes(following, window)):
        return None
    grown = Group((*chain[:level], window, *chain[level:]), (*riders[:level], (), *riders[level:]))
    return grown, Embedding(window, number, level, role, splits=following)


def _without_level(groups: Sequence[Group], number: int, level: int) -> tuple[Group, ...]:
    """Remove a member with all its piggybacks, and the group with its only member."""
    group = groups[number]
    if len(group.chain) == 1:
        return _with(groups, number, ())
    thinner = Group(_with(group.chain, level, ()), _with(group.piggybacks, level, ()))
    return _with(groups, number, (thinner,))


def _with(values: Sequence[T], position: int, instead: Sequence[T]) -> tuple[T, ...]:
    return (*values[:position], *instead, *values[position + 1 :])


def _locate(groups: Sequence[Group], window: PeriodicWindow) -> tuple[int, int]:
    """Find the group of `window`, and the level it is at or rides on."""
    for number, group in enumerate(groups):
        level = group.level_of(window)
        if level is not None:
            return number, level
    raise InternalError(f"{window} is suspended but is in no group")


def _refuse_duplicate(groups: Sequence[Group], window: PeriodicWindow) -> None:
    if any(group.level_of(window) is not None for group in groups):
        raise InternalError(f"{window} is embedded but is in a group already")
