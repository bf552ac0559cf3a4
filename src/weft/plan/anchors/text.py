"""Plans of features as EXPLAIN text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.errors import InternalError
from weft.plan.anchors.nodes import Points, Trail
from weft.plan.nodes import Scan
from weft.plan.render.words import keys_text, listing, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.plan.anchors.body import FeatureBody
    from weft.plan.anchors.nodes import AnchorNode


def plan_text(plan: FeatureBody) -> str:
    """Print one line per node; every partial with the technique that runs it."""
    ids = {node: f"{'pst'[_rank(node)]}{i}" for i, node in enumerate(plan.nodes[:-1])}
    lines = [f"{ids[node]} := {_line(node, ids)}" for node in plan.nodes[:-1]]
    for at, trail in enumerate(plan.trails):
        named = [f"{name} = {call}" for name, own, call in plan.features.outputs if own == at]
        lines.append(f"{ids[trail]} -> {listing(named, None)}")
    rows = f"{plan.events:,.0f} events, {plan.anchors:,.0f} points"
    total = sum(map(sum, plan.costs_ns)) / 1e6
    kind = "rolling" if plan.points.rolling else "as of"
    heading = [
        f"FEATURES {kind}, for {plan.engine}",
        f"statistics: {rows}{' (assumed)' if plan.assumed else ''}; "
        f"kernels {total:.3g} ms, sorted {len(plan.scopes)}x",
    ]
    return "\n".join([*heading, "", *lines])


def _rank(node: AnchorNode) -> int:
    return 0 if isinstance(node, Points) else 1 if isinstance(node, Scan) else 2


def _line(node: AnchorNode, ids: Mapping[Any, str]) -> str:
    if isinstance(node, Points):
        return printable(f"POINTS {node.source} at {node.at}")
    if isinstance(node, Scan):
        kept = "" if node.where is None else f" where {node.where}"
        return printable(f"SCAN {node.source} by {node.time}{kept}")
    if isinstance(node, Trail):
        pairs = zip(node.partials, node.techniques, strict=True)
        by = f" by {keys_text(node.keys)}" if node.keys else ""
        computed = listing((f"{p} with {technique}" for p, technique in pairs), None)
        return f"{node.window} of {ids[node.events]} at {ids[node.points]}{by}: {computed}"
    raise InternalError(f"{type(node).__name__} is not read by other nodes")
