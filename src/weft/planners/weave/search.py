"""WeaveShare and TriWeave: which windows share a tree of slices, by cost.

Windows of one tree share its slices; the price is that every window of the tree then combines
slices cut at the edges of all. WeaveShare lets each tree slice the events itself,

    cost = trees * rate + sum of E * Omega,

TriWeave slices them once, at the edges of all windows (E_all per time unit), and lets the trees
make their slices from those,

    cost = rate + trees * E_all + sum of E * Omega,

with E the edges of a tree per time unit and Omega its operations per edge (Shein & Chrysanthis,
multi-query optimization of incrementally evaluated sliding-window aggregations, IEEE TKDE; no
cost formula is printed there for TriWeave).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from weft.cost.edges.rates import edge_rate
from weft.cost.lookups import RangeProfile
from weft.cost.omega import (
    Mode,
    TreeSums,
    check_omega,
    lookup_cost,
    lookup_weights,
    overlap_factors,
    running_aggregates,
)
from weft.errors import QueryError, UnsupportedError
from weft.planners.weave.groups import Groups, WeaveWindows, group_windows
from weft.planners.weave.moves import exact_partition, partition
from weft.planners.weave.trees import TreeModel, Trees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from weft.window import PeriodicWindow

    Floats = NDArray[np.float64]

WeaveKind = Literal["weave", "triweave"]
_FEW_GROUPS = 8  # all subsets of so few take less time than a greedy search and its moves
_MOST_COUNTED_WINDOWS = 1 << 14


@dataclass(frozen=True, slots=True)
class WeavePlan:
    """Trees of windows, by their positions in the input, with what they cost per time unit."""

    trees: tuple[tuple[int, ...], ...]
    edge_rates: tuple[float, ...]
    omegas: tuple[float, ...]
    cost: float
    cost_unshared: float
    cost_one_tree: float


def weave(
    windows: Sequence[PeriodicWindow] | ArrayLike,
    rate: float,
    technique: str,
    mode: Mode = "paper",
    kind: WeaveKind = "weave",
) -> WeavePlan:
    """Partition windows into trees so that the plan costs as little as a search can find.

    Windows are values or rows (range, slide[, offset]) in any integer unit, the rate is in events
    per that unit. Never costs more than one tree per window, nor than one tree for all.

    >>> plan = weave([(6, 2), (8, 4)], rate=1, technique="naive")
    >>> plan.trees, plan.cost_unshared, plan.cost
    (((0, 1),), 4.0, 3.5)
    >>> four = [(12, 4), (24, 6), (60, 20), (60, 10)]
    >>> plan = weave(four, rate=1, technique="naive")
    >>> plan.trees, round(plan.cost_unshared, 4), round(plan.cost, 4)
    (((0, 1), (2, 3)), 6.1667, 5.2333)
    """
    problem = _Problem.of(windows, rate, technique, mode, kind)
    if len(problem.groups) <= _FEW_GROUPS:
        return problem.best_plan(exact_partition(problem.trees))
    return problem.best_plan(partition(problem.trees))


def cost_of_one_tree(
    windows: Sequence[PeriodicWindow] | ArrayLike,
    rate: float,
    technique: str,
    mode: Mode = "paper",
    kind: WeaveKind = "weave",
) -> float:
    """Cost one tree for all windows, without a search.

    >>> cost_of_one_tree([(6, 2), (8, 4)], rate=1, technique="naive")
    3.5
    """
    problem = _Problem.of(windows, rate, technique, mode, kind)
    return problem.plan([list(range(len(problem.groups)))]).cost


@dataclass(frozen=True, slots=True)
class _Problem:
    """One search: the groups as trees, and what a plan pays besides its trees."""

    windows: WeaveWindows
    groups: Groups
    trees: Trees
    constant: float

    @classmethod
    def of(
        cls,
        windows: Sequence[PeriodicWindow] | ArrayLike,
        rate: float,
        technique: str,
        mode: Mode,
        kind: WeaveKind,
    ) -> _Problem:
        check_omega(technique, mode)
        if kind not in get_args(WeaveKind):
            raise UnsupportedError(
                f"cannot search trees of kind {kind!r}: no such kind",
                hint=f"use one of {', '.join(get_args(WeaveKind))}",
            )
        if not 0 <= rate < float("inf"):
            raise QueryError(
                f"an input rate of {rate} is no rate", hint="give events per time unit"
            )
        columns = WeaveWindows.of(windows)
        groups = group_windows(columns)
        overhead, constant = float(rate), 0.0
        if kind == "triweave":
            overhead = edge_rate(edge for classes in groups.classes for edge in classes)
            constant = float(rate)
        trees = Trees.of_groups(TreeModel(technique, mode, overhead), groups)
        return cls(columns, groups, trees, constant)

    def best_plan(self, found: list[list[int]]) -> WeavePlan:
        """Return the cheapest of what was found, one tree for all, and one for each window."""
        together = self.plan([list(range(len(self.groups)))])
        searched = self.plan(found) if len(found) > 1 else together
        unshared_rates, unshared_omegas = self._unshared()
        unshared = self.constant + float(
            (self.trees.model.overhead + unshared_rates * unshared_omegas).sum()
        )
        best = searched if searched.cost <= together.cost else together
        if unshared < best.cost:
            best = WeavePlan(
                tuple((row,) for row in range(len(self.windows))),
                tuple(unshared_rates.tolist()),
                tuple(unshared_omegas.tolist()),
                cost=unshared,
                cost_unshared=unshared,
                cost_one_tree=together.cost,
            )
        return replace(best, cost_unshared=unshared, cost_one_tree=together.cost)

    def plan(self, parts: list[list[int]]) -> WeavePlan:
        """Cost a partition as exactly as is affordable, whatever the search estimated."""
        trees = self.trees.unite(parts)
        rates = trees.edges.rates
        if not trees.edges.exact:
            rates = np.array(
                [edge_rate(e for g in part for e in self.groups.classes[g]) for part in parts]
            )
        members = [
            tuple(np.sort(np.concatenate([self.groups.members(g) for g in part])).tolist())
            for part in parts
        ]
        model = trees.model
        sums = self._counted(trees.sums_at(rates), members, rates)
        omegas = overlap_factors(model.technique, model.mode, sums, rates)
        cost = self.constant + float((model.overhead + rates * omegas).sum())
        rows = sorted(zip(members, rates.tolist(), omegas.tolist(), strict=True))
        ordered, ordered_rates, ordered_omegas = zip(*rows, strict=True)
        return WeavePlan(ordered, ordered_rates, ordered_omegas, cost, cost, cost)

    def _counted(self, sums: TreeSums, members: list[tuple[int, ...]], rates: Floats) -> TreeSums:
        """Replace what the search estimated from sums by counts over the windows themselves."""
        model, windows = self.trees.model, self.windows
        if model.technique == "flat_fat":
            ranges, slides = windows.ranges.astype(np.float64), windows.slides.astype(np.float64)
            weights, cost = lookup_weights(model.mode, slides), lookup_cost(model.mode)
            profiles = (
                RangeProfile.of(ranges[tree], weights[tree]) for tree in map(np.array, members)
            )
            totals = [p.total(rates[i : i + 1], cost)[0] for i, p in enumerate(profiles)]
            return replace(sums, lookups=np.array(totals))
        if (
            model.technique == "slick_deque_inv"
            and model.mode == "exact"
            and len(windows) <= _MOST_COUNTED_WINDOWS
        ):
            running = [running_aggregates(windows.periodic(rows)) for rows in members]
            return replace(sums, running=np.array(running, dtype=np.float64))
        return sums

    def _unshared(self) -> tuple[Floats, Floats]:
        """Return the edge rate and the overlap factor of every window in a tree of its own."""
        model = self.trees.model
        ranges = self.windows.ranges.astype(np.float64)
        slides = self.windows.slides.astype(np.float64)
        rates = np.where(self.windows.ranges % self.windows.slides, 2.0, 1.0) / slides
        ones = np.ones_like(ranges)
        lookups: Floats | float = 0.0
        if model.technique == "flat_fat":
            weights = lookup_weights(model.mode, slides)
            lookups = lookup_cost(model.mode).each(ranges * rates) * weights
        sums = TreeSums(ones, ranges / slides, 1 / slides, ranges, running=ones, lookups=lookups)
        return rates, overlap_factors(model.technique, model.mode, sums, rates)
