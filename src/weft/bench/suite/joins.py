"""Joins: placements of early aggregation, the model beside the measurement, and Spark.

The settings are those of Tran & Lee, "Transformation of Continuous Aggregation Join Queries over
Data Streams", Figures 6 to 10: windows, groups, rates and join values of the first input vary.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft.bench.frame import Column, Entry, Limit, Row, Sheet, Table
from weft.bench.suite.joins_spark import AUCTIONS
from weft.cost.joins import (
    LOCAL_PRICES,
    ExpectedEstimates,
    SideLoad,
    TupleCost,
    placement_name,
    placements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.cost.joins import Method

_TWO = (SideLoad(300, 5000, 150, 10), SideLoad(300, 5000, 1, 10))
_THREE = (SideLoad(200, 300, 20, 10), SideLoad(200, 300, 1, 10), SideLoad(200, 300, 1, 10))
_FIGURES: dict[str, tuple[tuple[SideLoad, ...], Method, int]] = {
    "6, two-way hash": (_TWO, "hash", 2_000),
    "7, two-way nested loop": (_TWO, "nested loop", 600),
    "8, three-way hash": (_THREE, "hash", 600),
    "9, three-way nested loop": (_THREE, "nested loop", 300),
}
_VARIED: dict[str, tuple[float, ...]] = {
    "window_tuples": (1000, 2000, 3000, 4000, 5000),
    "groups": (3, 27, 243, 2187, 19683),
    "rate": (100, 300, 500, 700, 900),
    "join_values": (2000, 200, 20, 2),
}
_SHOWCASES = {
    "10, many groups": (SideLoad(300, 500, 1500, 100), SideLoad(500, 500, 1, 100)),
    "10, few groups": (SideLoad(300, 2000, 150, 10), SideLoad(500, 2000, 150, 10)),
}
# Two plans whose times differ by less are the same plan to a clock on a shared machine.
_NOISE = 1.1
_LARGE_BATCH = 10_000
_FEW = 60  # tuples that are timed where every one has thousands of matches


def _settings(quick: bool) -> Iterator[tuple[str, str, float, tuple[SideLoad, ...], Method, int]]:
    for figure, (loads, method, tuples) in _FIGURES.items():
        if quick and method != "hash":
            continue
        for name, values in _VARIED.items():
            for value in values[:1] if quick else values:
                # Three inputs have windows of hundreds, as published: 100, 200, 300.
                scaled = value / 10 if name == "window_tuples" and len(loads) > 2 else value
                if name == "window_tuples" and len(loads) > 2 and scaled > loads[0].window_tuples:
                    continue
                changed = [replace(load) for load in loads]
                if name == "join_values":
                    changed = [replace(load, join_values=value) for load in loads]
                else:
                    changed[0] = replace(loads[0], **{name: scaled})
                dense = name == "join_values" and value < 10
                yield figure, name, scaled, tuple(changed), method, _FEW if dense else tuples
    for figure, loads in () if quick else _SHOWCASES.items():
        yield figure, "rate", loads[0].rate, loads, "nested loop", 600


def _figures(quick: bool) -> Sheet:
    from weft.bench.suite.joins_runs import streams_of, timed_join

    rows: list[Row] = []
    wrong: list[str] = []
    for figure, name, value, loads, method, tuples in _settings(quick):
        streams = streams_of(loads, tuples)
        seconds: dict[str, float] = {}
        answers: dict[str, Any] = {}
        for early in placements(len(loads)):
            plan = placement_name(early)
            rounds = 1 if quick else 3
            seconds[plan], answers[plan], _ = timed_join(streams, early, method, rounds)
        if any(answer != answers["LAP"] for answer in answers.values()):
            wrong.append(f"figure {figure}, {name} {value:g}: the placements differ")
        model = TupleCost(ExpectedEstimates(loads), LOCAL_PRICES, method)
        chosen = placement_name(min(placements(len(loads)), key=model.cost))
        fastest = min(seconds, key=lambda plan: seconds[plan])
        rows.append(
            {
                "figure": figure,
                "varied": name,
                "value": value,
                "late, ms": seconds["LAP"] * 1e3,
                "model's plan, ms": seconds[chosen] * 1e3,
                "fastest, ms": seconds[fastest] * 1e3,
                "model": chosen,
                "measured": fastest,
                "agree": float(seconds[chosen] <= seconds[fastest] * _NOISE),
            }
        )
    share = sum(float(str(row["agree"])) for row in rows) / len(rows)
    rows.append({"figure": "all", "varied": "points that agree", "agree": share})
    return Sheet(tuple(rows), tuple(wrong))


FIGURES = Table(
    name="joins/figures",
    question="Which inputs should be aggregated early, and does the model name the fastest plan?",
    columns=(
        Column("figure"),
        Column("varied"),
        Column("value", ",g"),
        Column("late, ms", ",.1f"),
        Column("model's plan, ms", ",.1f"),
        Column("fastest, ms", ",.1f"),
        Column("model"),
        Column("measured"),
        Column("agree", ".2f"),
    ),
    compute=_figures,
    limits=(Limit("agree", at_least=0.9, rows={"figure": "all"}, at_quick=False),),
)


def _two_way(quick: bool) -> Sheet:
    """Time all placements in turn on one machine state, and keep each one's best round."""
    from weft.bench.suite.joins_runs import streams_of, timed_join

    streams = streams_of(_TWO, 20_000 if quick else 400_000)
    best: dict[str, float] = {}
    answers: dict[str, Any] = {}
    for _ in range(1 if quick else 3):
        for early in placements(2):
            plan = placement_name(early)
            seconds, answers[plan], _ = timed_join(streams, early, "hash", 1, _LARGE_BATCH)
            best[plan] = min(best.get(plan, seconds), seconds)
    rows: tuple[Row, ...] = tuple(
        {
            "plan": plan,
            "tuples a second": streams.timed_tuples / seconds,
            "times late": best["LAP"] / seconds,
        }
        for plan, seconds in best.items()
    )
    wrong = [f"{plan} differs from LAP" for plan in answers if answers[plan] != answers["LAP"]]
    return Sheet(rows, tuple(wrong))


SPEED = Table(
    name="joins/two_way",
    question="How many tuples a second pass a two-way hash join with windows of 5,000?",
    columns=(Column("plan"), Column("tuples a second", ",.0f"), Column("times late", ".2f")),
    compute=_two_way,
    limits=(
        Limit("tuples a second", at_least=1e6, rows={"plan": "EAP11"}, at_quick=False),
        Limit("times late", at_least=3.0, rows={"plan": "EAP11"}, at_quick=False),
    ),
)

ENTRIES: tuple[Entry, ...] = (FIGURES, SPEED, AUCTIONS)
