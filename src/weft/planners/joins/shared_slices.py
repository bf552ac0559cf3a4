"""Joins that differ in their windows only share the slices of their early inputs.

Each input is aggregated once by (group, join value, slice), with the edges of all windows, and the
windows of every join are composed of these slices before it is joined. That pays as long as more
and shorter slices cost less to compose than aggregating the events once more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.cost.joins.instants import InstantCost, edges_of
from weft.plan.body import Candidate
from weft.plan.nodes import Join, Slice, topological
from weft.plan.validate import validate
from weft.window import Edges, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.planners.joins.planned import PlannedJoin


def with_shared_slices(planned: Sequence[PlannedJoin]) -> list[PlannedJoin]:
    """Let joins of the same signature share slices, input by input, wherever that is cheaper."""
    groups: dict[object, list[int]] = {}
    for at, join in enumerate(planned):
        if isinstance(join.pricing, InstantCost):
            groups.setdefault(signature(join), []).append(at)
    found = list(planned)
    for places in groups.values():
        if len(places) > 1:
            shared = _shared([planned[at] for at in places])
            for at, join in zip(places, shared, strict=True):
                found[at] = join
    return found


def signature(planned: PlannedJoin) -> object:
    """What joins must have in common: the rows they read, what ties them, and their keys."""
    join = _join(planned)
    scans = tuple((s.alias, replace(s.scan, columns=())) for s in join.sides)
    return scans, join.on, tuple(side.keys for side in join.sides), join.keys


def _join(planned: PlannedJoin) -> Join:
    join = planned.emit.inputs[0]
    assert isinstance(join, Join)
    return join


def _shared(group: list[PlannedJoin]) -> list[PlannedJoin]:
    for side in range(len(group[0].early)):
        sides = [_join(join).sides[side] for join in group]
        # Partials that grow with the events are not sliced.
        if all(
            s.early
            and isinstance(s.window, PeriodicWindow)
            and not any(p.laws().holistic for p in s.partials)
            for s in sides
        ):
            group = _shared_side(group, side)
    return group


def _shared_side(group: list[PlannedJoin], side: int) -> list[PlannedJoin]:
    """Share the slices of one input if all joins together pay less for them."""
    sides = [_join(join).sides[side] for join in group]
    windows = [s.window for s in sides if isinstance(s.window, PeriodicWindow)]
    partials = tuple(dict.fromkeys(p for s in sides for p in s.partials))
    edges, classes = Edges.of(windows), edges_of(*windows)
    prices = [join.pricing for join in group if isinstance(join.pricing, InstantCost)]
    alone = [
        price.slicing(side, edges_of(window), price.widths[side])
        + price.composing(side, edges_of(window))
        for price, window in zip(prices, windows, strict=True)
    ]
    composing = [price.composing(side, classes) for price in prices]
    slicing = prices[0].slicing(side, classes, len(partials))
    together = slicing + sum(composing)
    name = f"{', '.join(join.query for join in group)}: slices of {sides[0].alias} shared"
    if together >= sum(alone):
        reason = f"{together / sum(alone):.4g}x the cost of slices of their own"
        told = Candidate(name, together, reason)
        return [replace(group[0], sharing=(*group[0].sharing, told)), *group[1:]]
    scan = sides[0].scan
    columns = tuple(sorted({c for s in sides for c in s.scan.columns}))
    common = Slice(replace(scan, columns=columns), sides[0].keys, edges, partials)
    told = Candidate(name, together, f"chosen: {sum(alone) / together:.4g}x less than alone")
    found = []
    for at, join in enumerate(group):
        own = _join(join)
        changed = list(own.sides)
        changed[side] = replace(sides[at], input=common)
        emit = replace(join.emit, inputs=(replace(own, sides=tuple(changed)),))
        validate(topological((emit,)))
        found.append(
            replace(
                join,
                emit=emit,
                sharing=(*join.sharing, told) if at == 0 else join.sharing,
                saved=join.saved + alone[at] - composing[at],
                slicing={**join.slicing, common: slicing},
            )
        )
    return found
