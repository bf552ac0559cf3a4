"""WeaveShare and TriWeave: the five plan experiments of Shein & Chrysanthis, and planning time.

Plan costs are operations per second of their cost model, as published ("paper" mode), averaged
over seeds; windows are drawn by `weft.generate.workloads`.
"""

from __future__ import annotations

from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.bench.frame import Cell, Column, Entry, Limit, Panel, Row, Sheet, Table
from weft.cost.edges.divisors import divisors as divisors_of
from weft.cost.edges.rates import edge_rate
from weft.generate.workloads import SECOND_US, WeaveSetting, weave_experiment
from weft.planners.weave.search import weave

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from weft.planners.weave.search import WeavePlan
    from weft.window import PeriodicWindow

    Int64s = npt.NDArray[np.int64]

_SEEDS = 10
# Mean trees over all published runs; SlickDeque has one figure for both of its forms.
_PUBLISHED_TREES = {
    "naive": 16.0,
    "flat_fat": 15.7,
    "flat_fit": 10.3,
    "slick_deque_inv": 4.8,
    "slick_deque": 4.8,
}
TECHNIQUES = tuple(_PUBLISHED_TREES)
_KINDS = ("weave", "triweave")


class Experiment(NamedTuple):
    """What one experiment varies, and the greatest gain over naive plans that it published."""

    number: int
    varied: str
    words: str
    published_gain: float
    log_x: bool = True


_EXPERIMENTS = (
    Experiment(1, "queries", "the number of queries", 5_000),
    Experiment(2, "slide_max", "the largest slide", 4_300),
    Experiment(3, "overlap_max", "the overlap of windows", 270_000),
    Experiment(4, "rate", "the input rate", 3_000),
    Experiment(5, "skew", "the skew of slides", 4_200, log_x=False),
)
_GAIN = "naive / this"
_BEST = "best"
# Published gains are greatest ones, read off one draw of windows; the law of the skew is not told.
# Half of one is the least that still counts as the same effect.
_OF_PUBLISHED_GAIN = 0.5


def _in_seconds(windows: Sequence[PeriodicWindow]) -> Int64s:
    """Turn windows into rows of range and slide, in the unit of the published rates."""
    rows = np.array([(w.range_us, w.slide_us) for w in windows], np.int64)
    return rows // SECOND_US


def plan_is_sound(plan: WeavePlan, queries: int, overhead: float, constant: float) -> str:
    """Check that each query is in one tree and that the cost is what the trees add up to."""
    placed = sorted(row for tree in plan.trees for row in tree)
    if placed != list(range(queries)):
        return "a query is not in exactly one tree"
    by_tree = zip(plan.edge_rates, plan.omegas, strict=True)
    total = constant + sum(overhead + edges * omega for edges, omega in by_tree)
    if abs(total - plan.cost) > 1e-9 * plan.cost:
        return f"trees cost {total}, the plan says {plan.cost}"
    if plan.cost > min(plan.cost_unshared, plan.cost_one_tree) * (1 + 1e-12):
        return f"cost {plan.cost} is above {plan.cost_unshared} unshared or one tree"
    return ""


def _planned(
    windows: Int64s, rate: float, technique: str, kind: Any, wrong: list[str]
) -> WeavePlan:
    plan = weave(windows, rate, technique, "paper", kind)
    overhead, constant = rate, 0.0
    if kind == "triweave":
        # Ranges are multiples of slides here, so that slides alone make the edges.
        slides = sorted({int(slide) for slide in windows[:, 1]})
        overhead, constant = edge_rate((0, slide) for slide in slides), rate
    if difference := plan_is_sound(plan, len(windows), overhead, constant):
        wrong.append(f"{kind} {technique}, {len(windows)} queries: {difference}")
    return plan


def _means(setting: WeaveSetting, technique: str, seeds: int, wrong: list[str]) -> dict[str, float]:
    """Average the costs of both optimizers and the trees of the first over the seeds."""
    plans = {
        kind: [
            _planned(_in_seconds(setting.windows(seed)), setting.rate, technique, kind, wrong)
            for seed in range(seeds)
        ]
        for kind in _KINDS
    }
    return {
        "weave": fmean(plan.cost for plan in plans["weave"]),
        "triweave": fmean(plan.cost for plan in plans["triweave"]),
        "trees": fmean(len(plan.trees) for plan in plans["weave"]),
    }


def _run_experiment(experiment: Experiment, quick: bool) -> Sheet:
    settings, seeds = weave_experiment(experiment.number), _SEEDS
    if quick:
        settings, seeds = settings[:3], 2
    rows: list[Row] = []
    wrong: list[str] = []
    gains: list[float] = []
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {kind: {} for kind in _KINDS}
    for setting in settings:
        x = getattr(setting, experiment.varied)
        naive = 0.0
        for technique in TECHNIQUES:
            means = _means(setting, technique, seeds, wrong)
            naive = naive or means["weave"]
            gains.append(naive / means["weave"])
            rows.append(
                {
                    experiment.varied: x,
                    "technique": technique,
                    **means,
                    "paper: trees": _PUBLISHED_TREES[technique],
                    _GAIN: gains[-1],
                }
            )
            for kind in _KINDS:
                lines[kind].setdefault(technique, []).append((float(x), means[kind]))
    rows.append(
        {experiment.varied: _BEST, _GAIN: max(gains), "paper: gain": experiment.published_gain}
    )
    return Sheet(tuple(rows), tuple(wrong), _panels(experiment, lines))


def _panels(
    experiment: Experiment, lines: dict[str, dict[str, list[tuple[float, float]]]]
) -> tuple[Panel, ...]:
    titles = {"weave": "WeaveShare", "triweave": "TriWeave"}
    return tuple(
        Panel(
            titles[kind],
            experiment.words,
            "plan cost, operations per second",
            {
                technique: (tuple(x for x, _ in points), tuple(y for _, y in points))
                for technique, points in by_technique.items()
            },
            log_x=experiment.log_x,
            log_y=True,
        )
        for kind, by_technique in lines.items()
    )


def _tree_counts(quick: bool) -> Sheet:
    numbers, seeds = ((4,), 2) if quick else ((1, 2, 3, 4, 5), _SEEDS)
    settings = [setting for number in numbers for setting in weave_experiment(number)]
    rows: list[Row] = []
    wrong: list[str] = []
    for technique, published in _PUBLISHED_TREES.items():
        rows.append(
            {
                "technique": technique,
                "middle": _mean_trees([WeaveSetting()], technique, seeds, wrong),
                "all runs": _mean_trees(settings, technique, seeds, wrong),
                "paper: all runs": published,
            }
        )
    return Sheet(tuple(rows), tuple(wrong))


def _mean_trees(
    settings: Sequence[WeaveSetting], technique: str, seeds: int, wrong: list[str]
) -> float:
    return fmean(
        len(
            _planned(
                _in_seconds(setting.windows(seed)), setting.rate, technique, "weave", wrong
            ).trees
        )
        for setting in settings
        for seed in range(seeds)
    )


TREES = Table(
    name="planners/weave_trees",
    question="Does a better technique let more queries share a tree?",
    columns=(
        Column("technique"),
        Column("middle", ".1f"),
        Column("all runs", ".1f"),
        Column("paper: all runs", ".1f", published=True),
    ),
    compute=_tree_counts,
)


def _experiment_table(experiment: Experiment) -> Table:
    return Table(
        name=f"planners/weave_experiment_{experiment.number}",
        question=f"How does plan cost change with {experiment.words}, technique by technique?",
        columns=(
            Column(experiment.varied, ",.7g"),
            Column("technique"),
            Column("weave", ",.1f"),
            Column("triweave", ",.1f"),
            Column("trees", ".1f"),
            Column("paper: trees", ".1f", published=True),
            Column(_GAIN, ",.0f"),
            Column("paper: gain", ",.0f", published=True),
        ),
        compute=lambda quick: _run_experiment(experiment, quick),
        limits=(
            Limit(
                _GAIN,
                at_least=_OF_PUBLISHED_GAIN * experiment.published_gain,
                rows={experiment.varied: _BEST},
                at_quick=False,
            ),
        ),
    )


class Workload(NamedTuple):
    """A set of windows to be planned within some seconds."""

    label: str
    queries: int
    seconds: float
    divisors: bool


_DIVIDING = "slides dividing 720,720"
_WORKLOADS = (
    Workload(f"10,000, {_DIVIDING}", 10_000, 2.0, True),
    Workload("10,000, slides 20 to 1000", 10_000, 15.0, False),
    Workload(f"1,000,000, {_DIVIDING}", 1_000_000, 60.0, True),
)
_QUICK_WORKLOADS = (
    Workload(f"1,000, {_DIVIDING}", 1_000, 2.0, True),
    Workload("200, slides 20 to 1000", 200, 15.0, False),
)


def many_windows(queries: int, *, divisors: bool) -> Int64s:
    """Draw rows of range and slide: slides divide 720,720, or are anything from 20 to 1000."""
    rng = np.random.default_rng(41)
    if divisors:
        slides = rng.choice(np.array(divisors_of(720_720), np.int64), queries)
    else:
        slides = rng.integers(20, 1001, queries)
    return np.stack([slides * rng.integers(1, 101, queries), slides], axis=1)


def _scale(quick: bool) -> Sheet:
    rows: list[Row] = []
    wrong: list[str] = []
    for workload in _QUICK_WORKLOADS if quick else _WORKLOADS:
        windows = many_windows(workload.queries, divisors=workload.divisors)
        for technique in TECHNIQUES:
            start = perf_counter()
            plan = weave(windows, 1.0, technique, "paper", "weave")
            seconds = perf_counter() - start
            if difference := plan_is_sound(plan, len(windows), 1.0, 0.0):
                wrong.append(f"{workload.label}, {technique}: {difference}")
            row: dict[str, Cell] = {"queries": workload.label, "technique": technique}
            row |= {"seconds": seconds, "bar": workload.seconds, "trees": len(plan.trees)}
            row |= {"cost": plan.cost, "unshared": plan.cost_unshared}
            rows.append(row | {"one tree": plan.cost_one_tree})
    return Sheet(tuple(rows), tuple(wrong))


SCALE = Table(
    name="planners/weave_scale",
    question="Can a million queries be planned in a minute?",
    columns=(
        Column("queries"),
        Column("technique"),
        Column("seconds", ".3g"),
        Column("bar", "g"),
        Column("trees", "d"),
        Column("cost", ",.0f"),
        Column("unshared", ",.0f"),
        Column("one tree", ",.0f"),
    ),
    compute=_scale,
    limits=tuple(
        Limit("seconds", at_most=w.seconds, rows={"queries": w.label}, at_quick=False)
        for w in _WORKLOADS
    ),
)

ENTRIES: tuple[Entry, ...] = (*map(_experiment_table, _EXPERIMENTS), TREES, SCALE)
