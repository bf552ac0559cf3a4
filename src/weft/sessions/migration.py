"""Restarts with another workload: what changed, and whether the state can follow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.engines.spark.streaming.checkpoint.record import changed_settings, differences, refuse
from weft.engines.spark.streaming.columnar.parcels import Parcel
from weft.engines.spark.streaming.streams import streams_of
from weft.plan.body import COLUMNAR
from weft.planners.running_workload import embed_query, without_query
from weft.query import JoinQuery, Query

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.spark.streaming.checkpoint.record import Record
    from weft.plan import Plan
    from weft.query import AnyQuery


def resumed(
    before: Record, queries: Sequence[AnyQuery], settings: Mapping[str, str], where: object
) -> Record:
    """Return the record to go on with: the same, or migrated; refuse what cannot be.

    Operators of the columnar strategy take over each other's state, so queries may be added and
    removed. Those that were added while the stream ran stay, whether or not the workload has them.
    """
    refuse(where, changed_settings(before, settings))
    refuse(where, _changed_joins(before.plan, queries))
    wanted = [query for query in queries if isinstance(query, Query)]
    names = {query.name for query in wanted}
    had = [*before.plan.queries, *before.suspended_queries]
    asked = [q for q in had if q.name in names or q.name not in before.live_sinks]
    found = differences(asked, wanted)
    if not found:
        return before
    known = {query.name for query in had}
    added = [query for query in wanted if query.name not in known]
    removed = [query.name for query in asked if query.name not in names]
    others = found[len(added) + len(removed) :]
    if before.strategy != COLUMNAR or others:
        refuse(where, found)
    plan = _changed(before, added, removed)
    suspended = {name: own for name, own in before.suspended.items() if name not in removed}
    return replace(
        before,
        plan=plan,
        parcels=_grown(before, plan, where),
        suspended=suspended,
        version=before.version + 1,
    )


def _changed_joins(plan: Plan, queries: Sequence[AnyQuery]) -> list[str]:
    """Name the joins that differ; the state of a join is Spark's own, and follows no other plan."""
    had = {join.name: join for join in plan.joins}
    have = {query.name: query for query in queries if isinstance(query, JoinQuery)}
    return [
        *(f"join {name!r} is gone" for name in had if name not in have),
        *(f"join {name!r} is new" for name in have if name not in had),
        *(f"join {name!r} is another" for name in have if had.get(name, have[name]) != have[name]),
    ]


def _changed(before: Record, added: Sequence[Query], removed: Sequence[str]) -> Plan:
    plan = before.plan
    for query in added:
        plan = embed_query(plan, query)
    for name in removed:
        if name not in before.suspended:
            plan = without_query(plan, name)
    return plan


def _grown(before: Record, plan: Plan, where: object) -> dict[str, tuple[Parcel, ...]]:
    """Send what the new queries need as well; what was sent keeps its place and name."""
    grown = {stream: list(parcels) for stream, parcels in before.parcels.items()}
    for stream in streams_of(plan):
        if stream.name not in grown:
            refuse(where, [f"the source {stream.source!r} is new"])
        own = grown[stream.name]
        for scope in stream.scopes:
            at = next((i for i, parcel in enumerate(own) if parcel.serves(scope)), None)
            if at is None:
                own.append(Parcel.of(scope))
            elif "whole events" in own[at].missing(scope):
                refuse(where, [f"a user-defined window of {scope.queries[-1]!r} is new"])
            else:
                own[at] = own[at].with_more(scope)
    return {stream: tuple(parcels) for stream, parcels in grown.items()}
