"""All plans of random workloads: what calibration and the measure of regret time.

Probes come again in the same form, and find code that is compiled already. Plans of random
workloads do not, so prices that are fitted to both tell what people will see.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from weft.calibration.batch import on_engine, probe_of
from weft.errors import UnsupportedError
from weft.generate.random_workloads import drawn
from weft.plan.body import STOCK, STRATEGIES
from weft.planners.portfolio import PLANNERS, optimize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from weft.calibration.clocks import Clock
    from weft.calibration.fit import Probe
    from weft.plan import Plan
    from weft.query import Workload
    from weft.statistics import Statistics

# Plans that are expected to take so much longer than the best are not waited for.
HOPELESS = 8.0
# `weft bench regret` judges prices by workloads with small seeds: none of these.
_FIRST_SEED = 1_000


def plans_of(
    workload: Workload, engine: str, known: Statistics, micro_batch_us: int | None = None
) -> Iterator[tuple[str, Plan]]:
    """Plan with every planner and strategy; plans that are alike are given once."""
    seen: set[object] = set()
    for planner in PLANNERS:
        for strategy in STRATEGIES if engine == "spark" else (None,):
            try:
                plan = planned(workload, planner, engine, known, micro_batch_us, strategy)
            except UnsupportedError:
                continue  # native states do not hold every plan
            if identity(plan) not in seen:
                seen.add(identity(plan))
                yield " ".join(filter(None, (planner, strategy))), plan


def hopeful(plans: Iterable[tuple[str, Plan]]) -> list[tuple[str, Plan]]:
    """Leave out plans that are expected to take many times as long as the best."""
    every = list(plans)
    least = min(plan.cost for _, plan in every)
    return [(label, plan) for label, plan in every if plan.cost <= HOPELESS * least]


def seeds(workloads: int) -> range:
    """Return the seeds of random workloads that calibration runs."""
    return range(_FIRST_SEED, _FIRST_SEED + workloads)


def planned(
    workload: Workload,
    planner: str,
    engine: str,
    known: Statistics,
    micro_batch_us: int | None = None,
    strategy: str | None = None,
) -> Plan:
    """Plan as told."""
    return optimize(workload, planner, engine, known, strategy=strategy, micro_batch=micro_batch_us)


def identity(plan: Plan) -> object:
    """What makes two plans run alike."""
    return plan.fingerprint, *((c.strategy, c.ships) for c in plan.strategies)


def workload_probes(
    engine: str, workloads: int, events: int, progress: Callable[[str], None], clock: Clock
) -> Iterator[Probe]:
    """Time every plan of random workloads over a tenth to twice so many events."""
    bounds = (max(events // 10, 1), events * 2)
    with TemporaryDirectory(prefix="weft-calibrate-") as folder:
        for seed in seeds(workloads):
            one = drawn(seed, bounds)
            frame = on_engine(engine, one.table(), Path(folder, str(seed)), adaptive=True)
            known = replace(one.statistics, adaptive=engine == "spark")
            timed = hopeful(plans_of(one.workload(), engine, known))
            # What Spark does without weft is a candidate of every plan.
            best = min((plan for _, plan in timed), key=lambda plan: plan.cost)
            stock = (c.cost for c in best.candidates if c.planner == STOCK)
            timed += [(STOCK, best) for cost in stock if cost <= HOPELESS * best.cost]
            for label, plan in timed:
                progress(f"{label} of random workload {seed}, {one.events:,} events")
                yield probe_of(f"{label} {seed}", plan, frame, known, label, clock)
