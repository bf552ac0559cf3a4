"""All plans of a workload, timed: what each was expected to take, and what it took."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.bench.suite.regret.draws import mistaken
from weft.calibration.batch import on_engine, timed
from weft.calibration.random_plans import HOPELESS, hopeful, identity, planned, plans_of
from weft.plan.body import STOCK
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.generate.random_workloads import Drawn
    from weft.plan import Plan

TRUE, NONE, WRONG = "true", "none", "wrong"
# How often every plan is timed, in turns: plans take about the same, and differ by less than what
# the machine does beside them. On Spark, where a run takes seconds, fewer must do.
_ROUNDS, _SPARK_ROUNDS = 5, 2


class Timed(NamedTuple):
    """One plan of a workload: what was expected of it, and what it took."""

    label: str
    expected_ms: float
    ms: float


class Regrets(NamedTuple):
    """A workload under all its plans, and what was picked with which statistics."""

    timed: tuple[Timed, ...]
    picked_ms: dict[str, float]  # by what was known
    stock_ms: float | None

    @property
    def best_ms(self) -> float:
        """The least time of any plan."""
        return min(one.ms for one in self.timed)

    def regret(self, known: str) -> float:
        """How many times longer what was picked took than the best."""
        return self.picked_ms[known] / self.best_ms


def regrets(
    drawn: Drawn,
    engine: str,
    run_ms: Callable[[Plan, str], float],
    facts: Callable[[Statistics], Statistics],
    rounds: int,
    micro_batch_us: int | None = None,
) -> Regrets:
    """Time all plans of a workload, and those that are picked with less knowledge."""
    truth = facts(drawn.statistics)
    plans = sorted(
        plans_of(drawn.workload(), engine, truth, micro_batch_us), key=lambda p: p[1].cost
    )
    told = {TRUE: truth, NONE: facts(Statistics()), WRONG: mistaken(truth, drawn.seed)}
    picked = {
        known: planned(drawn.workload(), "auto", engine, statistics, micro_batch_us)
        for known, statistics in told.items()
    }
    every = {identity(plan): ("auto", plan) for plan in picked.values()}
    waited_for = {identity(plan): (label, plan) for label, plan in hopeful(plans)}
    every |= waited_for
    took: dict[object, float] = dict.fromkeys(every, inf)
    # The first run of a workload pays for code that nobody ran before: it is no plan's time.
    label, first = next(iter(every.values()))
    run_ms(first, label)
    for _ in range(rounds):
        for who, (label, plan) in every.items():
            took[who] = min(took[who], run_ms(plan, label))
    found = tuple(Timed(label, plan.cost, took[who]) for who, (label, plan) in waited_for.items())
    picked_ms = {known: took[identity(plan)] for known, plan in picked.items()}
    stock = next((c for c in plans[0][1].candidates if c.planner == STOCK), None)
    stock_ms = None
    if stock is not None and stock.cost <= HOPELESS * plans[0][1].cost:
        stock_ms = min(run_ms(plans[0][1], STOCK) for _ in range(rounds))
    return Regrets(found, picked_ms, stock_ms)


def on_local(drawn: Drawn) -> Regrets:
    """Run on the local engine."""
    table = drawn.table()

    def run_ms(plan: Plan, label: str) -> float:
        return timed(plan, table, "local", label) * 1e3

    return regrets(drawn, "local", run_ms, lambda known: known, _ROUNDS)


def on_spark(drawn: Drawn) -> Regrets:
    """Run on Spark, in a session as users have it: adaptive, with more partitions than cores."""
    with TemporaryDirectory(prefix="weft-regret-") as folder:
        frame = on_engine("spark", drawn.table(), Path(folder, "events"), adaptive=True)

        def run_ms(plan: Plan, label: str) -> float:
            return timed(plan, frame, "spark", label) * 1e3

        return regrets(drawn, "spark", run_ms, _in_session, _SPARK_ROUNDS)


def _in_session(known: Statistics) -> Statistics:
    return replace(known, adaptive=True)


def on_streams(drawn: Drawn, micro_batches: int) -> Regrets:
    """Play the events back as a stream in some micro-batches."""
    from weft.engines.spark.session import local_session
    from weft.sessions.replay import drained, replayed

    session, table = local_session(), drawn.table()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    batch_us = round(drawn.span_s * 1e6 / micro_batches)

    def run_ms(plan: Plan, label: str) -> float:
        strategy = plan.strategies[0].strategy
        with replayed({"readings": table}, {}, session, micro_batches) as streams:
            took: Any = drained(plan, streams, strategy)
        return float(took) * 1e3 / micro_batches

    return regrets(drawn, "spark", run_ms, lambda known: known, 1, batch_us)
