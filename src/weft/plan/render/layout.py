"""A layered layout of a graph: columns by the longest path, rows by the neighbours' middle.

The method is that of Sugiyama, Tagawa and Toda ("Methods for visual understanding of hierarchical
system structures", IEEE SMC 1981): an arrow over several columns gets a stop in each of them,
stops and boxes are ordered by the mean place of their neighbours, and then moved as close to it
as the order and the distances allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_SWEEPS = 8
_STOP_HEIGHT = 6.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Column and middle of every box, and the stops of every arrow between its ends."""

    columns: tuple[int, ...]
    middles: tuple[float, ...]
    stops: tuple[tuple[tuple[int, float], ...], ...]
    height: float


def layered(
    heights: Sequence[float],
    arrows: Sequence[tuple[int, int]],
    gap: float,
    last: Collection[int] = (),
) -> Layout:
    """Place boxes, numbered in topological order; those in `last` all stand in the last column.

    >>> layout = layered([40, 40, 40], [(0, 1), (0, 2)], gap=10)
    >>> layout.columns, layout.middles, layout.height
    ((0, 1, 1), (45.0, 20.0, 70.0), 90.0)
    """
    columns = _columns(len(heights), arrows, last)
    size = [float(h) for h in heights]
    place = list(columns)
    chains: list[list[int]] = []
    for source, target in arrows:
        stops = range(len(place), len(place) + columns[target] - columns[source] - 1)
        place.extend(columns[source] + 1 + i for i in range(len(stops)))
        size.extend(_STOP_HEIGHT for _ in stops)
        chains.append([source, *stops, target])
    before: list[list[int]] = [[] for _ in place]
    after: list[list[int]] = [[] for _ in place]
    for chain in chains:
        for a, b in pairwise(chain):
            after[a].append(b)
            before[b].append(a)
    rows = _ordered(place, before, after)
    middle, height = _placed(rows, size, before, after, gap)
    return Layout(
        tuple(columns),
        tuple(middle[: len(heights)]),
        tuple(tuple((place[i], middle[i]) for i in chain[1:-1]) for chain in chains),
        height,
    )


def _columns(count: int, arrows: Sequence[tuple[int, int]], last: Collection[int]) -> list[int]:
    columns = [0] * count
    for source, target in sorted(arrows, key=lambda arrow: arrow[1]):
        columns[target] = max(columns[target], columns[source] + 1)
    end = max(columns, default=0)
    for box in last:
        columns[box] = end
    return columns


def _ordered(place: list[int], before: list[list[int]], after: list[list[int]]) -> list[list[int]]:
    """Order each column so that few arrows cross; the best order met on the way is kept."""
    rows: list[list[int]] = [[] for _ in range(max(place, default=0) + 1)]
    for i in _by_descent(before, after):
        rows[place[i]].append(i)
    best, fewest = rows, _crossings(rows, after)
    for sweep in range(_SWEEPS):
        neighbours = before if sweep % 2 == 0 else after
        rows = [list(row) for row in rows]
        rank = {i: float(n) for row in rows for n, i in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {i: _mean([rank[j] for j in neighbours[i]], rank[i]) for i in row}
            row.sort(key=wanted.__getitem__)
            rank.update((i, float(n)) for n, i in enumerate(row))
        crossings = _crossings(rows, after)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _by_descent(before: list[list[int]], after: list[list[int]]) -> list[int]:
    """List all items depth first from the sources, so that relatives start side by side."""
    seen: dict[int, None] = {}
    stack = [i for i in reversed(range(len(before))) if not before[i]]
    while stack:
        i = stack.pop()
        if i not in seen:
            seen[i] = None
            stack.extend(reversed(after[i]))
    return list(seen)


def _crossings(rows: list[list[int]], after: list[list[int]]) -> int:
    total = 0
    for row, following in pairwise(rows):
        rank = {i: n for n, i in enumerate(following)}
        ends = [r for i in row for r in sorted(rank[j] for j in after[i])]
        total += sum(b < a for n, a in enumerate(ends) for b in ends[n + 1 :])
    return total


def _placed(
    rows: list[list[int]],
    size: list[float],
    before: list[list[int]],
    after: list[list[int]],
    gap: float,
) -> tuple[list[float], float]:
    middle = [0.0] * len(size)
    for row in rows:
        _settle(row, [0.0] * len(row), size, gap, middle)
    both = [a + b for a, b in zip(before, after, strict=True)]
    for sweep in range(_SWEEPS + 1):
        neighbours = both if sweep == _SWEEPS else (before, after)[sweep % 2]
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean([middle[j] for j in neighbours[i]], middle[i]) for i in row]
            _settle(row, wanted, size, gap, middle)
    top = min((m - s / 2 for m, s in zip(middle, size, strict=True)), default=0.0)
    middle = [round(m - top, 1) for m in middle]
    return middle, max((m + s / 2 for m, s in zip(middle, size, strict=True)), default=0.0)


def _settle(
    row: list[int], wanted: list[float], size: list[float], gap: float, middle: list[float]
) -> None:
    """Move a column's items as close as possible to where they want to be, order kept.

    Least squares under distances is isotonic regression once the distances are subtracted; items
    that push one another form a block, which stands at the mean of its wishes.
    """
    offset = 0.0
    offsets: list[float] = []
    blocks: list[tuple[float, int]] = []  # (sum of wishes, number of items)
    for n, i in enumerate(row):
        if n:
            offset += (size[row[n - 1]] + size[i]) / 2 + gap
        offsets.append(offset)
        total, count = wanted[n] - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    settled = [total / count for total, count in blocks for _ in range(count)]
    for i, base, shift in zip(row, settled, offsets, strict=True):
        middle[i] = base + shift


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default
