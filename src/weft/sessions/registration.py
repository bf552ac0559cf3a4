"""Queries that come and go while a session runs: the plan changes, and operators take over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engines.local.state.takeover import take_over
from weft.planners.running_workload import as_cut
from weft.sessions.source_stream import SourceStream

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from weft.plan import Plan


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
