"""A largest matching of a bipartite graph (Hopcroft & Karp, SIAM Journal on Computing 2, 1973)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def maximum_matching(neighbours: Sequence[Sequence[int]], right_count: int) -> list[int | None]:
    """Match as many left nodes as possible with one neighbour each, no right node twice.

    Gives the partner of every left node. O(arcs * sqrt(nodes)).

    >>> maximum_matching([[0, 1], [0], [1]], 2)
    [0, None, 1]
    """
    partner_of_left: list[int | None] = [None] * len(neighbours)
    partner_of_right: list[int | None] = [None] * right_count
    for left, rights in enumerate(neighbours):
        for right in rights:
            if partner_of_right[right] is None:
                partner_of_left[left], partner_of_right[right] = right, left
                break
    while True:
        layer = _layers(neighbours, partner_of_left, partner_of_right)
        if layer is None:
            return partner_of_left
        untried = [iter(rights) for rights in neighbours]
        for left, partner in enumerate(partner_of_left):
            if partner is None and layer[left] == 0:
                path = _augmenting_path(left, untried, layer, partner_of_right)
                for end, right in path:
                    partner_of_left[end], partner_of_right[right] = right, end


def _layers(
    neighbours: Sequence[Sequence[int]],
    partner_of_left: Sequence[int | None],
    partner_of_right: Sequence[int | None],
) -> list[int] | None:
    """Number the left nodes by distance from a free one; None if no free right is in reach."""
    layer = [0 if partner is None else -1 for partner in partner_of_left]
    front = [left for left, partner in enumerate(partner_of_left) if partner is None]
    reached_free = False
    while front and not reached_free:
        following = []
        for left in front:
            for right in neighbours[left]:
                mate = partner_of_right[right]
                if mate is None:
                    reached_free = True
                elif layer[mate] < 0:
                    layer[mate] = layer[left] + 1
                    following.append(mate)
        front = following
    return layer if reached_free else None


def _augmenting_path(
    start: int,
    untried: Sequence[Iterator[int]],
    layer: Sequence[int],
    partner_of_right: Sequence[int | None],
) -> list[tuple[int, int]]:
    """Walk from layer to layer to a free right node; empty if there is no such path left.

    A neighbour tried once in this round leads nowhere the second time, hence the iterators.
    """
    lefts, rights = [start], list[int]()
    while lefts:
        left = lefts[-1]
        for right in untried[left]:
            mate = partner_of_right[right]
            if mate is None:
                rights.append(right)
                return list(zip(lefts, rights, strict=True))
            if layer[mate] == layer[left] + 1:
                rights.append(right)
                lefts.append(mate)
                break
        else:
            lefts.pop()
            if rights:
                rights.pop()
    return []
