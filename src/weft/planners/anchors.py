"""The planner of windows at anchors: one sort for all windows, a technique for every partial.

Which techniques are legal follows from laws, and which of them runs from cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.aggregates import decompose
from weft.cost.anchors import trail_ns
from weft.errors import InternalError
from weft.plan.anchors import (
    FeaturePlan,
    Features,
    Points,
    Trail,
    legal_techniques,
    validate_features,
)
from weft.plan.nodes import Scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import AggregateCall, Partial
    from weft.plan.anchors import EventFeatures, FeatureQuery

ASSUMED_ROWS = 1e6


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What is known of a table of events: its rows, and the arguments that do not round."""

    rows: float | None
    exact: frozenset[str]


def plan_features(
    query: FeatureQuery, facts: Mapping[str, SourceFacts], points: float | None, engine: str
) -> FeaturePlan:
    """Plan a bound query; `facts` has every source of events, `points` the number of anchors."""
    if query.at is None:
        raise InternalError("the time column of the points was not looked up")
    anchors = Points(query.points, query.at, query.rolling)
    number = ASSUMED_ROWS if points is None else float(points)
    trails: list[Trail] = []
    costs: list[tuple[float, ...]] = []
    outputs: list[tuple[str, int, AggregateCall]] = []
    for asked in query.inputs:
        own, priced = _trails(asked, anchors, facts[asked.source], number)
        places = {}
        for trail, cost in zip(own, priced, strict=True):
            if trail not in trails:
                trails.append(trail)
                costs.append(cost)
            places[trail.window] = trails.index(trail)
        outputs += [(name, places[window], call) for name, window, call in asked.outputs]
    rows = [fact.rows for fact in facts.values()]
    plan = FeaturePlan(
        Features(tuple(trails), tuple(outputs)),
        engine,
        sum(ASSUMED_ROWS if n is None else n for n in rows),
        number,
        tuple(costs),
        assumed=points is None or None in rows,
    )
    validate_features(plan)
    return plan


def _trails(
    asked: EventFeatures, points: Points, facts: SourceFacts, anchors: float
) -> tuple[list[Trail], list[tuple[float, ...]]]:
    scan = Scan(
        asked.source, asked.time, asked.where, asked.inputs, watermark_us=asked.watermark_us
    )
    events = ASSUMED_ROWS if facts.rows is None else facts.rows
    trails: list[Trail] = []
    costs: list[tuple[float, ...]] = []
    for window in asked.windows:
        partials = decompose(call for _, own, call in asked.outputs if own == window)
        chosen = [_technique(p, facts, events, anchors) for p in partials]
        techniques = tuple(technique for technique, _ in chosen)
        trails.append(Trail(scan, points, window, asked.keys, partials, techniques))
        costs.append(tuple(cost for _, cost in chosen))
    return trails, costs


def _technique(
    partial: Partial, facts: SourceFacts, events: float, anchors: float
) -> tuple[str, float]:
    """Return the cheapest legal technique, and what it takes for one window."""
    laws = partial.laws(exact=all(arg in facts.exact for arg in partial.args))
    legal = legal_techniques(partial, laws)
    cost, technique = min((trail_ns(t, events, anchors), t) for t in legal)
    return technique, cost
