"""How much of a scope's state each window reads: all share it, and most need only a part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.windows.lateness import Readers, oldest_open
from weft.engines.local.windows.timed_plan import is_timed
from weft.plan import Roll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft.aggregates import Partial
    from weft.engines.local.operator import ScopeOperator
    from weft.plan import Node
    from weft.window import Window


def window_bytes(operator: ScopeOperator) -> tuple[int, ...]:
    """Return the memory of what is held for each emit's window, in the order of the emits.

    Of slices that is what its open instances read: since the oldest of them began, the partials
    that it asks for. Windows read the same slices, so the figures add up to more than the state.
    """
    shares = {node: _shares(operator, node) for node in operator.plan.bases}
    found = []
    for emit in operator.emits:
        rolls = tuple(roll for roll in emit.inputs if isinstance(roll, Roll))
        held = [store.nbytes for spec, store in operator.stores.items() if {*rolls} & {*spec.rolls}]
        held += [store.nbytes for store in operator.delimited if rolls in store.members]
        partials = {partial for roll in rolls for partial in roll.partials}
        timed = [roll for roll in rolls if is_timed(roll.window)]
        bases = {node: roll.window for roll in timed for node in operator.plan.below[roll]}
        held += [
            round(shares[node][window] * _bytes_of(operator, node, partials))
            for node, window in bases.items()
        ]
        found.append(sum(held))
    return tuple(found)


def _shares(operator: ScopeOperator, node: Node) -> Mapping[Window, float]:
    """Return which part of a base's slices begins where each window is still open, or later."""
    windows = [*operator.plan.bases[node].windows]
    flows = operator.slices_of(node)
    rows = sum(map(len, flows))
    if operator.watermark_us is None or not rows:
        return dict.fromkeys(windows, 1.0)
    calendars, watermark_us = operator.plan.calendars, operator.watermark_us
    since = [oldest_open(Readers.of([window]), calendars, watermark_us) for window in windows]
    order = np.argsort(since)
    starts_us = np.concatenate([flow.starts_us for flow in flows])
    # Each slice is counted for the windows that are open since it began, or before.
    reached = np.searchsorted(np.array(since)[order], starts_us, side="right")
    counts = np.bincount(reached, minlength=len(windows) + 1)[1:]
    needed = np.cumsum(counts[::-1])[::-1]
    return {windows[at]: needed[place] / rows for place, at in enumerate(order)}


def _bytes_of(operator: ScopeOperator, node: Node, partials: set[Partial]) -> int:
    return sum(
        flow.keys.nbytes
        + flow.starts_us.nbytes
        + sum(held.nbytes for partial, held in flow.partials.items() if partial in partials)
        for flow in operator.slices_of(node)
    )
