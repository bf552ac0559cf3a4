"""The desk where scopes are planned: every planner tries, every proposal is checked and priced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from weft.cost.batch.unknowns import plausible
from weft.cost.strategies import price
from weft.cost.streams import StreamModel
from weft.errors import InternalError
from weft.plan.body import NATIVE
from weft.plan.nodes import Emit, Scan, topological
from weft.plan.scope import mixed
from weft.plan.validate import validate
from weft.planners.base import Context, NoProposal, Planner, Proposal
from weft.planners.filters import Filters, families, grouped
from weft.planners.naming import named
from weft.planners.patience import quickest_first, too_long

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft.plan import Node, Scope, StrategyChoice
    from weft.techniques import Form


@dataclass(frozen=True, slots=True)
class Trial:
    """One planner's answer for one scope; without a proposal the scope stays independent."""

    planner: str
    proposal: Proposal
    nodes: tuple[Node, ...]
    costs: tuple[float, ...]
    refusal: str = ""
    choices: tuple[StrategyChoice, ...] = ()  # on Spark, one for each scope
    cases: tuple[float, ...] = ()  # its cost as expected, and as the unknown may have it

    @property
    def cost(self) -> float:
        """What all of it costs."""
        return sum(self.costs)

    def case(self, at: int) -> float:
        """Return what it costs in one case of the unknown; as expected, if it is known."""
        return self.cases[at] if at < len(self.cases) else self.cost

    @property
    def changeable(self) -> float:
        """What it costs beside reading events and writing results, which every plan does."""
        priced = zip(self.nodes, self.costs, strict=True)
        return sum(cost for node, cost in priced if not isinstance(node, Scan | Emit))


@dataclass(frozen=True, slots=True)
class Desk:
    """Where scopes are planned and priced, each once."""

    planners: Mapping[str, Planner]
    names: tuple[str, ...]
    context_of: Callable[[Scope], Context]
    done: dict[Scope, dict[str, Trial]] = field(default_factory=dict)

    def cost(self, scope: Scope) -> float:
        """Return what the cheapest plan of a scope costs."""
        return min(self._tried(scope)[name].cost for name in self.names)

    def trials(self, scope: Scope, apart: Sequence[Scope]) -> dict[str, Trial]:
        """Plan a scope; of filters that share, independent plans are those of each by itself."""
        tried = self._tried(scope)
        own = {(d.query, d.label) for d in scope.demands}
        parts = [s for s in apart if (s.demands[0].query, s.demands[0].label) in own]
        if len(parts) == 1:
            return tried
        alone = [self._tried(part)["independent"] for part in parts]
        return {**tried, "independent": _together(alone)}

    def independent(self, scope: Scope) -> Trial:
        """Return the plan of a scope that shares nothing."""
        return self._tried(scope)["independent"]

    def _tried(self, scope: Scope) -> dict[str, Trial]:
        if scope not in self.done:
            self.done[scope] = self._trials(scope, self.context_of(scope))
        return self.done[scope]

    def _trials(self, scope: Scope, context: Context) -> dict[str, Trial]:
        trials = {"independent": self._price("independent", scope, context)}
        for name in quickest_first(self.names):
            if name == "independent":
                continue
            why, alone = "", trials["independent"]
            if context.hurried:
                spent = min(trial.changeable for trial in trials.values())
                least = context.folding(len(scope.partials_for(scope.shareable)))
                why = too_long(name, scope, max(spent - least, 0.0))
            if why:
                trials[name] = replace(alone, planner=name, refusal=why)
            else:
                trials[name] = self._price(name, scope, context, fallback=alone)
        return trials

    def _price(
        self, name: str, scope: Scope, context: Context, fallback: Trial | None = None
    ) -> Trial:
        proposal = self.planners[name](scope, context)
        if isinstance(proposal, NoProposal):
            if fallback is None:
                raise InternalError(f"planner {name} has no plan: {proposal.reason}")
            return replace(fallback, planner=name, refusal=proposal.reason)
        choice: StrategyChoice | None = None
        form, costs, cases = context.form, None, tuple[float, ...]()
        models = plausible(context.model)
        if context.counts_as_papers_do:
            costs = context.model.node_costs(topological(proposal.emits))
        if context.engine == "spark":
            costs, choice, cases = price(topological(proposal.emits), models, context.strategy)
            form = _form_on_spark(choice, context)
        emits = named(proposal.emits, form, scope.is_exact, context.technique)
        proposal = replace(proposal, emits=emits)
        nodes = topological(proposal.emits)
        try:
            validate(nodes)
        except InternalError as error:
            raise InternalError(f"planner {name}: {error.message}") from error
        if costs is None or len(costs) != len(nodes):
            costs = context.model.node_costs(nodes)
        if choice is None:
            cases = tuple(sum(model.node_costs(nodes)) for model in models[1:])
        choices = () if choice is None else (choice,)
        return Trial(name, proposal, nodes, costs, choices=choices, cases=(sum(costs), *cases))


def shared(apart: tuple[Scope, ...], desk: Desk, filters: Filters | None) -> tuple[Scope, ...]:
    """Put scopes of different filters together where that costs less, or as it is forced."""
    if filters == "apart":
        return apart
    if filters == "together":
        return tuple(mixed(family, apart) for family in families(apart))
    found: list[Scope] = []
    for family in families(apart):
        known = desk.context_of(family[0]).statistics
        found += grouped(family, apart, known, desk.cost)
    return tuple(found)


def _together(trials: Sequence[Trial]) -> Trial:
    """Put plans of several scopes under one name."""
    emits = tuple(emit for trial in trials for emit in trial.proposal.emits)
    prices: dict[Node, float] = {}
    for trial in trials:
        for node, cost in zip(trial.nodes, trial.costs, strict=True):
            prices[node] = prices.get(node, 0.0) + cost  # scopes may read the same scan
    nodes = topological(emits)
    reasons = {w: why for trial in trials for w, why in trial.proposal.reasons.items()}
    return Trial(
        trials[0].planner,
        Proposal(emits, reasons=reasons),
        nodes,
        tuple(prices[node] for node in nodes),
        choices=tuple(choice for trial in trials for choice in trial.choices),
        # Less may be unknown of one scope than of another.
        cases=tuple(
            sum(trial.case(at) for trial in trials)
            for at in range(max(len(trial.cases) for trial in trials))
        ),
    )


def _form_on_spark(choice: StrategyChoice | None, context: Context) -> Form | None:
    """Tell which form of techniques a strategy runs."""
    if context.counts_as_papers_do:
        return None
    if choice is None or choice.strategy == NATIVE:
        return "spread"
    return "incremental" if isinstance(context.model, StreamModel) else "whole"
