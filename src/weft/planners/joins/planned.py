"""A join with its placement chosen, and what every placement would cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from weft.cost.joins.tuples import Placement, SideLoad, placement_name
from weft.plan.body import Candidate
from weft.plan.nodes import Emit, Join, Node, Slice, topological

if TYPE_CHECKING:
    from collections.abc import Mapping


class PlacementCost(Protocol):
    """Prices a placement, per second."""

    def cost(self, early: Placement) -> float:
        """Price a placement."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedJoin:
    """One join with its placement chosen, and what every placement would cost."""

    query: str
    emit: Emit
    early: Placement
    costs: Mapping[Placement, float]
    loads: tuple[SideLoad, ...]
    assumed: bool
    pricing: PlacementCost
    sharing: tuple[Candidate, ...] = ()  # what slices cost that other joins may read too
    saved: float = 0.0  # what its own node need not pay, because slices do
    slicing: Mapping[Slice, float] = field(default_factory=dict)  # what those slices cost

    @property
    def planner(self) -> str:
        """The placement, as Tran & Lee name it."""
        return placement_name(self.early)

    def node_costs(self) -> dict[Node, float]:
        """Charge the whole join to its node."""
        nodes = topological((self.emit,))
        own = self.costs[self.early] - self.saved
        prices = {n: own if isinstance(n, Join) else 0.0 for n in nodes}
        prices.update(self.slicing.items())
        return prices

    def candidates(self, prefix: str = "") -> tuple[Candidate, ...]:
        """List every placement with its cost."""
        best = self.costs[self.early]
        return tuple(
            Candidate(f"{prefix}{placement_name(e)}", cost, _verdict(e == self.early, cost, best))
            for e, cost in self.costs.items()
        )

    @property
    def note(self) -> str:
        """Say what the costs rest on."""
        join = self.emit.inputs[0]
        assert isinstance(join, Join)
        aliases = [side.alias for side in join.sides]
        inputs = "; ".join(
            f"{alias} {load.rate:g}/s, {load.window_tuples:g} in its window, groups {load.groups:g}"
            f", join values {load.join_values:g}"
            + (f" ({load.at_a_time:g} at a time)" if load.at_a_time else "")
            for alias, load in zip(aliases, self.loads, strict=True)
        )
        return f"join {self.query!r}{' (assumed)' if self.assumed else ''}: {inputs}"


def _verdict(chosen: bool, cost: float, best: float) -> str:
    if chosen:
        return "chosen"
    if cost == best:
        return "the same cost"
    if cost < best:
        return f"{best / cost:.4g}x less than the plan that was asked for"
    return f"{cost / best:.4g}x the cost of the chosen plan"
