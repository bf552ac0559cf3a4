"""Figures 6 to 10 of Tran & Lee: four or eight placements, the model beside the measurement.

"Transformation of Continuous Aggregation Join Queries over Data Streams". One parameter of the
first input varies at a time: its window, its groups, its rate, and the join values of all inputs.
Figure 10 has one showcase for each placement; the settings of (a) and (b) are ours, chosen as the
text says (many groups on both inputs, on the second alone), because the copies of the paper that
are to be had lack them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weft.bench.frame import Column, Limit, Row, Sheet, Table
from weft.cost.joins.tuples import (
    ExpectedEstimates,
    SideLoad,
    TupleCost,
    local_prices,
    placement_name,
    placements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from weft.cost.joins.tuples import Method

Loads = tuple[SideLoad, ...]
TWO: Loads = (SideLoad(300, 5000, 150, 10), SideLoad(300, 5000, 1, 10))
_THREE: Loads = (SideLoad(200, 300, 20, 10), SideLoad(200, 300, 1, 10), SideLoad(200, 300, 1, 10))
_RATE_OF_OTHERS = 500.0  # where the rate of the first input varies
_FIGURES: dict[str, tuple[Loads, Method, int]] = {
    "6, two-way hash": (TWO, "hash", 10_000),
    "7, two-way nested loop": (TWO, "nested loop", 2_000),
    "8, three-way hash": (_THREE, "hash", 3_000),
    "9, three-way nested loop": (_THREE, "nested loop", 1_500),
}
_VARIED: dict[str, tuple[float, ...]] = {
    "window_tuples": (1000, 2000, 3000, 4000, 5000),
    "groups": (3, 27, 243, 2187, 19683),
    "rate": (100, 300, 500, 700, 900),
    "join_values": (2000, 200, 20, 2),
}
_SHOWCASES: dict[str, Loads] = {
    "10a, LAP": (SideLoad(300, 500, 1500, 100), SideLoad(500, 500, 1500, 100)),
    "10b, EAP10": (SideLoad(300, 500, 1, 100), SideLoad(500, 500, 1500, 100)),
    "10c, EAP01": (SideLoad(300, 500, 1500, 100), SideLoad(500, 500, 1, 100)),
    "10d, EAP11": (SideLoad(300, 2000, 150, 10), SideLoad(500, 2000, 150, 10)),
}
_SHOWN_RATES = (100, 300, 500)
_FEW = 120  # tuples that are timed where every one has thousands of matches
_MOST_STRETCHES = 60
_BUDGET = 2.0  # seconds of one point, after which no more stretches are timed
_TIED = 1.1  # plans whose times differ by less are told apart by the clock's noise alone


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of a figure."""

    figure: str
    varied: str
    value: float
    loads: Loads
    method: Method
    tuples: int  # that are timed


def settings(quick: bool) -> Iterator[Setting]:
    """List the points of all figures; the quick ones are the first of each curve."""
    for figure, (loads, method, tuples) in _FIGURES.items():
        if quick and method != "hash":
            continue
        for name, values in _VARIED.items():
            for value in values[:1] if quick else _within(name, values, loads):
                changed = _changed(loads, name, value)
                dense = name == "join_values" and value < 10
                yield Setting(figure, name, value, changed, method, _FEW if dense else tuples)
    for figure, loads in () if quick else _SHOWCASES.items():
        for rate in _SHOWN_RATES:
            changed = (replace(loads[0], rate=rate), loads[1])
            yield Setting(figure, "rate", rate, changed, "nested loop", 4_000)


def _within(name: str, values: tuple[float, ...], loads: Loads) -> tuple[float, ...]:
    """Three inputs have windows of hundreds, as published: 100, 200, 300."""
    if name == "window_tuples" and len(loads) > 2:
        return tuple(v / 10 for v in values if v / 10 <= loads[0].window_tuples)
    return values


def _changed(loads: Loads, name: str, value: float) -> Loads:
    first, *others = loads
    if name == "join_values":
        return tuple(replace(load, join_values=value) for load in loads)
    if name == "rate" and len(loads) == 2:
        others = [replace(load, rate=_RATE_OF_OTHERS) for load in others]
    return (replace(first, **{name: value}), *others)


def measured(setting: Setting, quick: bool) -> tuple[dict[str, float], str]:
    """Time every placement at a point; return seconds, and what is wrong if any."""
    from weft.bench.suite.joins.race import raced

    most, budget = (1, 0.0) if quick else (_MOST_STRETCHES, _BUDGET)
    seconds, agree = raced(setting.loads, setting.method, setting.tuples, most, budget)
    fault = f"figure {setting.figure}, {setting.varied} {setting.value:g}: answers differ"
    return seconds, "" if agree else fault


def modelled(setting: Setting) -> str:
    """Name the placement that the model takes for the fastest."""
    prices = local_prices(len(setting.loads))
    model = TupleCost(ExpectedEstimates(setting.loads), prices, setting.method)
    return placement_name(min(placements(len(setting.loads)), key=model.cost))


def compared(setting: Setting, seconds: Mapping[str, float]) -> Row:
    """Put the model's plan beside the fastest one."""
    chosen, fastest = modelled(setting), min(seconds, key=lambda plan: seconds[plan])
    return {
        "figure": setting.figure,
        "varied": setting.varied,
        "value": setting.value,
        "late, ms": seconds["LAP"] * 1e3,
        "model's plan, ms": seconds[chosen] * 1e3,
        "fastest, ms": seconds[fastest] * 1e3,
        "model": chosen,
        "measured": fastest,
        "same": float(chosen == fastest),
        "same or tied": float(seconds[chosen] <= seconds[fastest] * _TIED),
    }


def _figures(quick: bool) -> Sheet:
    rows: list[Row] = []
    wrong: list[str] = []
    for setting in settings(quick):
        seconds, fault = measured(setting, quick)
        rows.append(compared(setting, seconds))
        wrong += [fault] if fault else []
    shares = {
        name: sum(float(str(row[name])) for row in rows) / len(rows)
        for name in ("same", "same or tied")
    }
    rows.append({"figure": "all", "varied": "share of points", **shares})
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
        Column("same", ".2f"),
        Column("same or tied", ".2f"),
    ),
    compute=_figures,
    limits=(Limit("same", at_least=0.9, rows={"figure": "all"}, at_quick=False),),
)
