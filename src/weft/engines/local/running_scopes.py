"""The operators of a plan; some take no events, and regroup slices that others make of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.engines.local.operator import ScopeOperator
from weft.engines.local.windows.regrouping import Regrouping
from weft.engines.local.windows.timed_plan import Base
from weft.errors import UnsupportedError
from weft.plan.nodes import scan_below
from weft.plan.planned_scope import planned_scopes
from weft.plan.regrouping import CutScope, cut_scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.local.values.keys import KeyCodes
    from weft.engines.local.windows.events import Timed
    from weft.engines.local.windows.flow import Flow
    from weft.plan import Node, Plan, Scan, Slice
    from weft.plan.planned_scope import PlannedScope
    from weft.query import Keys


@dataclass(slots=True)
class SlicedBatch:
    """Events of one batch, and the slices that scopes made of them, by the nodes of the plan."""

    timed: Timed
    slices: dict[Node, tuple[Flow, KeyCodes]] = field(default_factory=dict)


@dataclass(slots=True)
class Running:
    """The operator of a scope, and whose slices it regroups, if it does."""

    operator: ScopeOperator
    cut: CutScope | None = None
    regroupings: dict[Keys, Regrouping] = field(default_factory=dict)  # by the keys there

    def process(self, batch: SlicedBatch) -> None:
        """Take a batch: its slices, if others made those that are regrouped here, else its events.

        Which events come too late depends on the windows of a scope. So where one of them drops
        some, those that would regroup its slices read the events.
        """
        own = self.operator
        if self.cut is not None and not own.drops_of(batch.timed):
            feeders = [self.cut.feeders[node] for node in own.plan.bases]
            if all(feeder in batch.slices for feeder in feeders):
                self._regroup(feeders, batch)
                return
        made = own.process(batch.timed)
        batch.slices.update((self.original(n), (flow, own.codes)) for n, flow in made.items())

    def _regroup(self, feeders: Sequence[Slice], batch: SlicedBatch) -> None:
        own = self.operator
        for number, (node, base) in enumerate(own.plan.bases.items()):
            feeder = feeders[number]
            flow, codes = batch.slices[feeder]
            with own.plan.timed(node):
                made = self._regrouping(feeder, codes).of(flow, base.slices, tuple(base.partials))
            own.add_slices(number, made)
            batch.slices[self.original(node)] = made, own.codes

    def _regrouping(self, feeder: Slice, codes: KeyCodes) -> Regrouping:
        """Return what knows the codes of the keys here, by those there; others after an error."""
        own, known = self.operator, self.regroupings.get(feeder.keys)
        if known is None or known.codes is not codes or known.fewer_codes is not own.codes:
            known = Regrouping(feeder.keys, codes, own.keys, own.codes)
            self.regroupings[feeder.keys] = known
        return known

    def original(self, node: Node) -> Node:
        """Return the node of the plan that a node of the operator stands for."""
        return node if self.cut is None else self.cut.originals.get(node, node)

    def has_slices(self, node: Slice) -> bool:
        """Tell whether the operator keeps the slices of a node of the plan."""
        return any(self.original(own) == node for own in self.operator.plan.bases)

    def saved(self) -> Running:
        """Return the operator as it is now, to go back to."""
        return Running(self.operator.saved(), self.cut)


def running_scopes(plan: Plan) -> dict[Scan, list[Running]]:
    """Make the operators of a plan, those that regroup slices after those that have them."""
    found: dict[Scan, list[Running]] = {}
    for scope in sorted(planned_scopes(plan), key=_is_fed):
        running = found.setdefault(scope.scan, [])
        if not scope.regroups:
            running.append(Running(_operator(scope)))
            continue
        cut = cut_scope(scope)
        for feeder in dict.fromkeys(cut.feeders.values()):
            if not any(one.has_slices(feeder) for one in running):
                _keep_slices(feeder, running)
        operator = _operator(cut.scope)
        if not cut.feeders.keys() >= operator.plan.bases.keys():
            raise UnsupportedError(
                f"{', '.join(scope.queries)} regroup some slices and cut others from events",
                hint="let weft.optimize plan them",
            )
        running.append(Running(operator, cut))
    return found


def _is_fed(scope: PlannedScope) -> tuple[bool, int]:
    """Put scopes that regroup behind others, and of those the ones with most keys first."""
    return scope.regroups, -len(scope.keys) if scope.regroups else 0


def _operator(scope: PlannedScope) -> ScopeOperator:
    return ScopeOperator.of(scope.scan, scope.keys, scope.nodes, scope.emits)


def _keep_slices(feeder: Slice, running: list[Running]) -> None:
    """Let the operator of these keys, which may be new, cut slices that only others read."""
    own = next((one.operator for one in running if one.operator.keys == feeder.keys), None)
    if own is None:
        own = ScopeOperator.of(scan_below(feeder), feeder.keys, (), ())
        running.append(Running(own))
    own.plan.bases[feeder] = Base.of(feeder.edges, feeder.partials, ())


def families_of(running: Sequence[Running]) -> list[list[Running]]:
    """Put scopes together that regroup slices of one another; the others stand alone."""
    found: list[list[Running]] = []
    for one in running:
        feeders: Mapping[Node, Slice] = {} if one.cut is None else one.cut.feeders
        fed = [f for f in found if any(o.has_slices(s) for s in feeders.values() for o in f)]
        found = [family for family in found if family not in fed]
        found.append([*(o for family in fed for o in family), one])
    return found
