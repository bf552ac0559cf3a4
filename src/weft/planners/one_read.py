"""What scopes of one source pay once: Catalyst reads it for all of them, and runs one chain."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weft.cost.strategies import in_one_chain
from weft.plan.body import NATIVE
from weft.plan.nodes import Emit, Scan, scan_below, topological

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.planners.trials import Trial
    from weft.query import Keys


def read_once(trials: Sequence[Trial]) -> list[Trial]:
    """Let plans of native scopes in a batch on Spark pay for a read that they share once.

    Each was priced as if it ran alone. The scan has on its bill whatever a run takes once; of those
    that run together, only the dearest pays it.
    """
    dearest: dict[tuple[str, str | None], tuple[float, int, Scan]] = {}
    shared: list[tuple[int, Scan]] = []
    for at, trial in enumerate(trials):
        for node, cost in zip(trial.nodes, trial.costs, strict=True):
            if isinstance(node, Scan) and _is_in_chain(trial, node):
                shared.append((at, node))
                source = node.source, node.time
                if source not in dearest or cost > dearest[source][0]:
                    dearest[source] = cost, at, node
    paying = {(at, node) for _, at, node in dearest.values()}
    free = {*shared} - paying
    return [_without(trial, {n for i, n in free if i == at}) for at, trial in enumerate(trials)]


def _is_in_chain(trial: Trial, scan: Scan) -> bool:
    """Tell whether all that a plan makes of a scan is computed natively, in one chain."""
    scopes: dict[Keys, list[Emit]] = {}
    for emit in trial.proposal.emits:
        if scan_below(emit) == scan:
            scopes.setdefault(emit.keys, []).append(emit)
    queries = {emit.query for emits in scopes.values() for emit in emits}
    native = {q for c in trial.choices if c.strategy == NATIVE for q in c.queries}
    return queries <= native and all(in_one_chain(topological(emits)) for emits in scopes.values())


def _without(trial: Trial, free: set[Scan]) -> Trial:
    if not free:
        return trial
    costs = tuple(
        0.0 if node in free else cost for node, cost in zip(trial.nodes, trial.costs, strict=True)
    )
    return replace(trial, costs=costs)
