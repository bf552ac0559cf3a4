"""An operator takes over the state of another: queries came or went, and the slices stay.

Slices that the new plan cuts at the same edges, with partials that the old one kept, go on as they
are; others start with the next events. From when a window is complete follows from the slices, or
from the events it looks at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.windows.event_windows import Delimited, stores_of
from weft.engines.local.windows.flow import Flow
from weft.engines.local.windows.lateness import first_start
from weft.plan import Roll
from weft.window import CalendarWindow, SessionWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.engines.local.operator import ScopeOperator
    from weft.engines.local.windows.close import Emitted
    from weft.engines.local.windows.event_windows import Member, Rolls
    from weft.plan import Emit, Node
    from weft.window import Window


def take_over(
    new: ScopeOperator, old: ScopeOperator | None, watermark_us: int | None, latest_us: int | None
) -> None:
    """Bring a fresh operator to where the session is: with the state of the old one, if any.

    `latest_us` is the latest event that came so far: slices that start now have all the events
    after it.
    """
    since_us = None if latest_us is None else latest_us + 1
    new.watermark_us = watermark_us
    if old is not None:
        new.codes, new.late, new.events = old.codes, old.late, old.events
        new.plan.combines, new.watermark_us = old.plan.combines, old.watermark_us
        new.journal = None if old.journal is None else old.journal.outdated()
    for node in new.plan.bases:
        _take_slices(new, node, old, since_us)
    new.delimited = _stores(new, old, since_us)
    known = set() if old is None else {(emit.query, emit.label) for emit in old.emits}
    for emit in new.emits:
        _complete(new, emit, old, (emit.query, emit.label) in known)


def _take_slices(
    new: ScopeOperator, node: Node, old: ScopeOperator | None, since_us: int | None
) -> None:
    base = new.plan.bases[node]
    able = [
        other
        for other, its in ([] if old is None else old.plan.bases.items())
        if its.edges == base.edges and its.partials.keys() >= base.partials.keys()
    ]
    if old is None or not able:
        if since_us is not None:
            new.since_us[node] = since_us
        return
    other = min(able, key=lambda one: old.since_us.get(one, -np.inf))
    if other in old.since_us:
        new.since_us[node] = old.since_us[other]
    if other in old.runs:
        new.runs[node] = [
            Flow(run.keys, run.starts_us, None, {p: run.partials[p] for p in base.partials})
            for run in old.slices_of(other)
        ]


def _stores(new: ScopeOperator, old: ScopeOperator | None, since_us: int | None) -> list[Delimited]:
    """Keep windows with the events they share, let others join them, and start the rest."""
    left = {rolls: one for store in new.delimited for rolls, one in store.members.items()}
    found: list[Delimited] = []
    stores = [] if old is None else old.delimited
    homes = {rolls: _home(one, stores) for rolls, one in left.items()}
    for store in stores:
        before = {one.window: one for one in store.members.values()}
        able = {
            rolls: one
            for rolls, one in left.items()
            if set(one.partials) <= set(store.partials)
            # What another store has seen of a window is not lost by joining this one.
            and homes[rolls] in (None, store.name)
        }
        stays = any(one.window in before for one in able.values())
        if stays:
            found.append(_continued(store, able, before, since_us))
            left = {rolls: one for rolls, one in left.items() if rolls not in able}
    for one in left.values():
        _start(one, since_us)
    return found + stores_of(list(left.items()))


def _home(wanted: Member, stores: list[Delimited]) -> str | None:
    """Name the store that has seen most of a window with these partials; None if none has."""
    able = [
        (-np.inf if one.since_us is None else one.since_us, store.name)
        for store in stores
        for one in store.members.values()
        if one.window == wanted.window and set(wanted.partials) <= set(store.partials)
    ]
    return min(able)[1] if able else None


def _continued(
    store: Delimited,
    members: dict[Rolls, Member],
    before: Mapping[Window, Member],
    since_us: int | None,
) -> Delimited:
    """Return a store that goes on for these windows, some of which may be new."""
    # What only a window that left has is of no use to those that come.
    made = Delimited(members, combines=store.combines)
    renamed = {}
    for one in members.values():
        known = before.get(one.window)
        if known is None:
            _start(one, since_us)
        else:
            one.discretizer, one.since_us = known.discretizer, known.since_us
            renamed[known.name] = one.name
    made.waiting = [rows.only(made.partials, {}) for rows in store.waiting]
    if store.kept is not None:
        made.kept = store.kept.only(made.partials, renamed)
        strangers = [one.name for one in members.values() if one.name not in made.kept.alive]
        made.kept.alive.update((n, np.zeros(len(made.kept), np.bool_)) for n in strangers)
    return made


def _start(one: Member, since_us: int | None) -> None:
    one.since_us = since_us
    if since_us is not None:
        one.discretizer.start_amid()


def _complete(new: ScopeOperator, emit: Emit, old: ScopeOperator | None, known: bool) -> None:
    """Note from when an emit is complete; those that were there before stay as they were."""
    who: Emitted = (emit.query, emit.label)
    if known and old is not None:
        if who in old.complete_from_us:
            new.complete_from_us[who] = old.complete_from_us[who]
        if emit.query in old.late_before:
            new.late_before[emit.query] = old.late_before[emit.query]
        return
    new.late_before[emit.query] = new.late
    start = complete_from(new, emit)
    if start is not None:
        new.complete_from_us[who] = start


def complete_from(operator: ScopeOperator, emit: Emit) -> int | None:
    """Return the start of the first instance that has all its events; None if all open ones do."""
    rolls = tuple(roll for roll in emit.inputs if isinstance(roll, Roll))
    window = rolls[0].window
    member = next((m[rolls] for m in (s.members for s in operator.delimited) if rolls in m), None)
    if member is not None:
        since = member.since_us
        if since is None or not isinstance(window, SessionWindow):
            return since
        # An event not seen may belong to a session that seems to begin within a gap of it.
        return since + window.gap_us
    below = {node for roll in rolls for node in operator.plan.below[roll]}
    limits = [operator.since_us[node] for node in below if node in operator.since_us]
    if not limits:
        return None
    calendar = operator.plan.calendars[window] if isinstance(window, CalendarWindow) else None
    return first_start(window, calendar, max(limits))
