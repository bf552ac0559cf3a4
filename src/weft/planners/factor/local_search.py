"""Local search for factor windows: add one, drop one, swap one, from several starts.

Two starts matter. From no factor, additions find the few that serve many windows. From all of
them, dropping the least useful one again and again finds the sets whose members pay only together,
which no single addition reaches. Random kicks of the better of the two do the rest.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from weft.planners.factor.graph import EVENTS, SharingGraph

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

# Costs closer than this, relatively, are the same cost summed in another order.
SAME = 1e-12
# Pairs of factors worth trying to swap; with more of them the time is better spent elsewhere.
_SWAP_LIMIT = 10_000
# One in as many useless factors is dropped at once.
_AT_ONCE = 64


def local_search(
    graph: SharingGraph, *, start: Set[int] | None = None, kicks: int = 0, seed: int = 0
) -> frozenset[int]:
    """Choose factors so that no single addition, removal or swap lowers the cost.

    Begins with no factor and with all of them or, if given, with `start` alone; then with the
    best so far, kicked `kicks` times: the same kicks for the same `seed`.
    """
    starts = [frozenset(start)] if start is not None else [frozenset(), frozenset(graph.candidates)]
    best = min((_descend(graph, s) for s in starts), key=lambda found: found[0])
    rng = Random(seed)
    pool = graph.candidates
    for _ in range(kicks if len(pool) > 1 else 0):
        kicked = {f for f in sorted(best[1]) if rng.random() < 0.7}
        kicked.update(rng.sample(pool, 2))
        found = _descend(graph, kicked)
        if found[0] < best[0] * (1 - SAME):
            best = found
    return best[1]


def _descend(graph: SharingGraph, start: Set[int]) -> tuple[float, frozenset[int]]:
    """Take improving moves, the cheapest kind to find first, until there is none."""
    chosen = set(start)
    total, price = graph.settle(chosen)
    while True:
        gains = _removal_gains(graph, chosen, price)
        worst_first = sorted((f for f in gains if gains[f] >= 0), key=lambda f: -gains[f])
        if worst_first:
            # One that saves nothing goes too: it only gets in the way of better ones. One at a
            # time, because the next may be needed then; several only where there are very many.
            chosen.difference_update(worst_first[: 1 + len(worst_first) // _AT_ONCE])
        else:
            gain, factor = _best_addition(graph, chosen, price)
            if gain > total * SAME:
                chosen.add(factor)
            elif not _swap_one(graph, chosen, total):
                return total, frozenset(chosen)
        total, price = graph.settle(chosen)


def _removal_gains(
    graph: SharingGraph, chosen: Set[int], price: Sequence[float]
) -> dict[int, float]:
    """Tell by how much the removal of each factor lowers the cost (or raises it, if negative)."""
    gains = {factor: price[factor] for factor in sorted(chosen)}
    for v in (*range(graph.wanted_count), *gains):
        feeder = EVENTS
        for cost, p in graph.feeders[v]:
            if p in gains and feeder == EVENTS:
                feeder = p
            elif p < graph.wanted_count or p in gains:
                if feeder != EVENTS:
                    gains[feeder] -= cost - price[v]
                break
    return gains


def _best_addition(
    graph: SharingGraph, chosen: Set[int], price: Sequence[float]
) -> tuple[float, int]:
    """Find the factor whose addition lowers the cost most, and by how much."""
    wanted_count, feeders, readers = graph.wanted_count, graph.feeders, graph.readers
    best_gain, best = 0.0, EVENTS
    for factor in graph.candidates:
        if factor in chosen:
            continue
        gain = 0.0
        for v, cost in readers[factor]:
            saved = price[v] - cost
            if saved > 0.0:
                gain += saved
        if gain <= best_gain:
            continue
        for cost, p in feeders[factor]:
            if p < wanted_count or p in chosen:
                gain -= cost
                break
        if gain > best_gain:
            best_gain, best = gain, factor
    return best_gain, best


def _swap_one(graph: SharingGraph, chosen: set[int], total: float) -> bool:
    """Replace one factor by another if that lowers the cost; tell whether it did."""
    if len(chosen) * len(graph.candidates) > _SWAP_LIMIT:
        return False
    for dropped in sorted(chosen):
        rest = chosen - {dropped}
        rest_total, rest_price = graph.settle(rest)
        gain, factor = _best_addition(graph, rest, rest_price)
        if factor != EVENTS and rest_total - gain < total * (1 - SAME):
            chosen.remove(dropped)
            chosen.add(factor)
            return True
    return False
