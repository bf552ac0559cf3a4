"""What each window costs inside a plan, and would cost alone: the bill per query."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from weft.plan import Emit, Node, Roll, Scan, Share, Slice
from weft.plan.nodes import scan_below, topological

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.cost.model import CostModel
    from weft.plan import Scope
    from weft.query import Keys
    from weft.window import Window

# A bill of more lines is read by nobody, and costs more to write than the plan.
MOST_SHARES = 1_000
_NOBODY, _MANY = -1, -2


def shares_of(
    nodes: tuple[Node, ...],
    costs: tuple[float, ...],
    scopes: Sequence[Scope],
    models: Sequence[CostModel],
    reasons: Mapping[tuple[str, str], str],
) -> tuple[Share, ...]:
    """Bill every emitted window: marginal cost in the plan, cost alone, feeder, reason."""
    if sum(len(scope.demands) for scope in scopes) > MOST_SHARES:
        return ()
    marginal = _marginal_costs(nodes, costs)
    emits = {(e.query, e.label): e for e in nodes if isinstance(e, Emit)}
    feeders = {i for n in nodes if isinstance(n, Roll) for i in n.inputs}
    readers: dict[tuple[Scan, Keys], Counter[Window]] = {}
    for emit in emits.values():
        roll = emit.inputs[0]
        if isinstance(roll, Roll):
            readers.setdefault((scan_below(emit), emit.keys), Counter())[roll.window] += 1
    shares: list[Share] = []
    for scope, model in zip(scopes, models, strict=True):
        alone: dict[tuple[object, ...], float] = {}
        for single in scope.emits({}):
            emit = emits[single.query, single.label]
            key = (single.inputs, single.outputs)
            if key not in alone:
                alone[key] = sum(model.node_costs(topological((single,))))
            roll = emit.inputs[0]
            assert isinstance(roll, Roll)
            asked = readers[scan_below(emit), emit.keys]
            shares.append(
                Share(
                    emit.query,
                    emit.label,
                    str(roll.window),
                    _feeder(roll),
                    marginal[emit],
                    alone[key],
                    "" if roll in feeders else _reason(roll, emit, reasons, asked),
                )
            )
    return tuple(shares)


def _marginal_costs(nodes: tuple[Node, ...], costs: tuple[float, ...]) -> dict[Node, float]:
    """Sum, for each emit, the costs of the nodes that nobody else needs."""
    at = {node: i for i, node in enumerate(nodes)}
    owner = [_NOBODY] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        node = nodes[i]
        if isinstance(node, Emit):
            owner[i] = i
        for feeder in node.inputs:
            j = at[feeder]
            owner[j] = owner[i] if owner[j] in (_NOBODY, owner[i]) else _MANY
    bill = {node: 0.0 for node in nodes if isinstance(node, Emit)}
    for i, who in enumerate(owner):
        if who >= 0:
            bill[nodes[who]] += costs[i]  # type: ignore[index]
    return bill  # type: ignore[return-value]


def _feeder(roll: Roll) -> str:
    match roll.feeder:
        case Scan():
            return "events"
        case Slice():
            return "slices"
        case Roll() as feeder:
            return f"{feeder.window} + slices" if len(roll.inputs) > 1 else str(feeder.window)


def _reason(
    roll: Roll, emit: Emit, reasons: Mapping[tuple[str, str], str], asked: Counter[Window]
) -> str:
    if not isinstance(roll.feeder, Scan) or asked[roll.window] > 1:
        return ""
    known = reasons.get((emit.query, emit.label))
    if known:
        return known
    if len(asked) == 1:
        return "no other window reads these events under these keys"
    return "events are its cheapest feeder"
