"""What a plan of features holds, and the invariants that it keeps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.errors import InternalError
from weft.plan.anchors.node_json import nodes_to_json
from weft.plan.anchors.nodes import legal_techniques

if TYPE_CHECKING:
    from weft.aggregates import AggregateCall
    from weft.plan.anchors.nodes import AnchorNode, Features, Points, Trail
    from weft.plan.nodes import Scan
    from weft.query import Keys


@dataclass(frozen=True)
class FeatureBody:
    """What an engine runs for `as_of` and `rolling`; engines obey it and never decide again.

    `costs_ns` has, trail by trail, the expected time of every partial by its technique.
    """

    features: Features
    engine: str
    events: float  # rows for which the techniques were chosen
    anchors: float
    costs_ns: tuple[tuple[float, ...], ...]
    assumed: bool = False  # the numbers of rows were not known

    @cached_property
    def trails(self) -> tuple[Trail, ...]:
        """The windows, in the order of the query."""
        return self.features.trails

    @property
    def points(self) -> Points:
        """The anchors."""
        return self.trails[0].points

    @cached_property
    def scopes(self) -> tuple[tuple[Scan, Keys, tuple[int, ...]], ...]:
        """The trails that read the same events by the same keys: each scope is sorted once."""
        found: dict[tuple[Scan, Keys], list[int]] = {}
        for at, trail in enumerate(self.trails):
            found.setdefault((trail.events, trail.keys), []).append(at)
        return tuple((scan, keys, tuple(own)) for (scan, keys), own in found.items())

    def outputs_of(self, trails: tuple[int, ...]) -> tuple[tuple[str, int, AggregateCall], ...]:
        """Return the outputs that read some of the trails, in order."""
        return tuple(output for output in self.features.outputs if output[1] in trails)

    @cached_property
    def nodes(self) -> tuple[AnchorNode, ...]:
        """Every node once, inputs first."""
        scans = tuple(dict.fromkeys(trail.events for trail in self.trails))
        return (self.points, *scans, *self.trails, self.features)

    @cached_property
    def fingerprint(self) -> str:
        """A short name of what the plan computes and how; the same in every process."""
        text = json.dumps(nodes_to_json(self.features), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def validate_features(plan: FeatureBody) -> None:
    """Raise InternalError with the invariant's name unless the plan is legal."""
    features = plan.features
    _require(bool(features.trails and features.outputs), "something-is-asked", features)
    _require(len(set(features.trails)) == len(features.trails), "each-node-once", features)
    _require(len({t.points for t in features.trails}) == 1, "one-table-of-points", features)
    for trail in features.trails:
        _require(trail.events.time is not None, "times-are-known", trail)
        _require(len(trail.techniques) == len(trail.partials), "one-technique-each", trail)
        if trail.points.rolling:
            own = trail.events.source == trail.points.source
            _require(own and trail.events.time == trail.points.at, "events-are-points", trail)
        for partial, technique in zip(trail.partials, trail.techniques, strict=True):
            # A float sum loses `invertible`; engines check again when they know the types.
            legal = legal_techniques(partial, partial.laws(exact=True))
            _require(technique in legal, "technique-is-legal", trail)
    for _, at, call in features.outputs:
        _require(0 <= at < len(features.trails), "results-have-their-window", features)
        known = set(features.trails[at].partials)
        _require(set(call.partials) <= known, "results-have-their-partials", features)
    names = [name for name, _, _ in features.outputs]
    _require(len(set(names)) == len(names), "columns-have-names-of-their-own", features)
    read = {at for _, at, _ in features.outputs}
    _require(read == set(range(len(features.trails))), "nothing-is-computed-in-vain", features)
    costs = [len(costs) for costs in plan.costs_ns]
    _require(costs == [len(t.partials) for t in features.trails], "one-cost-each", features)


def _require(holds: bool, invariant: str, node: AnchorNode) -> None:
    if not holds:
        what = f"{type(node).__name__} {getattr(node, 'window', '')}"
        raise InternalError(f"plan breaks the invariant {invariant} at {what.strip()}")
