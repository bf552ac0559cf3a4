"""Plans of factor windows on Spark: measured boosts beside Tables I to III of Wu et al.

"Factor Windows" (arXiv:2008.12379) publishes boosts of throughput over an engine that computes
each window by itself; here that engine is stock Spark, and the same sets of windows are drawn.
The same runs tell whether the cost model puts plans in the order of their times.
"""

from __future__ import annotations

from functools import cache
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from weft import agg
from weft.bench.frame import Column, Entry, Limit, Row, Sheet, Table
from weft.bench.suite.planners.factor import REAL, SYNTHETIC, Setup
from weft.bench.suite.spark.runs import (
    DEVICES,
    RATE,
    Inputs,
    readings,
    run_plan,
    run_stock,
    same_answers,
)
from weft.cost.batch.model import SparkModel
from weft.cost.volumes import Volumes
from weft.errors import InternalError
from weft.plan import Plan, scopes_of
from weft.plan.nodes import topological
from weft.planners import factor, independent
from weft.planners.base import Context, Proposal
from weft.query import Query, Workload
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft.bench.frame import Runner
    from weft.bench.suite.spark.runs import Answer
    from weft.planners.base import Planner

_EVENTS = 1_000_000
_QUICK_EVENTS = 20_000
_SETS = 3
_ROUNDS = 2
_QUICK = ("R-5-tumbling", "S-5-hopping")


class Timed(NamedTuple):
    """One set of windows under one plan: what the model expected, and what it took."""

    setup: str
    seed: int
    plan: str
    cost: float
    seconds: float


class Runs(NamedTuple):
    """All runs, and the answers that were not stock Spark's."""

    timed: tuple[Timed, ...]
    wrong: tuple[str, ...]


def _inputs(setup: Setup, seed: int, events: int) -> Inputs:
    query = Query(
        "lows",
        source="readings",
        time="ts",
        keys=["device"],
        windows={str(window): window for window in setup.windows(seed)},
        aggs={"lo": agg.min("temp")},
    )
    return Inputs(readings(events), Workload([query]))


def _plan(inputs: Inputs, propose: Planner, name: str, events: int) -> Plan:
    """Plan with one planner, for the native strategy, at calibrated prices."""
    known = Statistics(rate=RATE, keys=DEVICES, events=events)
    model = SparkModel.of(Volumes(known, known.lasts_us()))
    (scope,) = scopes_of(inputs.workload)
    proposal = propose(scope, Context(known, model))
    if not isinstance(proposal, Proposal):
        raise InternalError(f"{name} has no plan: {proposal.reason}")
    nodes = topological(proposal.emits)
    costs = model.node_costs(nodes)
    return Plan(nodes, name, "spark", model.name, model.unit, costs, statistics=known)


def _contenders(inputs: Inputs, events: int) -> Iterable[tuple[str, float, Runner]]:
    known = Statistics(rate=RATE, keys=DEVICES, events=events)
    model = SparkModel.of(Volumes(known, known.lasts_us()))
    alone = _plan(inputs, independent.propose, "independent", events)
    yield "stock", model.ms(model.spark.stock(alone.nodes) or {}), run_stock(inputs)
    planners: dict[str, Planner] = {
        "without": factor.propose_without_factors,
        "with": factor.propose,
    }
    for name, propose in planners.items():
        plan = _plan(inputs, propose, name, events)
        yield name, plan.cost, run_plan(plan, inputs)


@cache
def _runs(quick: bool) -> Runs:
    """Run every set of windows under every plan; the first answer is stock Spark's."""
    timed: list[Timed] = []
    wrong: list[str] = []
    events = _QUICK_EVENTS if quick else _EVENTS
    for label in _QUICK if quick else SYNTHETIC:
        for seed in range(1 if quick else _SETS):
            inputs = _inputs(Setup.of(label), seed, events)
            expected = None
            for name, cost, runner in _contenders(inputs, events):
                seconds, answer = _least(runner, 1 if quick else _ROUNDS)
                expected = expected or answer
                timed.append(Timed(label, seed, name, cost, seconds))
                if difference := same_answers(expected, answer):
                    wrong.append(f"{label}, set {seed}, {name}: {difference}")
    return Runs(tuple(timed), tuple(wrong))


def _least(runner: Runner, rounds: int) -> tuple[float, Answer]:
    """Return the shortest time of some runs, and the last answer."""
    least, answer = float("inf"), {}
    for _ in range(rounds):
        start = perf_counter()
        answer = runner()
        least = min(least, perf_counter() - start)
    return least, answer


def _boosts(timed: Sequence[Timed], label: str, plan: str) -> list[float]:
    of = {(t.seed, t.plan): t.seconds for t in timed if t.setup == label}
    return [of[seed, "stock"] / of[seed, plan] for seed, name in of if name == plan]


def _boost_row(timed: Sequence[Timed], label: str) -> Row:
    paper, real = SYNTHETIC[label], REAL.get(label)
    without, with_factors = (_boosts(timed, label, plan) for plan in ("without", "with"))
    return {
        "setup": label,
        "without": fmean(without),
        "without max": max(without),
        "paper: without": f"{paper.without_mean} {paper.without_max}",
        "with": fmean(with_factors),
        "with max": max(with_factors),
        "paper: with": f"{paper.with_mean} {paper.with_max}",
        "paper: real": f"{real.with_mean} {real.with_max}" if real else None,
    }


def _boost_sheet(quick: bool) -> Sheet:
    runs = _runs(quick)
    labels = dict.fromkeys(t.setup for t in runs.timed)
    rows = tuple(_boost_row(runs.timed, label) for label in labels)
    events, sets = (_QUICK_EVENTS, 1) if quick else (_EVENTS, _SETS)
    note = f"{sets} sets of windows per line, {events:,} events; mean and greatest boost over stock"
    return Sheet(rows, runs.wrong, notes=(note,))


def _order_sheet(quick: bool) -> Sheet:
    runs = _runs(quick)
    kinds = {"all": runs.timed} | {
        kind: tuple(t for t in runs.timed if t.setup.endswith(kind))
        for kind in ("tumbling", "hopping")
    }
    return Sheet(tuple(_order_row(kind, timed) for kind, timed in kinds.items()), runs.wrong)


def _order_row(kind: str, timed: Sequence[Timed]) -> Row:
    from scipy.stats import spearmanr

    order = spearmanr([t.cost for t in timed], [t.seconds for t in timed])
    return {"plans of": kind, "plans": len(timed), "rank correlation": float(order.statistic)}


BOOSTS = Table(
    name="spark-plans/factor_boost",
    question="How much faster than stock Spark are factor windows, on random sets of windows?",
    columns=(
        Column("setup"),
        Column("without", ".2f"),
        Column("without max", ".2f"),
        Column("paper: without", published=True),
        Column("with", ".2f"),
        Column("with max", ".2f"),
        Column("paper: with", published=True),
        Column("paper: real", published=True),
    ),
    compute=_boost_sheet,
    limits=(Limit("with", at_least=1, at_quick=False),),
    needs=("pyspark",),
)

ORDER = Table(
    name="spark-plans/cost_order",
    question="Does the cost model put these plans in the order of their times?",
    columns=(Column("plans of"), Column("plans"), Column("rank correlation", ".3f")),
    compute=_order_sheet,
    limits=(Limit("rank correlation", at_least=0.8, rows={"plans of": "all"}, at_quick=False),),
    needs=("pyspark", "scipy"),
)

ENTRIES: tuple[Entry, ...] = (BOOSTS, ORDER)
