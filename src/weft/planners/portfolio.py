"""The portfolio: every planner proposes, every proposal is priced, the cheapest wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from weft.cost.batch.model import SparkModel, batch_model
from weft.cost.model import RateModel, over
from weft.cost.paper import PaperModel
from weft.cost.prices import coefficients_of
from weft.cost.selectivity import kept_fraction
from weft.cost.strategies import check_strategy
from weft.cost.streams import StreamModel
from weft.cost.volumes import SECOND_US, Volumes, at_part
from weft.errors import QueryError, UnsupportedError
from weft.plan import ENGINES, Emit, Plan, Roll, Scope, scopes_of
from weft.plan.body import COLUMNAR, NATIVE
from weft.plan.nodes import scan_below, topological
from weft.planners import factor, independent, slicing, subsume, weave
from weft.planners.base import Context, Planner, Proposal, StoredSlices
from weft.planners.comparison import (
    candidates_of,
    choose,
    name_of,
    statistics_notes,
    stock_candidate,
    stream_notes,
    volume_notes,
)
from weft.planners.filters import Filters, sentences
from weft.planners.joins import is_placement, join_candidates, plan_joins
from weft.planners.lattice import LATTICE, KeySets, regrouped
from weft.planners.naming import check_technique
from weft.planners.one_read import read_once
from weft.planners.shares import MOST_SHARES, shares_of
from weft.planners.trials import Desk, Trial, shared
from weft.planners.weave import triweave
from weft.query import JoinQuery, Workload
from weft.statistics import Statistics
from weft.techniques import FAN_OUT
from weft.time import duration_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft.cost.joins.tuples import SideLoad
    from weft.cost.model import CostModel
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
_PUSH_US = 1_000_000  # how much time a push to a session has the events of, unless it is told
_ENDLESS_US = 2**60  # windows that are longer stand for all time


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
    key_sets: KeySets | None = None,
) -> Plan:
    """Plan a workload, or a query alone: the cheapest plan of all planners, or of the one named.

    A join has a plan for every set of inputs that may be aggregated early, by the names LAP, EAP10
    and so on, which `planner` takes too; `join_loads` tells what the inputs of a join bring.

    `statistics` may differ per source. `exact_columns` names, per source, the columns that hold
    integers or decimals; it is filled in from the tables when a workload is run. `technique` forces
    the one that puts overlapping instances together; without it laws and costs decide. `strategy`
    is how Spark is to run every scope, "native" or "columnar"; without it costs decide scope by
    scope. `micro_batch` plans for a stream on Spark whose micro-batches have the events of that
    time, `session` for a session of the local engine, to which events are pushed in such parts, of
    a second unless it is told: both keep windows as events come. `filters` forces whether queries
    that keep different events share their slices: "together" wherever they may, or "apart"; without
    it costs decide. `key_sets` does so for slices of several key sets, of which those with fewer
    keys may be regrouped from others. With a `store`, a `weft.Store`, the plan is over the slices
    that are there, or says what they lack.
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
    pushed = session and engine == "local"
    batch_us = _micro_batch_us(micro_batch, engine, session=pushed)
    push_us = batch_us or _PUSH_US if pushed else None
    batch_us = None if pushed else batch_us
    apart = scopes_of(workload, exact_columns)
    seconds = _join_seconds(workload, statistics, batch_us)
    joins = plan_joins(workload, planner, engine, statistics, model, join_loads or {}, seconds)
    names = (planner,) if planner in PLANNERS else tuple(PLANNERS)

    def context_of(scope: Scope) -> Context:
        known = _context(scope, apart, planner, engine, statistics, model, joins, batch_us, push_us)
        return replace(known, technique=technique, form=form, engine=engine, strategy=strategy)

    desk = Desk(PLANNERS, names, context_of)
    for name, asked, known_ways in (("filters", filters, Filters), ("key_sets", key_sets, KeySets)):
        if asked not in (None, *get_args(known_ways)):
            ways = ", ".join(get_args(known_ways))
            raise QueryError(f"{name} cannot be {asked!r}", hint=f"use one of {ways}")
    counted = model == "paper" or planner == "independent"  # as each would do by itself
    scopes = shared(apart, desk, "apart" if counted else filters)
    contexts = [context_of(scope) for scope in apart]
    trials = [desk.trials(scope, apart) for scope in scopes]
    chosen = choose(names, trials)
    _refuse_impossible(chosen)
    told: tuple[str, ...] = ()
    together = contexts and isinstance(contexts[0].model, SparkModel)
    as_run: Callable[[Sequence[Trial]], Sequence[Trial]] = read_once if together else list
    if planner == "auto" and model != "paper" and key_sets != "apart" and len(scopes) > 1:
        forced = key_sets == "together"
        run = as_run if together and not forced else None
        chosen, told = regrouped(scopes, chosen, desk, run, forced=forced)
    chosen = [*as_run(chosen)]
    among = {scan_below(t.proposal.emits[0]).source for t in chosen if t.planner == LATTICE}
    emits = tuple(emit for trial in chosen for emit in trial.proposal.emits)
    emits += tuple(join.emit for join in joins)
    nodes = topological(_in_query_order(emits, workload))
    prices = {n: c for join in joins for n, c in join.node_costs().items()}
    for trial in chosen:
        for node, cost in zip(trial.nodes, trial.costs, strict=True):
            prices[node] = prices.get(node, 0.0) + cost  # scopes may read the same scan
    costs = tuple(prices[node] for node in nodes)
    reasons = {key: why for trial in chosen for key, why in _reasons(trial.proposal)}
    candidates = candidates_of(names, trials, chosen, as_run) if scopes else ()
    candidates += stock_candidate(desk, apart, contexts, chosen)
    known = contexts[0] if contexts else _join_context(workload, engine, statistics, model)
    return Plan(
        nodes=nodes,
        planner=name_of([*chosen, *joins]),
        engine=engine,
        model=known.model.name,
        unit=known.model.unit,
        node_costs=costs,
        candidates=candidates + join_candidates(joins, alone=len(workload) == 1),
        statistics=known.statistics,
        shares=shares_of(nodes, costs, apart, [c.model for c in contexts], reasons),
        notes=tuple(dict.fromkeys(note for t in chosen for note in t.proposal.notes))
        + (sentences(apart, scopes, desk.cost, emits, among) if len(apart) <= MOST_SHARES else ())
        + told
        + statistics_notes(apart, contexts)
        + volume_notes(contexts)
        + stream_notes(batch_us, push_us)
        + tuple(join.note for join in joins),
        strategies=tuple(choice for trial in chosen for choice in trial.choices),
    )


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
    push_us: int | None,
) -> Context:
    known = _statistics_of(scope.scan.source, statistics)
    if model == "paper":
        windows = [w for s in scopes for w in s.windows]
        per_second = planner in _BY_RATE or bool(joins)
        return Context(known, PaperModel.of(known, windows, per_second=per_second))
    part = kept_fraction(scope.scan.where, known)
    if batch_us is not None:
        part *= 1 - known.late_share  # what comes late is read, and goes no further
    own = at_part(known, part) if part < 1 else known
    dropped = known.events_per_us * SECOND_US * (1 - part)
    keyed = own.of_keys(tuple(text for _, text in scope.keys))
    if batch_us is not None:
        stream = StreamModel.of(keyed, batch_us)
        return Context(known, replace(stream, dropped_per_second=dropped))
    # A filter drops events, not time: the source lasts as long for those that it keeps.
    lasts_us = known.lasts_us(longest_range_us(w for s in scopes for w in s.windows))
    pushes = 1.0 if push_us is None else max(lasts_us / push_us, 1.0)
    once = push_us is None and planner == "auto" and known.is_duration_known
    found = _batch_model(engine, keyed, lasts_us, dropped, pushes)
    return Context(known, found, hurried=once and found.unit == "ms")


def _batch_model(
    engine: str,
    known: Statistics,
    lasts_us: float,
    dropped_per_second: float,
    pushes: float = 1.0,
) -> CostModel:
    if engine == "reference":  # it is not run for its speed, so rates will do
        prices = over(coefficients_of(engine), lasts_us / SECOND_US)
        return RateModel(known, prices, dropped_per_second=dropped_per_second)
    dropped = dropped_per_second * lasts_us / SECOND_US
    return batch_model(engine, Volumes(known, lasts_us, dropped, pushes))


def longest_range_us(windows: Iterable[object]) -> float:
    """Return the longest range of any window that has one; others begin and end with events."""
    ranges = (getattr(window, "range_us", 0) for window in windows)
    return float(max((us for us in ranges if us < _ENDLESS_US), default=0))


def _join_seconds(
    workload: Workload,
    statistics: Statistics | Mapping[str, Statistics] | None,
    batch_us: int | None,
) -> float:
    """Tell for how many seconds of its inputs a join is priced."""
    if batch_us is not None:
        return batch_us / SECOND_US
    joins = [query for query in workload if isinstance(query, JoinQuery)]
    longest_us = longest_range_us(i.window for j in joins for i in j.inputs if i.window is not None)
    return _statistics_of(workload.sources[0], statistics).lasts_us(longest_us) / SECOND_US


def _micro_batch_us(micro_batch: Duration | None, engine: str, *, session: bool) -> int | None:
    if micro_batch is None:
        return None
    if engine != "spark" and not session:
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
    return Context(known, _batch_model(engine, known, known.lasts_us(), 0.0))


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
