"""Aggregation joins: which inputs to aggregate before they are joined.

Tran & Lee, "Transformation of Continuous Aggregation Join Queries over Data Streams". Rule 1: an
early aggregation groups by the grouping attributes that its input owns and all its join attributes.
Rule 2: it computes the query's functions over its own columns, and always COUNT(*): a row of the
other inputs is to be counted as often as tuples stand behind it, and a group without tuples goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.aggregates import Partial, decompose
from weft.cost.joins.instants import InstantCost
from weft.cost.joins.spans import SpanCost
from weft.cost.joins.tuples import (
    PaperEstimates,
    Placement,
    SideLoad,
    TupleCost,
    placement_name,
    placement_named,
    placements,
)
from weft.cost.model import over
from weft.cost.prices import coefficients_of
from weft.errors import QueryError
from weft.expression import column, columns_of
from weft.plan.joins import JoinShape
from weft.plan.nodes import Emit, Join, JoinSide, Scan, topological
from weft.plan.validate import validate
from weft.planners.joins.planned import PlacementCost, PlannedJoin
from weft.planners.joins.shared_slices import with_shared_slices
from weft.query import JoinQuery
from weft.statistics import Statistics
from weft.window import LandmarkWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.plan.body import Candidate
    from weft.query import JoinInput, Keys, Workload

COUNT = Partial("count_rows", ())
# Assumed where nobody says: how long a landmark stream has been running, and a table's rows.
_LANDMARK_SECONDS = 86_400.0
_TABLE_ROWS = 1_000.0
# Joins have prices of their own, of operations that are counted per second.
_PRICES = {"spark": "spark-joins", "local": "local-joins"}
_SECOND_US = 1e6


def plan_joins(
    workload: Workload,
    planner: str,
    engine: str,
    statistics: Statistics | Mapping[str, Statistics] | None,
    model: str | None,
    loads: Mapping[str, tuple[SideLoad, ...]],
    seconds: float = 1.0,
) -> tuple[PlannedJoin, ...]:
    """Plan every join of a workload; a planner that is no placement leaves the choice to cost.

    Costs are milliseconds of so many seconds of the inputs.
    """
    placement = planner if is_placement(planner, workload) else None
    planned = [
        plan_join(query, placement, engine, statistics, model, loads.get(query.name), seconds)
        for query in workload
        if isinstance(query, JoinQuery)
    ]
    return tuple(with_shared_slices(planned))


def is_placement(planner: str, workload: Workload) -> bool:
    """Tell whether this names a placement of some join of the workload."""
    arities = {len(query.inputs) for query in workload if isinstance(query, JoinQuery)}
    return any(placement_named(planner, arity) is not None for arity in arities)


def join_candidates(joins: Sequence[PlannedJoin], *, alone: bool) -> tuple[Candidate, ...]:
    """List the placements of all joins, with the name of the query where it is not the only one."""
    return tuple(
        candidate
        for join in joins
        for candidate in (
            *join.candidates("" if alone else f"{join.query}: "),
            *join.sharing,
        )
    )


def plan_join(
    query: JoinQuery,
    placement: str | None,
    engine: str,
    statistics: Statistics | Mapping[str, Statistics] | None,
    model: str | None,
    loads: tuple[SideLoad, ...] | None = None,
    seconds: float = 1.0,
) -> PlannedJoin:
    """Choose the placement of a join by cost, or take the one named; the cheapest of all 2^m."""
    shape = JoinShape.of(query)
    known = loads or tuple(_load(shape, i, query, statistics) for i in range(len(query.inputs)))
    pricing = _pricing(shape, known, engine, model, seconds)
    costs = {early: pricing.cost(early) for early in placements(len(query.inputs))}
    early = min(costs, key=lambda e: costs[e])
    if placement is not None:
        named = placement_named(placement, len(query.inputs))
        if named is None:
            raise QueryError(
                f"join {query.name!r} of {len(query.inputs)} inputs has no plan {placement!r}",
                hint=f"use one of {', '.join(map(placement_name, costs))}",
            )
        early = named
    emit = emit_of(query, early)
    validate(topological((emit,)))
    assumed = loads is None and not statistics
    return PlannedJoin(query.name, emit, early, costs, known, assumed, pricing)


def _pricing(
    shape: JoinShape,
    loads: tuple[SideLoad, ...],
    engine: str,
    model: str | None,
    seconds: float,
) -> PlacementCost:
    if model == "paper":
        return TupleCost(PaperEstimates(loads))
    widths = tuple(1 + len(shape.partials_of(side)) for side in range(len(loads)))
    price = SpanCost if engine == "spark" else InstantCost
    prices = over(coefficients_of(_PRICES.get(engine, engine)), seconds)
    return price(loads, shape.instants, widths, prices)


def _load(
    shape: JoinShape,
    side: int,
    query: JoinQuery,
    statistics: Statistics | Mapping[str, Statistics] | None,
) -> SideLoad:
    """Estimate what an input brings from the statistics of its source."""
    given = query.inputs[side]
    if statistics is None or isinstance(statistics, Statistics):
        known = statistics or Statistics()
    else:
        known = statistics.get(given.source) or Statistics()
    rate = known.events_per_us * _SECOND_US
    match given.window:
        case PeriodicWindow() as window:
            held = rate * window.range_us / _SECOND_US
        case LandmarkWindow():
            held = rate * _LANDMARK_SECONDS
        case _:
            rate, held = 0.0, _TABLE_ROWS
    groups: float = known.key_count if any(key.side == side for key in shape.keys) else 1
    if shape.carried_columns(side):
        groups = max(groups, held)  # how often carried values repeat is not known
    return SideLoad(rate, held, groups, known.join_values or known.key_count)


def emit_of(query: JoinQuery, early: Placement) -> Emit:
    """Write a join with its placement in the plan language."""
    shape = JoinShape.of(query)
    sides = tuple(
        JoinSide(
            _scan(shape, side, given),
            given.alias,
            given.window,
            early[side],
            _side_keys(shape, side, query),
            # Rule 2, with the count always carried.
            (*shape.partials_of(side), COUNT),
        )
        for side, given in enumerate(query.inputs)
    )
    partials = tuple(dict.fromkeys((*decompose(call for _, call in query.aggs), COUNT)))
    join = Join(sides, query.on, query.keys, partials)
    return Emit((join,), query.name, query.label, query.aggs, query.window_columns)


def _side_keys(shape: JoinShape, side: int, query: JoinQuery) -> Keys:
    """Rule 1: the grouping attributes that the input owns, and all its join attributes.

    What aggregates over several inputs read of it is kept apart like a grouping attribute.
    """
    owned = zip(query.keys, shape.keys, strict=True)
    groups = tuple((name, key.text) for (name, _), key in owned if key.side == side)
    alias = shape.aliases[side]
    carried = map(column, shape.carried_columns(side))
    kept = dict.fromkeys((*shape.join_columns(side), *carried))
    return groups + tuple((f"{alias}.{name}", name) for name in kept)


def _scan(shape: JoinShape, side: int, given: JoinInput) -> Scan:
    expressions = [key.text for key in shape.keys if key.side == side]
    expressions += shape.join_columns(side)
    expressions += [arg for partial in shape.partials_of(side) for arg in partial.args]
    if given.where is not None:
        expressions.append(given.where)
    columns = {*shape.carried_columns(side), *(c for e in expressions for c in columns_of(e))}
    names = tuple(sorted(columns))
    return Scan(given.source, given.time, given.where, names, watermark_us=given.watermark_us)
