"""The portfolio: every planner proposes, every proposal is priced, the cheapest wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from weft.cost.model import RateModel, at_part, coefficients_of
from weft.cost.paper import PaperModel
from weft.cost.selectivity import kept_fraction
from weft.cost.strategies import check_strategy
from weft.cost.streams import StreamModel
from weft.errors import QueryError, UnsupportedError
from weft.plan import ENGINES, Candidate, Emit, Plan, Roll, Scope, scopes_of
from weft.plan.body import COLUMNAR, NATIVE
from weft.plan.nodes import topological
from weft.planners import factor, independent, slicing, subsume, weave
from weft.planners.base import Context, Planner, Proposal, StoredSlices
from weft.planners.filters import Filters, sentences
from weft.planners.joins import is_placement, join_candidates, plan_joins
from weft.planners.naming import check_technique
from weft.planners.shares import MOST_SHARES, shares_of
from weft.planners.trials import Desk, Trial, shared
from weft.planners.weave import triweave
from weft.query import Workload
from weft.statistics import Statistics
from weft.techniques import FAN_OUT
from weft.time import duration_us, format_us

if TYPE_CHECKING:
    from weft.cost.joins.tuples import SideLoad
    from weft.planners.joins.planned import PlannedJoin
    from weft.query import AnyQuery
    from weft.techniques import Form
    from weft.time import Duration

# In order of preference between plans of equal cost: the simpler one first.
PLANNERS: dict[str, Planner] = {
    "independent": independent.propose,
    "factor": factor.propose,
    "weave": weave.propose,
    "triweave": triweave.propose,
    "subsume": subsume.propose,
    "slice": slicing.propose,
}
# Planners whose papers count operations per second, not per common period.
_BY_RATE = frozenset({"weave", "triweave", "subsume", "slice"})
MIXED = "mixed"
_ROUNDING = 1 + 1e-12  # costs that differ by less are equal


def optimize(
    workload: Workload | AnyQuery,
    planner: str = "auto",
    engine: str = "spark",
    statistics: Statistics | Mapping[str, Statistics] | None = None,
    model: str | None = None,
    *,
    exact_columns: Mapping[str, frozenset[str]] | None = None,
    technique: str | None = None,
    join_loads: Mapping[str, tuple[SideLoad, ...]] | None = None,
    strategy: str | None = None,
    micro_batch: Duration | None = None,
    session: bool = False,
    store: StoredSlices | None = None,
    filters: Filters | None = None,
) -> Plan:
    """Plan a workload, or a query alone: the cheapest plan of all planners, or of the one named.

    A join has a plan for every set of inputs that may be aggregated early, by the names LAP, EAP10
    and so on, which `planner` takes too; `join_loads` tells what the inputs of a join bring.

    `statistics` may differ per source. `exact_columns` names, per source, the columns that hold
    integers or decimals; it is filled in from the tables when a workload is run. `technique` forces
    the one that puts overlapping instances together; without it laws and costs decide. `strategy`
    is how Spark is to run every scope, "native" or "columnar"; without it costs decide scope by
    scope. `micro_batch` plans for a stream on Spark whose micro-batches have the events of that
    time, `session` for a session of the local engine: both keep windows as events come. `filters`
    forces whether queries that keep different events share their slices: "together" wherever they
    may, or "apart"; without it costs decide. With a `store`, a `weft.Store`, the plan is over the
    slices that are there, or says what they lack.
    """
    if store is not None:
        return store.planned(Workload.of(workload), engine)
    workload = Workload.of(workload)
    _check_names(workload, planner, engine, model)
    check_strategy(strategy, engine)
    form = _form(engine, model, session=session)
    if technique is not None:
        check_technique(technique, form)
        if engine == "spark" and model != "paper":
            strategy = strategy or strategy_of(technique)
    _check_statistics(workload, statistics)
    batch_us = _micro_batch_us(micro_batch, engine)
    apart = scopes_of(workload, exact_columns)
    joins = plan_joins(workload, planner, engine, statistics, model, join_loads or {})
    names = (planner,) if planner in PLANNERS else tuple(PLANNERS)

    def context_of(scope: Scope) -> Context:
        known = _context(scope, apart, planner, engine, statistics, model, joins, batch_us)
        return replace(known, technique=technique, form=form, engine=engine, strategy=strategy)

    desk = Desk(PLANNERS, names, context_of)
    if filters not in (None, *get_args(Filters)):
        raise QueryError(
            f"filters cannot be {filters!r}", hint=f"use one of {', '.join(get_args(Filters))}"
        )
    counted = model == "paper" or planner == "independent"  # as each would do by itself
    scopes = shared(apart, desk, "apart" if counted else filters)
    contexts = [context_of(scope) for scope in apart]
    trials = [desk.trials(scope, apart) for scope in scopes]
    chosen = _choose(names, trials)
    _refuse_impossible(chosen)
    emits = tuple(emit for trial in chosen for emit in trial.proposal.emits)
    emits += tuple(join.emit for join in joins)
    nodes = topological(_in_query_order(emits, workload))
    prices = {n: c for join in joins for n, c in join.node_costs().items()}
    prices |= {n: c for t in chosen for n, c in zip(t.nodes, t.costs, strict=True)}
    costs = tuple(prices[node] for node in nodes)
    reasons = {key: why for trial in chosen for key, why in _reasons(trial.proposal)}
    candidates = _candidates(names, trials, chosen) if scopes else ()
    known = contexts[0] if contexts else _join_context(workload, engine, statistics, model)
    return Plan(
        nodes=nodes,
        planner=_name_of([*chosen, *joins]),
        engine=engine,
        model=known.model.name,
        unit=known.model.unit,
        node_costs=costs,
        candidates=candidates + join_candidates(joins, alone=len(workload) == 1),
        statistics=known.statistics,
        shares=shares_of(nodes, costs, apart, [c.model for c in contexts], reasons),
        notes=tuple(dict.fromkeys(note for t in chosen for note in t.proposal.notes))
        + (sentences(apart, scopes, desk.cost) if len(apart) <= MOST_SHARES else ())
        + _statistics_notes(apart, contexts)
        + _stream_notes(batch_us)
        + tuple(join.note for join in joins),
        strategies=tuple(choice for trial in chosen for choice in trial.choices),
    )


def _statistics_notes(scopes: Sequence[Scope], contexts: Sequence[Context]) -> tuple[str, ...]:
    """Name the statistics of each source where they differ; a plan shows those of the first."""
    known = {s.scan.source: str(c.statistics) for s, c in zip(scopes, contexts, strict=True)}
    if len(set(known.values())) < 2:
        return ()
    return tuple(f"statistics of {source}: {text}" for source, text in known.items())


def _stream_notes(batch_us: int | None) -> tuple[str, ...]:
    if batch_us is None:
        return ()
    return (f"a stream, priced as if a micro-batch had the events of {format_us(batch_us)}",)


def _check_names(
    workload: Workload,
    planner: str,
    engine: str,
    model: str | None,
) -> None:
    _check_workload(workload)
    if planner != "auto" and planner not in PLANNERS and not is_placement(planner, workload):
        raise QueryError(
            f"unknown planner {planner!r}", hint=f"use one of auto, {', '.join(PLANNERS)}"
        )
    if engine not in ENGINES:
        raise QueryError(f"unknown engine {engine!r}", hint=f"use one of {', '.join(ENGINES)}")
    if model not in (None, "paper", "calibrated"):
        raise QueryError(
            f"unknown cost model {model!r}", hint="use 'calibrated' (the default) or 'paper'"
        )


def _form(engine: str, model: str | None, *, session: bool) -> Form | None:
    """Tell which form of techniques will run; on Spark the strategy decides, in papers none."""
    if model == "paper" or engine == "spark":
        return None
    return "incremental" if session else "whole"


def strategy_of(technique: str) -> str:
    """Return how Spark must run a technique: by Catalyst the one that it has, others in kernels."""
    return NATIVE if technique == FAN_OUT else COLUMNAR


def _check_workload(workload: Workload) -> None:
    if not len(workload):
        raise QueryError("the workload has no query", hint="add one with workload.add(query)")


def _context(
    scope: Scope,
    scopes: Sequence[Scope],
    planner: str,
    engine: str,
    statistics: Statistics | Mapping[str, Statistics] | None,
    model: str | None,
    joins: Sequence[PlannedJoin],
    batch_us: int | None,
) -> Context:
    known = _statistics_of(scope.scan.source, statistics)
    if model == "paper":
        windows = [w for s in scopes for w in s.windows]
        per_second = planner in _BY_RATE or bool(joins)
        return Context(known, PaperModel.of(known, windows, per_second=per_second))
    part = kept_fraction(scope.scan.where, known)
    own = at_part(known, part) if part < 1 else known
    priced: RateModel = (
        RateModel(coefficients_of(engine), own)
        if batch_us is None
        else StreamModel.of(own, batch_us)
    )
    dropped = known.events_per_us * 1e6 * (1 - part)
    return Context(known, replace(priced, dropped_per_second=dropped))


def _micro_batch_us(micro_batch: Duration | None, engine: str) -> int | None:
    if micro_batch is None:
        return None
    if engine != "spark":
        raise QueryError(
            f"the {engine} engine has no micro-batches", hint="plan for spark, or leave them out"
        )
    pace_us = duration_us(micro_batch)
    if pace_us <= 0:
        raise QueryError(
            "a micro-batch has the events of no time", hint="give a duration, such as '10 minutes'"
        )
    return pace_us


def _join_context(
    workload: Workload,
    engine: str,
    statistics: Statistics | Mapping[str, Statistics] | None,
    model: str | None,
) -> Context:
    """What a plan of joins alone says of its costs; joins price themselves."""
    known = _statistics_of(workload.sources[0], statistics)
    if model == "paper":
        return Context(known, PaperModel.of(known, (), per_second=True))
    return Context(known, RateModel(coefficients_of(engine), known))


def _statistics_of(
    source: str, statistics: Statistics | Mapping[str, Statistics] | None
) -> Statistics:
    known = statistics.get(source) if isinstance(statistics, Mapping) else statistics
    return known or Statistics()


def _check_statistics(
    workload: Workload, statistics: Statistics | Mapping[str, Statistics] | None
) -> None:
    unknown = statistics.keys() - {*workload.sources} if isinstance(statistics, Mapping) else ()
    if unknown:
        raise QueryError(
            f"statistics name {', '.join(sorted(unknown))}, which no query reads",
            hint=f"the sources are {', '.join(workload.sources)}",
        )


def _choose(names: Sequence[str], trials: Sequence[dict[str, Trial]]) -> list[Trial]:
    """Choose the cheapest plan of each scope; one planner for all where that costs no more."""
    cheapest = [min((trial[name] for name in names), key=lambda t: t.cost) for trial in trials]
    total = sum(trial.cost for trial in cheapest)
    for name in names:
        alike = [trial[name] for trial in trials]
        if sum(trial.cost for trial in alike) <= total * _ROUNDING:
            return alike
    return cheapest


def _refuse_impossible(chosen: Sequence[Trial]) -> None:
    for trial in chosen:
        if trial.choices and math.isinf(trial.cost):
            choice = next((c for c in trial.choices if c.native is None), trial.choices[0])
            raise UnsupportedError(
                f"the {choice.strategy} strategy is forced, and {choice.reason}",
                hint="leave the strategy to the plan, or force columnar, which runs everything",
            )


def _in_query_order(emits: tuple[Emit, ...], workload: Workload) -> tuple[Emit, ...]:
    place = {query.name: i for i, query in enumerate(workload.queries)}
    return tuple(sorted(emits, key=lambda emit: place[emit.query]))


def _reasons(proposal: Proposal) -> list[tuple[tuple[str, str], str]]:
    return [
        ((emit.query, emit.label), proposal.reasons[roll.window])
        for emit in proposal.emits
        for roll in emit.inputs[:1]
        if isinstance(roll, Roll) and roll.window in proposal.reasons
    ]


def _name_of(chosen: Sequence[Trial | PlannedJoin]) -> str:
    names = {trial.planner for trial in chosen}
    return names.pop() if len(names) == 1 else MIXED


def _candidates(
    names: Sequence[str], trials: Sequence[dict[str, Trial]], chosen: Sequence[Trial]
) -> tuple[Candidate, ...]:
    """One line per planner, over all scopes; a mixture gets a line of its own."""
    best = sum(trial.cost for trial in chosen)
    winner = _name_of(chosen)
    lines: list[Candidate] = []
    for name in dict.fromkeys(("independent", *names)):
        tried = [trial[name] for trial in trials]
        cost = sum(trial.cost for trial in tried)
        lines.append(Candidate(name, cost, _verdict(name, tried, cost, winner, best)))
    if winner == MIXED:
        mixture = ", ".join(f"{t.planner} for scope {i}" for i, t in enumerate(chosen, 1))
        lines.append(Candidate(MIXED, best, f"chosen: {mixture}"))
    return tuple(lines)


def _verdict(name: str, tried: Sequence[Trial], cost: float, winner: str, best: float) -> str:
    refusals = dict.fromkeys(trial.refusal for trial in tried if trial.refusal)
    if name == winner:
        return "chosen"
    if all(trial.refusal for trial in tried):
        return f"no plan of its own: {'; '.join(refusals)}"
    if math.isinf(cost):
        return "; ".join(dict.fromkeys(c.reason for t in tried for c in t.choices))
    if best / _ROUNDING <= cost <= best * _ROUNDING:
        return "the same cost"
    if best < cost < 1.01 * best:
        return f"{100 * (cost / best - 1):.2g} % more than the chosen plan"
    return f"{cost / best:.4g}x the cost of the chosen plan"
