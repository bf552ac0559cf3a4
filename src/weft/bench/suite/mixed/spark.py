"""Filters and key sets in Spark batch, against stock statements and against queries apart."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.mixed.inputs import (
    EVENTS,
    QUICK_EVENTS,
    clicks,
    disjoint,
    mixed_24,
    one_query,
    plan_together,
    plans_apart,
    rare,
)
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


def _race(name: str, question: str, workload: Callable[[], Workload], **settings: Any) -> Race:
    return Race(
        name=f"spark-batch/{name}",
        question=question,
        inputs=_inputs(workload),
        expected=None,
        full=(Case(f"{EVENTS:,} events", {"events": EVENTS}, EVENTS),),
        quick=(Case(f"{QUICK_EVENTS:,} events", {"events": QUICK_EVENTS}, QUICK_EVENTS),),
        same=same_answers,
        item="event",
        **settings,
    )


_APART, _WEFT = Contender(_start_apart, _NEEDS), Contender(_start_together, _NEEDS)


def _no_worse(name: str, question: str, workload: Callable[[], Workload]) -> Race:
    return _race(
        name,
        question,
        workload,
        contenders={"apart": _APART, "weft": _WEFT},
        baseline="apart",
        bars=(Bar("weft", "apart", 0.95),),
        rounds=5,
    )


ENTRIES: tuple[Entry, ...] = (
    _race(
        "mixed_24",
        "What do 24 queries of four key sets, three filters and two windows cost together?",
        mixed_24,
        contenders={
            "stock": Contender(run_stock, _NEEDS, runs=1),
            "apart": Contender(_start_apart, _NEEDS, runs=2),
            "weft": _WEFT,
        },
        baseline="stock",
        bars=(Bar("weft", "stock", 5.0), Bar("weft", "apart", 2.0)),
        rounds=3,
    ),
    _no_worse("rare_filter", "Does a filter that keeps one event in 2,000 lose by others?", rare),
    _no_worse("disjoint_filters", "Do filters without an event in common lose?", disjoint),
    _no_worse("one_filter", "Does a query by itself lose anything?", one_query),
)
