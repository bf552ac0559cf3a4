"""The search for a partition of groups into trees: greedy merges, single moves, and all subsets.

Every function takes the groups as `Trees` (one row each) and returns lists of rows. Ties go to
the smallest rows, so equal workloads give equal plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from weft.planners.weave_trees import Trees

    Parts = list[list[int]]

_MOST_ROWS = 1536  # the gains of all pairs are kept: 18 MiB
_FEW_ROWS = 128
_SWEEPS_OF_FEW, _SWEEPS_OF_MANY = 16, 2
_NOISE = 1e-12  # relative: a gain below it is rounding


def partition(groups: Trees) -> Parts:
    """Merge greedily, then move single groups, as long as the cost falls."""
    parts = _merge_in_chunks(groups)
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
    noise = _NOISE * float(trees.costs.sum())
    while True:
        gain, into, absorbed = gains.largest()
        if gain <= noise:
            return [parts[row] for row in gains.rows()]
        trees.assign(into, trees.unite([(into, absorbed)]), 0)
        parts[into] += parts[absorbed]
        gains.merged(into, absorbed)


class _Gains:
    """What each pair of trees saves when merged, and the best partner of each.

    Where unions are dear to cost, a gain is at first an upper bound, and settled when it leads.
    """

    def __init__(self, trees: Trees) -> None:
        import numpy as np

        count = len(trees)
        self.trees = trees
        self.gains = np.full((count, count), -np.inf)
        self.settled = np.full((count, count), not trees.lazy)
        self.alive = np.ones(count, dtype=np.bool_)
        for row in range(count - 1):
            self._bound(row, np.arange(row + 1, count))
        self.partner = self.gains.argmax(axis=1)
        self.best = self.gains.max(axis=1)

    def rows(self) -> list[int]:
        """Return the rows that are still trees."""
        import numpy as np

        rows: list[int] = np.flatnonzero(self.alive).tolist()
        return rows

    def largest(self) -> tuple[float, int, int]:
        """Return the largest gain and its pair, the smaller row first."""
        import numpy as np

        while True:
            row = int(self.best.argmax())
            other = int(self.partner[row])
            if self.settled[row, other] or not np.isfinite(self.best[row]):
                return float(self.best[row]), min(row, other), max(row, other)
            costs = self.trees.costs
            joined = self.trees.join_costs(row, self.trees, np.array([other]))[0]
            gain = costs[row] + costs[other] - joined
            self.gains[row, other] = self.gains[other, row] = gain
            self.settled[row, other] = self.settled[other, row] = True
            self._find_best(np.array([row, other]))

    def merged(self, into: int, absorbed: int) -> None:
        """Count anew what the merge of two trees changed."""
        import numpy as np

        self.alive[absorbed] = False
        self.gains[absorbed, :] = self.gains[:, absorbed] = -np.inf
        self.best[absorbed] = -np.inf
        others = np.flatnonzero(self.alive)
        others = others[others != into]
        self._bound(into, others)
        fresh, partner, best = self.gains[into, others], self.partner[others], self.best[others]
        stale = (partner == into) | (partner == absorbed)
        better = (fresh > best) | ((fresh == best) & (into < partner))
        improved = others[better & ~stale]
        self.best[improved], self.partner[improved] = self.gains[into, improved], into
        self._find_best(np.append(others[stale], into))

    def _bound(self, row: int, others: NDArray[np.intp]) -> None:
        apart = self.trees.costs[row] + self.trees.costs[others]
        gains = apart - self.trees.join_bounds(row, self.trees, others, below=apart)
        self.gains[row, others] = self.gains[others, row] = gains
        self.settled[row, others] = self.settled[others, row] = not self.trees.lazy

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
    state = _Moves(groups, parts)
    sweeps = _SWEEPS_OF_FEW if len(groups) <= _FEW_ROWS else _SWEEPS_OF_MANY
    for _ in range(sweeps):
        moves = sum(state.try_group(group) for group in range(len(groups)))
        if not moves:
            break
    return [sorted(part) for part in state.parts if part] if state.moved else None


class _Moves:
    """Trees under single moves; as many rows as groups, the unused ones empty."""

    def __init__(self, groups: Trees, parts: Sequence[Sequence[int]]) -> None:
        self.groups = groups
        spare = len(groups) - len(parts)
        self.parts: Parts = [*(list(part) for part in parts), *([] for _ in range(spare))]
        # An empty tree has no row of its own yet; any row keeps the place.
        self.trees = groups.unite([part or [0] for part in self.parts])
        self.owner = {group: i for i, part in enumerate(self.parts) for group in part}
        self.noise = _NOISE * float(self.trees.costs.sum())
        self.moved = False

    def try_group(self, group: int) -> bool:
        """Move one group where it costs least; False when it is there already."""
        import numpy as np

        source = self.owner[group]
        rest = [other for other in self.parts[source] if other != group]
        without = self.groups.unite([rest]) if rest else None
        saved = float(self.trees.costs[source] - (without.costs[0] if without else 0.0))
        others = np.array([i for i, p in enumerate(self.parts) if p and i != source], dtype=np.intp)
        target, added = -1, float(self.groups.costs[group]) if rest else np.inf
        if len(others):
            cheapest, joining = self._cheapest_join(group, others, saved)
            if joining <= added:
                target, added = cheapest, joining
        if added >= saved - self.noise:
            return False
        self._move(group, source, target if target >= 0 else self.parts.index([]))
        return True

    def _cheapest_join(
        self, group: int, others: NDArray[np.intp], saved: float
    ) -> tuple[int, float]:
        """Return the tree that costs least more with this group, and how much more."""
        import numpy as np

        before = self.trees.costs[others]
        added = self.groups.join_bounds(group, self.trees, others, before + saved) - before
        settled = np.full(len(others), not self.trees.lazy)
        while True:
            cheapest = int(added.argmin())
            if settled[cheapest] or not np.isfinite(added[cheapest]):
                return int(others[cheapest]), float(added[cheapest])
            joined = self.groups.join_costs(group, self.trees, others[cheapest : cheapest + 1])
            added[cheapest] = joined[0] - before[cheapest]
            settled[cheapest] = True

    def _move(self, group: int, source: int, target: int) -> None:
        self.parts[source].remove(group)
        self.parts[target].append(group)
        self.owner[group] = target
        for tree in (source, target):
            if self.parts[tree]:
                self.trees.assign(tree, self.groups.unite([self.parts[tree]]), 0)
        self.moved = True


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
