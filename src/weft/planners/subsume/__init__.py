"""Chains of nested windows: each adds to the window it encloses what lies before it.

Patroumpas & Sellis, "Subsuming Multiple Sliding Windows for Shared Stream Computation" (ADBIS
2011). The seed of a group folds slices; an enclosing window is a stair on the one before it; a
piggybacked window takes every q-th instance of a window with the same range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.plan import FOLD, PICK, STAIR, Roll, Scope, Slice
from weft.planners.base import Context, NoProposal, Proposal, unshared_reasons
from weft.planners.subsume.groups import Group, subsume_windows
from weft.window import Edges, PeriodicWindow, Window

if TYPE_CHECKING:
    from weft.aggregates import Partial

# Groups whose members EXPLAIN lists by role; the rest are counted.
_LISTED = 10


def propose(scope: Scope, context: Context) -> Proposal | NoProposal:
    """Group the windows, and compute each group along its chain."""
    windows = scope.shareable
    if not windows:
        return NoProposal("no periodic window with a decomposable aggregate")
    groups = subsume_windows(windows)
    rolls: dict[Window, Roll] = {}
    for group in groups:
        rolls.update(_group_rolls(scope, group))
    alone: dict[Window, str] = {g.chain[0]: g.reason for g in groups if g.reason is not None}
    return Proposal(
        scope.emits(rolls),
        reasons={**unshared_reasons(scope), **alone},
        notes=_notes(windows, groups),
    )


def _group_rolls(scope: Scope, group: Group) -> dict[Window, Roll]:
    first = group.chain[0]
    if len(group.windows) == 1 and first.is_tumbling:
        return {first: scope.from_events(first, scope.shareable_partials(first))}
    slices = Slice(scope.scan, scope.keys, Edges.of(group.chain), scope.partials_for(group.windows))
    carried = _carried(scope, group)
    rolls: dict[Window, Roll] = {}
    before: Roll | None = None
    for member, riders, partials in zip(group.chain, group.piggybacks, carried, strict=True):
        if before is None:
            before = Roll((slices,), member, FOLD, scope.keys, partials)
        else:
            before = Roll((before, slices), member, STAIR, scope.keys, partials)
        rolls[member] = before
        for rider in riders:
            asked = scope.shareable_partials(rider)
            rolls[rider] = Roll((before,), rider, PICK, scope.keys, asked)
    return rolls


def _carried(scope: Scope, group: Group) -> list[tuple[Partial, ...]]:
    """What each member of the chain computes: its own, its riders' and its successors' partials."""
    order = {p: i for i, p in enumerate(scope.partials_for(group.windows))}
    needed: dict[Partial, None] = {}
    carried: list[tuple[Partial, ...]] = []
    for member, riders in zip(reversed(group.chain), reversed(group.piggybacks), strict=True):
        for window in (member, *riders):
            needed.update((p, None) for p in scope.shareable_partials(window))
        carried.append(tuple(sorted(needed, key=order.__getitem__)))
    return carried[::-1]


def _notes(windows: tuple[PeriodicWindow, ...], groups: tuple[Group, ...]) -> tuple[str, ...]:
    noun = "group" if len(groups) == 1 else "groups"
    listed = [
        f"group {i}: " + ", ".join(f"{window} {role}" for window, role in group.roles)
        for i, group in enumerate(groups[:_LISTED], 1)
        if len(group.windows) <= 2 * _LISTED
    ]
    return (f"subsume: {len(windows)} windows in {len(groups)} {noun}", *listed)
