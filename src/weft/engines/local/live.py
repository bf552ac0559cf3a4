"""Queries that come and go while a session runs: an operator takes over the state of another.

The plan changes and the slices stay. Slices that the new plan cuts at the same edges, with partials
that the old one kept, go on as they are; others start with the next events. From when a window is
complete follows from the slices, or from the events it looks at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.flows import Flow
from weft.engines.local.lateness import first_start
from weft.engines.local.stream import SourceStream
from weft.plan import Roll
from weft.planners.live import as_cut
from weft.window import CalendarWindow, SessionWindow

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from weft.engines.local.delimited import Delimited
    from weft.engines.local.emitting import Emitted
    from weft.engines.local.operator import ScopeOperator
    from weft.plan import Emit, Node, Plan


@dataclass(frozen=True, slots=True)
class Registration:
    """A query of a session: whether it is active, and from when each of its windows is complete.

    Rows come for the instances that close while the query is active and start no earlier than
    `complete_from_us`; None stands for no limit. A window that would miss events gives no row.
    """

    query: str
    active: bool
    complete_from_us: Mapping[str, int | None]  # by window

    @property
    def complete_from(self) -> Mapping[str, dt.datetime | None]:
        """The same as points in time, UTC.

        >>> Registration("q", True, {"w": 0, "v": None}).complete_from["w"].isoformat()
        '1970-01-01T00:00:00+00:00'
        """
        from weft.time import instant

        limits = self.complete_from_us.items()
        return {label: None if us is None else instant(us) for label, us in limits}


def adopted(stream: SourceStream, plan: Plan) -> SourceStream:
    """Return a stream that goes on by another plan; the one given stays as it is."""
    made = SourceStream(stream.source, plan, stream.delay_us)
    made.watermark_us, made.timeless = stream.watermark_us, stream.timeless
    made.seconds, made.latest_us = stream.seconds, dict(stream.latest_us)
    if stream.schema is None:
        return made
    made.start(stream.schema)
    before = {(one.scan.time, one.scan.where, one.keys): one for one in stream.operators}
    for operator in made.operators:
        scan = operator.scan
        latest_us = stream.latest_us.get(scan.time or "")
        old = before.get((scan.time, scan.where, operator.keys))
        take_over(operator, old, stream.watermark_us, latest_us)
    return made


def cut_plan(stream: SourceStream) -> Plan:
    """Return the plan of a stream with the edges that it really cuts at."""
    bases = [pair for one in stream.operators for pair in one.plan.bases.items()]
    return as_cut(stream.plan, {node: base.edges for node, base in bases})


def registrations_of(streams: Iterable[SourceStream]) -> dict[str, Registration]:
    """Return the active queries of streams."""
    found: dict[str, dict[str, int | None]] = {}
    for stream in streams:
        limits = {who: us for one in stream.operators for who, us in one.complete_from_us.items()}
        for emit in stream.plan.emits:
            found.setdefault(emit.query, {})[emit.label] = limits.get((emit.query, emit.label))
    return {name: Registration(name, True, limits) for name, limits in found.items()}


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
    for rolls, one in new.delimited.items():
        _take_events(one, () if old is None else tuple(old.delimited.values()), since_us)
        new.delimited[rolls] = one
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
            for run in old.runs[other]
        ]


def _take_events(one: Delimited, others: tuple[Delimited, ...], since_us: int | None) -> None:
    for other in others:
        if other.window == one.window and set(other.partials) >= set(one.partials):
            one.discretizer, one.since_us = other.discretizer, other.since_us
            one.waiting = [rows.only(one.partials) for rows in other.waiting]
            one.kept = None if other.kept is None else other.kept.only(one.partials)
            return
    one.since_us = since_us
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
    if rolls in operator.delimited:
        since = operator.delimited[rolls].since_us
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
