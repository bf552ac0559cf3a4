"""Filters and key sets in Spark batch, against stock statements and against queries apart."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from weft.bench.frame import Contender, Entry
from weft.bench.suite.mixed.inputs import clicks, plan_together, plans_apart
from weft.bench.suite.mixed.races import Races
from weft.bench.suite.spark.runs import Inputs, run_plan, run_stock, same_answers, stored
from weft.query import Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from weft.bench.frame import Runner

_NEEDS = ("pyspark",)
_WARM_UP_EVENTS = 200_000


@cache
def _stored(events: int) -> DataFrame:
    return stored(clicks(events), f"clicks-{events}")


def _inputs(workload: Callable[[], Workload]) -> Callable[..., Inputs]:
    def inputs(events: int) -> Inputs:
        asked = workload()
        if events > _WARM_UP_EVENTS:
            # What runs first pays for classes that Java loads and code that it compiles.
            some = Inputs(_stored(_WARM_UP_EVENTS), Workload(list(asked)[:4]))
            for start in (run_stock, _start_together):
                start(some)()
        return Inputs(_stored(events), asked)

    return inputs


def _start_together(inputs: Inputs) -> Runner:
    plan = plan_together(inputs.workload, inputs.events.count(), "spark")
    return run_plan(plan, inputs)


def _start_apart(inputs: Inputs) -> Runner:
    plans = plans_apart(inputs.workload, inputs.events.count(), "spark")
    runners = [run_plan(plan, Inputs(inputs.events, Workload(plan.queries))) for plan in plans]
    return lambda: {name: seen for runner in runners for name, seen in runner().items()}


_RACES = Races(
    "spark-batch",
    _inputs,
    same_answers,
    Contender(_start_apart, _NEEDS),
    Contender(_start_together, _NEEDS),
)
_CONTENDERS = {
    "stock": Contender(run_stock, _NEEDS, runs=1),
    "apart": Contender(_start_apart, _NEEDS, runs=2),
    "weft": _RACES.together,
}
ENTRIES: tuple[Entry, ...] = (_RACES.mixed_24("stock", _CONTENDERS, 5.0), *_RACES.no_worse())
