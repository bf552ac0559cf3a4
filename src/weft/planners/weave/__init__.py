"""WeaveShare: windows are woven into trees, and each tree cuts the events at its own edges.

Shein & Chrysanthis, multi-query optimization of incrementally evaluated sliding-window
aggregations (IEEE TKDE). The final technique is the cheapest of those the aggregates allow.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from weft.cost.omega import OMEGA_TECHNIQUES, Mode
from weft.plan import RANGES, Roll, Scan, Scope, Slice
from weft.plan.nodes import topological
from weft.planners.base import Context, NoProposal, Proposal, unshared_reasons
from weft.planners.slicing import techniques_for
from weft.planners.weave.search import WeaveKind, cost_of_one_tree, weave
from weft.window import Edges, PeriodicWindow, Window

if TYPE_CHECKING:
    from collections.abc import Sequence


_MANY = 200
_STAND_IN = "two_stacks_lite"
# What whole arrays are answered by costs what the technique it comes from does.
_PUBLISHED = {
    "one_by_one": "naive",
    "fan_out": "naive",
    "prefix_sums": "prefix_ring",
    "sliding_ranges": "two_stacks_lite",
    "van_herk": "two_stacks_lite",
}
_DEARER = ("two_stacks", "daba", "daba_lite")


def propose(scope: Scope, context: Context) -> Proposal | NoProposal:
    """Let each tree slice the events itself."""
    return propose_trees(scope, context, "weave")


def propose_trees(scope: Scope, context: Context, kind: WeaveKind) -> Proposal | NoProposal:
    """Weave the periodic windows with every legal technique, and keep the cheapest plan."""
    windows = scope.shareable
    if not windows:
        return NoProposal("no periodic window with a decomposable aggregate")
    techniques = _techniques(scope, context, windows)
    if not techniques:
        return NoProposal("none of the techniques allowed is legal for these aggregates")
    width = len(scope.partials_for(windows))
    rate = context.model.events_per_partial(width, min(w.slide_us for w in windows))
    mode: Mode = "paper" if context.counts_as_papers_do else "exact"
    if len(windows) > _MANY:
        # Building a plan per technique would take longer than all searches together. Techniques
        # gain alike from shared edges, so that the cheapest on one tree is the one worth a search.
        if not context.counts_as_papers_do:
            cost_of = partial(cost_of_one_tree, windows, rate, mode=mode, kind=kind)
            techniques = (min(techniques, key=lambda t: cost_of(_counted(t))),)
        plans = [(weave(windows, rate, _counted(t), mode, kind), t) for t in techniques]
        best, technique = min(plans, key=lambda found: found[0].cost)
        return _proposal(scope, windows, best.trees, technique, kind, context)

    def cost(proposal: Proposal) -> float:
        nodes = topological(proposal.emits)
        costs = context.model.node_costs(nodes)
        # Scanning is paid once, whatever the trees are.
        return sum(c for node, c in zip(nodes, costs, strict=True) if not isinstance(node, Scan))

    # Weaving pays by sharing edges, which every technique gains from alike: the technique that
    # is cheapest on one tree for all is the one worth a search.
    everything = (tuple(range(len(windows))),)
    found = [_proposal(scope, windows, everything, t, kind, context) for t in techniques]
    costs = [cost(proposal) for proposal in found]
    first = costs.index(min(costs))
    if kind == "weave" and costs[first] <= 2 * context.folding(width):
        return found[first]  # a second tree would read all events once more, and cost that alone
    trees = weave(windows, rate, _counted(techniques[first]), mode, kind).trees
    woven = _proposal(scope, windows, trees, techniques[first], kind, context)
    return woven if cost(woven) < costs[first] else found[first]


def _counted(technique: str) -> str:
    return _PUBLISHED.get(technique, technique)


def _techniques(
    scope: Scope, context: Context, windows: tuple[PeriodicWindow, ...]
) -> tuple[str, ...]:
    able = techniques_for(scope, windows, context)
    allowed = [t for t in able if context.allows(t) and _counted(t) in OMEGA_TECHNIQUES]
    # Of techniques that cost so much per window and slide, the cheapest stands for all.
    return tuple(t for t in allowed if t not in _DEARER or _STAND_IN not in allowed)


def _proposal(
    scope: Scope,
    windows: tuple[PeriodicWindow, ...],
    trees: Sequence[Sequence[int]],
    technique: str,
    kind: WeaveKind,
    context: Context,
) -> Proposal:
    source: Scan | Slice = scope.scan
    if kind == "triweave":
        edges = Edges.of(windows)
        source = Slice(scope.scan, scope.keys, edges, scope.partials_for(windows))
    rolls: dict[Window, Roll] = {}
    for tree in trees:
        members = tuple(windows[i] for i in tree)
        rolls.update(_tree(scope, source, members, technique))
    noun = "tree" if len(trees) == 1 else "trees"
    # What runs is named where it runs; only published figures are those of the technique searched.
    by = f", by {technique}" if context.counts_as_papers_do else ""
    return Proposal(
        scope.emits(rolls),
        reasons=unshared_reasons(scope),
        notes=(f"{kind}: {len(trees)} {noun} for {len(windows)} of the windows{by}",),
    )


def _tree(
    scope: Scope, source: Scan | Slice, members: tuple[PeriodicWindow, ...], technique: str
) -> dict[Window, Roll]:
    alone = members[0]
    if len(members) == 1 and alone.is_tumbling and isinstance(source, Scan):
        return {alone: scope.from_events(alone, scope.shareable_partials(alone))}
    edges = Edges.of(members)
    if isinstance(source, Slice) and source.edges == edges:
        slices = source
    else:
        slices = Slice(source, scope.keys, edges, scope.partials_for(members))
    return {
        window: Roll(
            (slices,), window, RANGES, scope.keys, scope.shareable_partials(window), technique
        )
        for window in members
    }
