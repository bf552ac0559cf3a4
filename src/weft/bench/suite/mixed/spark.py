"""Filters and key sets in Spark batch, against stock statements and against queries apart."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, get_args

import pyarrow as pa

from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.mixed.inputs import clicks, plan_together, plans_apart
from weft.bench.suite.mixed.levels import by_level, known, readings
from weft.bench.suite.mixed.races import Races
from weft.bench.suite.spark.runs import Inputs, run_plan, run_stock, same_answers, stored
from weft.planners.lattice import KeySets
from weft.planners.portfolio import optimize
from weft.query import Workload
from weft.window import hopping, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from weft.bench.frame import Runner

_NEEDS = ("pyspark",)
_WARM_UP_EVENTS = 200_000
_LASTS_US = 86_400_000_000
_TIMES = pa.timestamp("us", "UTC")
# Overlapping as much as these do, windows are put together by kernels.
_OFTEN = {
    "1m": tumbling("1 minute"),
    "1h": hopping("1 hour", "1 minute"),
    "6h": hopping("6 hours", "1 minute"),
}


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


@cache
def _readings(events: int) -> DataFrame:
    table = readings(events, _LASTS_US)
    timed = table.set_column(table.schema.get_field_index("ts"), "ts", table["ts"].cast(_TIMES))
    return stored(timed, f"levels-{events}")


def _levels(events: int) -> Inputs:
    if events > _WARM_UP_EVENTS:
        some = Inputs(_readings(_WARM_UP_EVENTS), by_level(_OFTEN))
        for key_sets in get_args(KeySets):
            _start_levels(key_sets)(some)()
    return Inputs(_readings(events), by_level(_OFTEN))


def _start_levels(key_sets: KeySets | None) -> Callable[[Inputs], Runner]:
    def start(inputs: Inputs) -> Runner:
        statistics = known(inputs.events.count(), _LASTS_US)
        plan = optimize(inputs.workload, statistics=statistics, key_sets=key_sets)
        return run_plan(plan, inputs)

    return start


_KEY_SETS = Race(
    name="spark-batch/key_sets",
    question="What do four key sets cost on Spark, when slices of the finest serve all?",
    inputs=_levels,
    expected=None,
    contenders={
        "apart": Contender(_start_levels("apart"), _NEEDS),
        "weft": Contender(_start_levels(None), _NEEDS),
    },
    baseline="apart",
    full=(Case("20,000,000 events", {"events": 20_000_000}, 20_000_000),),
    quick=(Case("50,000 events", {"events": 50_000}, 50_000),),
    bars=(Bar("weft", "apart", 1.3),),
    same=same_answers,
    rounds=5,
    item="event",
)
ENTRIES: tuple[Entry, ...] = (
    _RACES.mixed_24("stock", _CONTENDERS, 5.0),
    *_RACES.no_worse(),
    _KEY_SETS,
)
