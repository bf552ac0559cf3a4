"""All plans of a workload, timed: what each was expected to take, and what it took."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.bench.suite.regret.draws import mistaken
from weft.calibration.batch import PARTS, timed
from weft.errors import UnsupportedError
from weft.plan.body import STOCK, STRATEGIES
from weft.planners.portfolio import PLANNERS, optimize
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weft.bench.suite.regret.draws import Drawn
    from weft.plan import Plan

TRUE, NONE, WRONG = "true", "none", "wrong"
# How often every plan is timed, in turns: plans take about the same, and differ by less than what
# the machine does beside them. On Spark, where a run takes seconds, fewer must do.
_ROUNDS, _SPARK_ROUNDS = 5, 2
# Plans that are expected to take so much longer than the best are not waited for.
_HOPELESS = 8.0


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


def plans_of(
    drawn: Drawn, engine: str, known: Statistics, micro_batch_us: int | None
) -> Iterator[tuple[str, Plan]]:
    """Plan with every planner and strategy; plans that are alike are given once."""
    seen: set[object] = set()
    for planner in PLANNERS:
        for strategy in STRATEGIES if engine == "spark" else (None,):
            try:
                plan = _planned(drawn, planner, engine, known, micro_batch_us, strategy)
            except UnsupportedError:
                continue  # native states do not hold every plan
            if identity(plan) not in seen:
                seen.add(identity(plan))
                yield " ".join(filter(None, (planner, strategy))), plan


def _planned(
    drawn: Drawn,
    planner: str,
    engine: str,
    known: Statistics,
    micro_batch_us: int | None,
    strategy: str | None = None,
) -> Plan:
    return optimize(
        drawn.workload(), planner, engine, known, strategy=strategy, micro_batch=micro_batch_us
    )


def identity(plan: Plan) -> object:
    """What makes two plans run alike."""
    return plan.fingerprint, *((c.strategy, c.ships) for c in plan.strategies)


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
    plans = sorted(plans_of(drawn, engine, truth, micro_batch_us), key=lambda p: p[1].cost)
    told = {TRUE: truth, NONE: facts(Statistics()), WRONG: mistaken(truth, drawn.seed)}
    picked = {
        known: _planned(drawn, "auto", engine, statistics, micro_batch_us)
        for known, statistics in told.items()
    }
    every = {identity(plan): ("auto", plan) for plan in picked.values()}
    hopeful = {
        identity(plan): (label, plan)
        for label, plan in plans
        if plan.cost <= _HOPELESS * plans[0][1].cost
    }
    every |= hopeful
    took: dict[object, float] = dict.fromkeys(every, inf)
    # The first run of a workload pays for code that nobody ran before: it is no plan's time.
    label, first = next(iter(every.values()))
    run_ms(first, label)
    for _ in range(rounds):
        for who, (label, plan) in every.items():
            took[who] = min(took[who], run_ms(plan, label))
    found = tuple(Timed(label, plan.cost, took[who]) for who, (label, plan) in hopeful.items())
    picked_ms = {known: took[identity(plan)] for known, plan in picked.items()}
    stock = next((c for c in plans[0][1].candidates if c.planner == STOCK), None)
    stock_ms = None
    if stock is not None and stock.cost <= _HOPELESS * plans[0][1].cost:
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
    from weft.engines.spark.session import local_session
    from weft.tables import write_table

    session = local_session()
    session.conf.set("spark.sql.adaptive.enabled", "true")
    session.conf.set("spark.sql.shuffle.partitions", "8")
    table = drawn.table()
    length = table.num_rows // PARTS + 1
    with TemporaryDirectory(prefix="weft-regret-") as folder:
        for part in range(PARTS):
            write_table(table.slice(part * length, length), Path(folder, f"{part}.parquet"))
        frame = session.read.parquet(folder)

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
