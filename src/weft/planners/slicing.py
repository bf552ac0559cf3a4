"""One minimal slicing for all windows of a scope, user-defined ones included.

Panes and pairs (Shein & Chrysanthis) and the begins-only slices of Carbone et al., "Cutty"
(CIKM 2016) differ in the edges they cut at; the final technique over the slices is chosen by cost.
"""

from __future__ import annotations

from weft.cost.batch.model import SparkModel
from weft.plan import FOLD, RANGES, Roll, Scope, Slice
from weft.plan.nodes import topological
from weft.planners.base import Context, NoProposal, Proposal
from weft.planners.naming import legal
from weft.techniques import TECHNIQUES
from weft.window import Edges, PeriodicWindow, Slicing, Window


def propose(scope: Scope, context: Context) -> Proposal | NoProposal:
    """Cut events once at the edges of all windows, roll every window from the slices.

    Batch engines cut at ends too, because nothing is open when the input ends; counting as the
    paper does, only begins cut.
    """
    windows = tuple(w for w in scope.windows if scope.shareable_partials(w))
    if not windows:
        return NoProposal("exact percentiles need every event of their window")
    slicing: Slicing = "begins" if context.counts_as_papers_do else "pairs"
    edges = Edges.of(windows, slicing)
    if slicing == "begins" and not edges.classes:
        edges = Edges.of(windows)
    slices = Slice(scope.scan, scope.keys, edges, scope.partials_for(windows))
    # The published count of FlatFAT misses its updates, so papers' counts compare the lazy store.
    able = ("naive",) if context.counts_as_papers_do else techniques_for(scope, windows, context)
    techniques = [t for t in able if context.allows(t)]
    if not techniques:
        return NoProposal("none of the techniques allowed is legal for these aggregates")
    plans = [
        Proposal(scope.emits({w: roll(scope, slices, w, technique) for w in windows}))
        for technique in techniques
    ]
    if len(plans) == 1:
        return plans[0]
    return min(plans, key=lambda p: sum(context.model.node_costs(topological(p.emits))))


def roll(scope: Scope, slices: Slice, window: Window, technique: str) -> Roll:
    """Roll a window from slices; windows that are not periodic are folded."""
    partials = scope.shareable_partials(window)
    if not isinstance(window, PeriodicWindow):
        return Roll((slices,), window, FOLD, scope.keys, partials)
    return Roll((slices,), window, RANGES, scope.keys, partials, technique)


def techniques_for(scope: Scope, windows: tuple[Window, ...], context: Context) -> tuple[str, ...]:
    """Name the techniques that are legal for every partial of these windows, the lazy one first.

    A partial runs in a structure of its own, so each must have the laws by itself.
    """
    form = context.form or "incremental"
    names = [t.name for t in TECHNIQUES.values() if t.form == form]
    if context.technique is not None and context.technique not in names:
        names = [context.technique]
    found = tuple(legal(names, scope.partials_for(windows), scope.is_exact))
    # Natively all cost the same in batch, and the strategy names the one that runs.
    return found[:1] if isinstance(context.model, SparkModel) else found
