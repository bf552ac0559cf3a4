"""Plans compared: what planners proposed for a scope, which is chosen, and what is said of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weft.cost.batch.model import BatchModel, SparkModel
from weft.cost.batch.unknowns import safest
from weft.plan.body import STOCK, Candidate
from weft.time import format_us

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.plan import Scope
    from weft.planners.base import Context
    from weft.planners.joins.planned import PlannedJoin
    from weft.planners.trials import Desk, Trial

MIXED = "mixed"
_ROUNDING = 1 + 1e-12  # costs that differ by less are equal


def choose(names: Sequence[str], trials: Sequence[dict[str, Trial]]) -> list[Trial]:
    """Choose the plan of each scope: the cheapest, or the safest where not all is known.

    One planner for all is taken where that costs no more.
    """
    cases = max((len(trial[name].cases) for trial in trials for name in names), default=0)
    if cases > 1:
        return [
            trial[names[safest([[*map(trial[name].case, range(cases))] for name in names])]]
            for trial in trials
        ]
    cheapest = [min((trial[name] for name in names), key=lambda t: t.cost) for trial in trials]
    total = sum(trial.cost for trial in cheapest)
    for name in names:
        alike = [trial[name] for trial in trials]
        if sum(trial.cost for trial in alike) <= total * _ROUNDING:
            return alike
    return cheapest


def name_of(chosen: Sequence[Trial | PlannedJoin]) -> str:
    """Name the planner of a plan; several planners make a mixture."""
    names = {trial.planner for trial in chosen}
    return names.pop() if len(names) == 1 else MIXED


def candidates_of(
    names: Sequence[str],
    trials: Sequence[dict[str, Trial]],
    chosen: Sequence[Trial],
    as_run: Callable[[Sequence[Trial]], Sequence[Trial]],
) -> tuple[Candidate, ...]:
    """One line per planner, over all scopes; a mixture gets a line of its own.

    `as_run` prices plans of several scopes that run together.
    """
    best = sum(trial.cost for trial in chosen)
    winner = name_of(chosen)
    lines: list[Candidate] = []
    for name in dict.fromkeys(("independent", *names)):
        tried = as_run([trial[name] for trial in trials])
        cost = sum(trial.cost for trial in tried)
        lines.append(Candidate(name, cost, _verdict(name, tried, cost, winner, best)))
    if winner == MIXED:
        mixture = ", ".join(f"{t.planner} for scope {i}" for i, t in enumerate(chosen, 1))
        lines.append(Candidate(MIXED, best, f"chosen: {mixture}"))
    elif winner not in names:
        lines.append(Candidate(winner, best, "chosen: slices are regrouped to fewer keys"))
    return tuple(lines)


def stock_candidate(
    desk: Desk, apart: Sequence[Scope], contexts: Sequence[Context], chosen: Sequence[Trial]
) -> tuple[Candidate, ...]:
    """Price what Spark does without weft; nothing where it has no such windows."""
    costs: list[float] = []
    for scope, context in zip(apart, contexts, strict=True):
        if not isinstance(context.model, SparkModel):
            return ()
        done = context.model.spark.stock(desk.independent(scope).nodes)
        if done is None:
            return ()
        costs.append(context.model.ms(done))
    if not costs:
        return ()
    ratio = sum(costs) / sum(trial.cost for trial in chosen)
    words = f"what Spark does without weft: {ratio:.4g}x the cost of the chosen plan"
    return (Candidate(STOCK, sum(costs), words),)


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
    if cost < best and all(len(trial.cases) > 1 for trial in tried):
        return f"{cost / best:.4g}x, but dearer where what is assumed is otherwise"
    if best < cost < 1.01 * best:
        return f"{100 * (cost / best - 1):.2g} % more than the chosen plan"
    return f"{cost / best:.4g}x the cost of the chosen plan"


def statistics_notes(scopes: Sequence[Scope], contexts: Sequence[Context]) -> tuple[str, ...]:
    """Name the statistics of each source where they differ; a plan shows those of the first."""
    known = {s.scan.source: str(c.statistics) for s, c in zip(scopes, contexts, strict=True)}
    if len(set(known.values())) < 2:
        return ()
    return tuple(f"statistics of {source}: {text}" for source, text in known.items())


def volume_notes(contexts: Sequence[Context]) -> tuple[str, ...]:
    """Say for how many events batches are priced, and whether anybody knew."""
    found: dict[str, None] = {}
    for context in contexts:
        if isinstance(context.model, BatchModel):
            volumes = context.model.volumes
            assumed = "" if context.statistics.is_duration_known else " (assumed)"
            span = format_us(round(volumes.lasts_us))
            found[f"priced for {volumes.events:,.0f} events in {span}{assumed}"] = None
    return tuple(found)


def stream_notes(batch_us: int | None, push_us: int | None) -> tuple[str, ...]:
    """Say at which pace a stream is priced, or a session."""
    if push_us is not None:
        return (f"a session, priced as if a push had the events of {format_us(push_us)}",)
    if batch_us is None:
        return ()
    return (f"a stream, priced as if a micro-batch had the events of {format_us(batch_us)}",)
