"""Factor windows: predicted cost reduction beside Tables I to III of Wu et al., "Factor Windows".

The published figures are measured boosts of throughput on an engine (arXiv:2008.12379); ours are
ratios of plan costs as that paper counts them, at one event a second. They answer the same
question, and differ: the cost knows nothing of what an engine spends besides, and the engine saw
more than one event a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from weft.bench.frame import Column, Entry, Limit, Panel, Row, Sheet, Table
from weft.cost.factor_cost import PaperCost
from weft.generate.workloads import random_windows, sequential_windows
from weft.planners.factor.graph import feeds
from weft.planners.factor.search import search_factors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.planners.factor.graph import FactorPlan
    from weft.window import PeriodicWindow

_SETS = 200
_QUICK_SETS = 10
_EVENTS_PER_US = 1e-6


class Boost(NamedTuple):
    """Published boosts of throughput: mean and greatest, without and with factor windows."""

    without_mean: float
    without_max: float
    with_mean: float
    with_max: float


# Tables I (sizes 5 and 10) and III (15 and 20): synthetic events.
SYNTHETIC = {
    "R-5-tumbling": Boost(1.21, 1.92, 1.85, 2.54),
    "R-10-tumbling": Boost(1.34, 1.77, 1.88, 3.38),
    "R-15-tumbling": Boost(1.55, 1.96, 2.97, 4.34),
    "R-20-tumbling": Boost(1.49, 2.29, 2.10, 4.83),
    "R-5-hopping": Boost(1.18, 1.82, 3.26, 4.29),
    "R-10-hopping": Boost(1.34, 1.71, 3.20, 6.15),
    "R-15-hopping": Boost(1.55, 1.95, 4.67, 6.59),
    "R-20-hopping": Boost(1.68, 2.20, 4.23, 7.65),
    "S-5-tumbling": Boost(1.63, 1.67, 4.28, 4.81),
    "S-10-tumbling": Boost(1.98, 2.05, 7.91, 9.38),
    "S-15-tumbling": Boost(2.43, 2.49, 11.29, 13.83),
    "S-20-tumbling": Boost(2.42, 2.53, 14.28, 16.82),
    "S-5-hopping": Boost(1.34, 1.48, 2.17, 2.81),
    "S-10-hopping": Boost(1.58, 1.73, 2.92, 3.79),
    "S-15-hopping": Boost(1.85, 2.09, 3.51, 4.68),
    "S-20-hopping": Boost(1.91, 2.15, 4.02, 5.32),
}
# Table II: real events.
REAL = {
    "R-5-tumbling": Boost(1.19, 1.78, 1.43, 1.91),
    "R-10-tumbling": Boost(1.30, 1.71, 1.53, 2.86),
    "R-5-hopping": Boost(1.09, 1.39, 1.54, 2.63),
    "R-10-hopping": Boost(1.18, 1.39, 1.46, 3.53),
    "S-5-tumbling": Boost(1.63, 1.67, 4.12, 4.85),
    "S-10-tumbling": Boost(1.90, 1.97, 7.53, 9.14),
    "S-5-hopping": Boost(1.12, 1.30, 1.22, 1.77),
    "S-10-hopping": Boost(1.22, 1.51, 1.45, 2.31),
}


@dataclass(frozen=True, slots=True)
class Setup:
    """One line of the tables: a generator, a number of windows, and their kind."""

    generator: str
    size: int
    kind: str

    @classmethod
    def of(cls, label: str) -> Setup:
        """Read a label such as R-5-tumbling."""
        generator, size, kind = label.split("-")
        return cls(generator, int(size), kind)

    @property
    def relation(self) -> Literal["tiled", "covered"]:
        """Tumbling windows are partitioned, hopping ones covered, as in the paper."""
        return "tiled" if self.kind == "tumbling" else "covered"

    def windows(self, seed: int) -> list[PeriodicWindow]:
        """Draw one set of windows."""
        draw = random_windows if self.generator == "R" else sequential_windows
        return draw(self.size, seed, tumbling=self.kind == "tumbling")


class Reduction(NamedTuple):
    """What one set of windows gains: without and with factor windows, and the distance to best."""

    without: float
    with_factors: float
    gap: float
    seconds: float


def plan_is_sound(
    plan: FactorPlan, wanted: Sequence[PeriodicWindow], cost: PaperCost, setup: Setup
) -> str:
    """Check that every window is fed, by one that may, and that the plan costs their sum."""
    may_feed = feeds(setup.relation)
    if absent := [str(w) for w in wanted if w not in plan.feeder]:
        return f"no feeder for {', '.join(absent)}"
    total = 0.0
    for window, feeder in plan.feeder.items():
        if feeder is None:
            total += cost.from_events(window)
        elif feeder not in plan.feeder or not may_feed(feeder, window):
            return f"{feeder} cannot feed {window}"
        else:
            total += cost.from_feeder(window, feeder)
    return "" if isclose(total, plan.cost, rel_tol=1e-9) else f"cost {plan.cost}, not {total}"


def _reduce(setup: Setup, seed: int, wrong: list[str]) -> Reduction:
    wanted = setup.windows(seed)
    cost = PaperCost.of(wanted, _EVENTS_PER_US)
    unshared = sum(map(cost.from_events, wanted))
    start = perf_counter()
    found = search_factors(wanted, cost, setup.relation)
    seconds = perf_counter() - start
    without = search_factors(wanted, cost, setup.relation, effort="none")
    best = found if found.exact else search_factors(wanted, cost, setup.relation, effort="exact")
    differences = (plan_is_sound(plan, wanted, cost, setup) for plan in (found, without, best))
    wrong.extend(f"{setup}, seed {seed}: {text}" for text in differences if text)
    if not best.cost <= found.cost * (1 + 1e-9) <= without.cost * (1 + 2e-9):
        wrong.append(f"{setup}, seed {seed}: {best.cost}, {found.cost}, {without.cost} do not rise")
    gap = 100 * (found.cost / best.cost - 1)
    return Reduction(unshared / without.cost, unshared / found.cost, gap, seconds)


def _row(label: str, reductions: Sequence[Reduction]) -> Row:
    paper, real = SYNTHETIC[label], REAL.get(label)
    return {
        "setup": label,
        "without": fmean(r.without for r in reductions),
        "without max": max(r.without for r in reductions),
        "paper: without": f"{paper.without_mean} {paper.without_max}",
        "with": fmean(r.with_factors for r in reductions),
        "with max": max(r.with_factors for r in reductions),
        "paper: with": f"{paper.with_mean} {paper.with_max}",
        "paper: real": f"{real.with_mean} {real.with_max}" if real else None,
        "gap %": fmean(max(r.gap, 0.0) for r in reductions),
        "ms": 1000 * fmean(r.seconds for r in reductions),
    }


def _reductions(quick: bool) -> Sheet:
    labels = [label for label in SYNTHETIC if not quick or Setup.of(label).size <= 10]
    sets = _QUICK_SETS if quick else _SETS
    wrong: list[str] = []
    rows = tuple(
        _row(label, [_reduce(Setup.of(label), seed, wrong) for seed in range(sets)])
        for label in labels
    )
    notes = (
        f"{sets} window sets per line; ours is predicted cost, the paper's is measured throughput",
        "gap: mean distance of the search to the proven best plan",
    )
    return Sheet(rows, tuple(wrong), _panels(rows), notes)


def _panels(rows: tuple[Row, ...]) -> tuple[Panel, ...]:
    """Draw the mean reductions against the number of windows, ours and the paper's."""
    names = {"R": "RandomGen", "S": "SequentialGen"}
    drawn: dict[str, dict[str, list[tuple[float, float]]]] = {"tumbling": {}, "hopping": {}}
    for row in rows:
        label = str(row["setup"])
        setup = Setup.of(label)
        ours = row["with"]
        assert isinstance(ours, float)
        for series, y in (
            (f"{names[setup.generator]}, predicted", ours),
            (f"{names[setup.generator]}, paper's throughput", SYNTHETIC[label].with_mean),
        ):
            drawn[setup.kind].setdefault(series, []).append((float(setup.size), y))
    return tuple(
        Panel(
            f"{kind} windows",
            "windows in the set",
            "mean reduction with factor windows",
            {
                series: (tuple(x for x, _ in points), tuple(y for _, y in points))
                for series, points in by_series.items()
            },
        )
        for kind, by_series in drawn.items()
    )


REDUCTION = Table(
    name="planners/factor_reduction",
    question="How much do factor windows save on random sets of windows, and is it all there is?",
    columns=(
        Column("setup"),
        Column("without", ".2f"),
        Column("without max", ".2f"),
        Column("paper: without", published=True),
        Column("with", ".2f"),
        Column("with max", ".2f"),
        Column("paper: with", published=True),
        Column("paper: real", published=True),
        Column("gap %", ".3f"),
        Column("ms", ".2f"),
    ),
    compute=_reductions,
    limits=(Limit("gap %", at_most=0.5), Limit("ms", at_most=100, at_quick=False)),
)

ENTRIES: tuple[Entry, ...] = (REDUCTION,)
