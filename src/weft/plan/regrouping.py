"""Scopes that regroup slices of others, cut where they do: what is below comes from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weft.errors import InternalError
from weft.plan.nodes import Emit, Node, Roll, Scan, Slice, regroups
from weft.plan.planned_scope import PlannedScope, planned_scopes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.plan.body import PlanBody


@dataclass(frozen=True)
class CutScope:
    """A scope as if its slices were cut from events, and the slices they are regrouped from."""

    scope: PlannedScope
    feeders: Mapping[Node, Slice]  # slices of more keys, by those that regroup them
    originals: Mapping[Node, Node]  # the nodes of the plan, by those of this scope


def cut_scope(scope: PlannedScope) -> CutScope:
    """Cut a scope where it regroups.

    >>> from weft.aggregates import AggregateCall, Partial
    >>> from weft.plan import FOLD
    >>> from weft.window import Edges, PeriodicWindow
    >>> scan, hour = Scan("t", "ts", None, ()), PeriodicWindow(3600, 3600)
    >>> rows = (Partial("count_rows", ()),)
    >>> fine = Slice(scan, (("a", "a"), ("b", "b")), Edges.of([hour]), rows)
    >>> roll = Roll((fine,), hour, FOLD, (("a", "a"),), rows)
    >>> emit = Emit((roll,), "q", "1h", (("n", AggregateCall("count")),))
    >>> cut = cut_scope(PlannedScope(scan, roll.keys, (emit,)))
    >>> [(own.keys, feeder.keys) for own, feeder in cut.feeders.items()]
    [((('a', 'a'),), (('a', 'a'), ('b', 'b')))]
    """
    made: dict[Node, Any] = {scope.scan: scope.scan}
    feeders: dict[Node, Slice] = {}
    emits: list[Emit] = []
    for node in scope.nodes:
        match node:
            case Slice() if node.keys == scope.keys:
                finer = node.input
                if isinstance(finer, Slice) and regroups(node):
                    own = Slice(scope.scan, node.keys, node.edges, node.partials)
                    feeders[own] = finer
                else:
                    own = replace(node, input=made[finer])
                made[node] = own
            case Roll() if node.keys == scope.keys:
                made[node] = _cut_roll(node, scope.scan, made, feeders)
            case Emit():
                inputs = tuple(made[i] for i in node.inputs)
                emits.append(replace(node, inputs=inputs))
                made[node] = emits[-1]
            case _:
                pass
    originals = {own: node for node, own in made.items()}
    return CutScope(PlannedScope(scope.scan, scope.keys, tuple(emits)), feeders, originals)


def emits_apart(plan: PlanBody) -> tuple[Emit, ...]:
    """Return the results of a plan, with every scope cutting its slices from events by itself."""
    scopes = planned_scopes(plan)
    own = [cut_scope(scope).scope if scope.regroups else scope for scope in scopes]
    made = {(emit.query, emit.label): emit for scope in own for emit in scope.emits}
    return tuple(made[emit.query, emit.label] for emit in plan.emits)


def _cut_roll(node: Roll, scan: Scan, made: Mapping[Node, Any], feeders: dict[Node, Slice]) -> Roll:
    if not regroups(node):
        return replace(node, inputs=tuple(made[i] for i in node.inputs))
    feeder = node.feeder
    if not isinstance(feeder, Slice):
        raise InternalError(f"{node.window} regroups a window, and not slices")
    slices = Slice(scan, node.keys, feeder.edges, node.partials)
    feeders[slices] = feeder
    return replace(node, inputs=(slices,))
