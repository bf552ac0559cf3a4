"""The search for a partition of groups into trees: greedy merges, single moves, and all subsets.

Every function takes the groups as `Trees` (one row each) and returns lists of rows. Ties go to
the smallest rows, so equal workloads give equal plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weft.planners.weave.trees import Trees

    Parts = list[list[int]]

_MOST_ROWS = 1536  # the gains of all pairs are kept: 18 MiB
_FEW_ROWS = 128
_SWEEPS_OF_FEW, _SWEEPS_OF_MANY = 16, 2
# Relative to the cost of the plan: a gain below it, or a difference of gains, is rounding.
_NOISE = 1e-12


def partition(groups: Trees) -> Parts:
    """Merge greedily, then move single groups, as long as the cost falls.

    Few groups are also split from one tree for all: merges alone can stop at a poor plan.
    """
    starts = [_merge_in_chunks(groups)]
    if len(groups) <= _FEW_ROWS:
        starts.append([list(range(len(groups)))])
    found = [_polish(groups, start) for start in starts]
    return min(found, key=lambda parts: float(groups.unite(parts).costs.sum()))


def _polish(groups: Trees, parts: Parts) -> Parts:
    """Move single groups and merge again, in turns."""
    for _ in range(_SWEEPS_OF_FEW if len(groups) <= _FEW_ROWS else 1):
        moved = move_groups(groups, parts)
        if moved is None:
            break
        parts = _flatten(_merge_in_chunks(groups.unite(moved)), moved)
    return sorted(sorted(part) for part in parts)


def merge_greedily(groups: Trees) -> Parts:
    """Merge the pair of trees that saves most, until none saves anything.

    The plan of Shein & Chrysanthis, WeaveShare, with the gain of every pair kept: a merge costs
    one row of new gains, and each tree remembers its best partner.
    """
    trees = groups.unite([[row] for row in range(len(groups))])
    parts: Parts = [[row] for row in range(len(groups))]
    gains = _Gains(trees)
    while True:
        gain, into, absorbed = gains.largest()
        if gain <= 0:
            return [parts[row] for row in gains.rows()]
        trees.assign(into, trees.unite([(into, absorbed)]), 0)
        parts[into] += parts[absorbed]
        gains.merged(into, absorbed)


class _Gains:
    """What each pair of trees saves when merged, and the best partner of each."""

    def __init__(self, trees: Trees) -> None:
        count = len(trees)
        self.trees = trees
        self.gains = np.full((count, count), -np.inf)
        self.alive = np.ones(count, dtype=np.bool_)
        self.noise = _NOISE * float(trees.costs.sum())
        for row in range(count - 1):
            self._count(row, np.arange(row + 1, count))
        self.partner = self.gains.argmax(axis=1)
        self.best = self.gains.max(axis=1)

    def rows(self) -> list[int]:
        """Return the rows that are still trees."""
        rows: list[int] = np.flatnonzero(self.alive).tolist()
        return rows

    def largest(self) -> tuple[float, int, int]:
        """Return the largest gain and its pair, the smaller row first."""
        row = int(self.best.argmax())
        other = int(self.partner[row])
        return float(self.best[row]), min(row, other), max(row, other)

    def merged(self, into: int, absorbed: int) -> None:
        """Count anew what the merge of two trees changed."""
        self.alive[absorbed] = False
        self.gains[absorbed, :] = self.gains[:, absorbed] = -np.inf
        self.best[absorbed] = -np.inf
        others = np.flatnonzero(self.alive)
        others = others[others != into]
        self._count(into, others)
        fresh, partner, best = self.gains[into, others], self.partner[others], self.best[others]
        stale = (partner == into) | (partner == absorbed)
        better = (fresh > best) | ((fresh == best) & (into < partner))
        improved = others[better & ~stale]
        self.best[improved], self.partner[improved] = self.gains[into, improved], into
        self._find_best(np.append(others[stale], into))

    def _count(self, row: int, others: NDArray[np.intp]) -> None:
        apart = self.trees.costs[row] + self.trees.costs[others]
        gains = apart - self.trees.join_costs(row, self.trees, others, below=apart)
        # Gains that differ by rounding only must tie, or plans would differ between machines.
        rounded = np.round(gains / self.noise) * self.noise if self.noise else gains
        self.gains[row, others] = self.gains[others, row] = rounded

    def _find_best(self, rows: NDArray[np.intp]) -> None:
        self.partner[rows] = self.gains[rows].argmax(axis=1)
        self.best[rows] = self.gains[rows, self.partner[rows]]


def _merge_in_chunks(groups: Trees) -> Parts:
    """Merge greedily; where the rows are too many for all pairs, neighbours first."""
    if len(groups) <= _MOST_ROWS:
        return merge_greedily(groups)
    parts: Parts = []
    for start in range(0, len(groups), _MOST_ROWS):
        rows = range(start, min(start + _MOST_ROWS, len(groups)))
        chunk = merge_greedily(groups.unite([[row] for row in rows]))
        parts += [[start + row for row in part] for part in chunk]
    if len(parts) > _MOST_ROWS:
        return parts
    return _flatten(merge_greedily(groups.unite(parts)), parts)


def _flatten(trees: Parts, parts: Parts) -> Parts:
    return [[group for part in tree for group in parts[part]] for tree in trees]


def move_groups(groups: Trees, parts: Sequence[Sequence[int]]) -> Parts | None:
    """Move single groups to other trees, or out into a tree of their own, while that saves.

    Returns None when no move saves anything.
    """
    moves = _Moves(groups, parts)
    sweeps = _SWEEPS_OF_FEW if len(groups) <= _FEW_ROWS else _SWEEPS_OF_MANY
    moved = False
    for _ in range(sweeps):
        left = sum(moves.leave(tree) for tree in range(len(groups)))
        if not left:
            break
        moved = True
    return [sorted(part) for part in moves.parts if part] if moved else None


class _Moves:
    """Trees under single moves; as many rows as groups, the unused ones empty."""

    def __init__(self, groups: Trees, parts: Sequence[Sequence[int]]) -> None:
        self.groups = groups
        spare = len(groups) - len(parts)
        self.parts: Parts = [*(list(part) for part in parts), *([] for _ in range(spare))]
        # An empty tree has no row of its own yet; any row keeps the place.
        self.trees = groups.unite([part or [0] for part in self.parts])
        self.noise = _NOISE * float(self.trees.costs.sum())

    def leave(self, tree: int) -> bool:
        """Move groups out of a tree, as long as one of them costs less elsewhere."""
        moved = False
        waiting = list(self.parts[tree])
        while waiting:
            part = self.parts[tree]
            saved = self._saved(tree)
            for group in list(waiting):
                waiting.remove(group)
                target = self._better_place(group, tree, saved[part.index(group)])
                if target is not None:
                    self._move(group, tree, target)
                    moved = True
                    break
        return moved

    def _saved(self, tree: int) -> list[float]:
        """Return what the tree would save by losing each of its groups."""
        part, cost = self.parts[tree], float(self.trees.costs[tree])
        if len(part) == 1:
            return [cost]
        saved: list[float] = (cost - self.groups.unite_all_but_one(part).costs).tolist()
        return saved

    def _better_place(self, group: int, source: int, saved: float) -> int | None:
        """Return the tree where the group adds least, None when it saves nothing to go there."""
        others = np.array([i for i, p in enumerate(self.parts) if p and i != source], dtype=np.intp)
        target, added = None, saved - self.noise
        if len(self.parts[source]) > 1 and self.groups.costs[group] < added:
            target, added = self.parts.index([]), float(self.groups.costs[group])
        if len(others):
            before = self.trees.costs[others]
            joining = self.groups.join_costs(group, self.trees, others, before + added) - before
            cheapest = int(joining.argmin())
            if joining[cheapest] < added:
                target = int(others[cheapest])
        return target

    def _move(self, group: int, source: int, target: int) -> None:
        self.parts[source].remove(group)
        self.parts[target].append(group)
        for tree in (source, target):
            if self.parts[tree]:
                self.trees.assign(tree, self.groups.unite([self.parts[tree]]), 0)


def exact_partition(groups: Trees) -> Parts:
    """Find the cheapest partition by trying every subset as a tree; 3**n steps.

    best[S] = min over subsets T of S that hold the first group of S: cost[T] + best[S - T].
    """
    count = len(groups)
    subsets = [[g for g in range(count) if subset >> g & 1] for subset in range(1, 1 << count)]
    cost = [0.0, *groups.unite(subsets).costs.tolist()]
    best = [0.0] * (1 << count)
    choice = [0] * (1 << count)
    for whole in range(1, 1 << count):
        first = whole & -whole
        others = part = whole ^ first
        best[whole], choice[whole] = cost[whole], whole
        while part:
            part = (part - 1) & others
            tree = part | first
            total = cost[tree] + best[whole ^ tree]
            if total < best[whole]:
                best[whole], choice[whole] = total, tree
    parts, left = [], (1 << count) - 1
    while left:
        parts.append(subsets[choice[left] - 1])
        left ^= choice[left]
    return parts
