"""The cost of trees of windows and of their unions, from sums per tree and never from windows.

Each tree is one row: its edges, and the few sums its overlap factor needs. The cost of a union
with every other tree comes from one pass over the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from weft.cost.edges.all_but_one import all_but_one
from weft.cost.edges.unions import edge_unions
from weft.cost.lookups import RangeProfile
from weft.cost.omega import TreeSums, lookup_cost, lookup_weights, overlap_factors
from weft.planners.weave.lookup_rows import lookup_rows
from weft.planners.weave.range_sets import RangeSets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weft.cost.edges.unions import EdgeUnions
    from weft.cost.omega import Mode
    from weft.planners.weave.groups import Groups
    from weft.planners.weave.lookup_rows import LookupRows

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class TreeModel:
    """How a tree is costed: `overhead + edges per time unit * operations per edge`."""

    technique: str
    mode: Mode
    overhead: float  # operations per time unit to make the slices of one more tree

    def costs(self, sums: TreeSums, rates: Floats) -> Floats:
        """Return the cost of each tree per time unit."""
        costs: Floats = self.overhead + rates * overlap_factors(
            self.technique, self.mode, sums, rates
        )
        return costs


class Trees:
    """Trees as rows of columns; row i of `of_groups` is group i alone."""

    def __init__(
        self,
        model: TreeModel,
        edges: EdgeUnions,
        sums: TreeSums,
        finest: Floats,
        sets: RangeSets | None,
        lookups: LookupRows | None,
    ) -> None:
        self.model, self.edges, self._sums, self._finest = model, edges, sums, finest
        self._sets, self._lookups = sets, lookups
        at_own_rate = self.sums_at(edges.rates)
        self._own_lookups = at_own_rate.lookups + np.zeros(len(finest))
        self.costs = model.costs(at_own_rate, edges.rates)

    @classmethod
    def of_groups(cls, model: TreeModel, groups: Groups) -> Trees:
        """Make one tree of each group of windows."""
        order, starts = groups.order, groups.starts
        ranges = groups.windows.ranges[order].astype(np.float64)
        slides = groups.windows.slides[order].astype(np.float64)
        edges = edge_unions(groups.classes)
        sums = TreeSums(
            queries=np.diff(starts, append=len(order)).astype(np.float64),
            overlap=np.add.reduceat(ranges / slides, starts),
            firings=np.add.reduceat(1 / slides, starts),
            range_max=np.maximum.reduceat(ranges, starts),
        )
        sets = lookups = None
        if model.technique == "slick_deque_inv":
            sets = RangeSets.of_runs(groups.windows.ranges[order], starts)
        if model.technique == "flat_fat":
            weights = lookup_weights(model.mode, slides)
            runs = zip(np.split(ranges, starts[1:]), np.split(weights, starts[1:]), strict=True)
            profiles = [RangeProfile.of(*run) for run in runs]
            lookups = lookup_rows(profiles, lookup_cost(model.mode), edges.rates)
        return cls(model, edges, sums, edges.rates.copy(), sets, lookups)

    def __len__(self) -> int:
        return len(self.costs)

    def sums_at(self, rates: Floats) -> TreeSums:
        """Return the sums of every row, with those that depend on the edge rate."""
        sums = self._sums
        if self._sets is not None:
            phases = self._phases(self.edges.rates, self._finest)
            sums = replace(sums, running=self._sets.sizes * phases)
        if self._lookups is not None:
            sums = replace(sums, lookups=self._lookups.totals(rates))
        return sums

    def join_costs(self, row: int, others: Trees, rows: Indices, below: Floats) -> Floats:
        """Return the cost of this row united with each of the other's rows.

        A union that cannot cost less than `below` is given as infinity: its edges, which are
        dear to count, are not counted.
        """
        costs = np.full(len(rows), np.inf)
        kept = self._floor_costs(row, others, rows) < below
        rows = rows[kept]
        if len(rows):
            rates = self.edges.join_rates(row, others.edges, rows)
            costs[kept] = self.model.costs(self._joined_sums(row, others, rows, rates), rates)
        return costs

    def assign(self, row: int, other: Trees, other_row: int) -> None:
        """Replace one row by a row of the other."""
        self.edges.assign(row, other.edges, other_row)
        for mine, theirs in zip(_columns(self._sums), _columns(other._sums), strict=True):
            mine[row] = theirs[other_row]
        self._finest[row] = other._finest[other_row]
        self.costs[row] = other.costs[other_row]
        if self._sets is not None and other._sets is not None:
            self._sets.assign(row, other._sets, other_row)
        if self._lookups is not None and other._lookups is not None:
            self._lookups.assign(row, other._lookups, other_row)
            self._own_lookups[row] = other._own_lookups[other_row]

    def unite(self, parts: Sequence[Sequence[int]]) -> Trees:
        """Return new trees, each the union of some of these."""
        flat = np.concatenate([np.asarray(part, dtype=np.intp) for part in parts])
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        sums = TreeSums(
            queries=np.add.reduceat(self._sums.queries[flat], starts),
            overlap=np.add.reduceat(self._sums.overlap[flat], starts),
            firings=np.add.reduceat(self._sums.firings[flat], starts),
            range_max=np.maximum.reduceat(self._sums.range_max[flat], starts),
        )
        return Trees(
            self.model,
            self.edges.unite(parts),
            sums,
            np.maximum.reduceat(self._finest[flat], starts),
            None if self._sets is None else self._sets.unite(parts),
            None if self._lookups is None else self._lookups.unite(parts),
        )

    def unite_all_but_one(self, part: Sequence[int]) -> Trees:
        """Return as many new trees, each the union of all the given ones but one."""
        rows = list(part)
        totals = [column[rows] for column in _columns(self._sums)[:3]]
        queries, overlap, firings = (own.sum() - own for own in totals)
        range_max = all_but_one(self._sums.range_max[rows], np.maximum)
        return Trees(
            self.model,
            self.edges.unite_all_but_one(rows),
            TreeSums(queries, overlap, firings, range_max),
            all_but_one(self._finest[rows], np.maximum),
            None if self._sets is None else self._sets.unite_all_but_one(rows),
            None if self._lookups is None else self._lookups.unite_all_but_one(rows),
        )

    def _phases(self, rates: Floats, finest: Floats) -> Floats:
        """Running aggregates per range: two where the slices are finer than any one group's.

        Then an instance spans different numbers of slices at different phases; two is what most
        ranges have. The final plan is counted window by window.
        """
        if self.model.mode != "exact":
            return np.ones_like(rates)
        return np.where(rates > finest * (1 + 1e-9), 2.0, 1.0)

    def _floor_costs(self, row: int, others: Trees, rows: Indices) -> Floats:
        """Bound the costs of unions from below; none has fewer edges than either tree."""
        sums = _joined(self._sums, row, others._sums, rows)
        if self._sets is not None and others._sets is not None:
            sizes = np.maximum(self._sets.sizes[row], others._sets.sizes[rows])
            sums = replace(sums, running=sizes)
        if self._lookups is not None:
            drop = lookup_cost(self.model.mode).largest_drop * sums.queries
            looked_up = self._own_lookups[row] + others._own_lookups[rows]
            sums = replace(sums, lookups=looked_up - drop)
        return self.model.costs(sums, np.maximum(self.edges.rates[row], others.edges.rates[rows]))

    def _joined_sums(self, row: int, others: Trees, rows: Indices, rates: Floats) -> TreeSums:
        sums = _joined(self._sums, row, others._sums, rows)
        if self._sets is not None and others._sets is not None:
            finest = np.maximum(self._finest[row], others._finest[rows])
            sizes = self._sets.join_sizes(row, others._sets, rows)
            sums = replace(sums, running=sizes * self._phases(rates, finest))
        if self._lookups is not None and others._lookups is not None:
            looked_up = self._lookups.joined(row, others._lookups, rows, rates)
            sums = replace(sums, lookups=looked_up)
        return sums


def _columns(sums: TreeSums) -> tuple[Floats, ...]:
    return sums.queries, sums.overlap, sums.firings, sums.range_max


def _joined(mine: TreeSums, row: int, theirs: TreeSums, rows: Indices) -> TreeSums:
    return TreeSums(
        queries=mine.queries[row] + theirs.queries[rows],
        overlap=mine.overlap[row] + theirs.overlap[rows],
        firings=mine.firings[row] + theirs.firings[rows],
        range_max=np.maximum(mine.range_max[row], theirs.range_max[rows]),
    )
