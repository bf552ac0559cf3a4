"""The shipped entries, run on small inputs: every contender answers, and answers right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weft.bench.frame import Case, Outcome, Race
from weft.bench.race import run_entry
from weft.bench.registry import entries
from weft.bench.suite.kernels.oracles import close, identical, moving_max, moving_sum
from weft.bench.suite.kernels.speed import evenly_spaced_ranges
from weft.bench.suite.planners import factor as planners_factor
from weft.bench.suite.planners import subsume as planners_subsume
from weft.bench.suite.planners import weave as planners_weave
from weft.cost.factor_cost import PaperCost
from weft.planners.factor.search import search_factors
from weft.planners.subsume.groups import subsume_windows
from weft.planners.weave.search import weave

ENTRIES = {entry.name: entry for entry in entries()}
# Races of engines have tests of their own.
RACES = [e for e in ENTRIES.values() if isinstance(e, Race) and e.group == "kernels"]
WINDOWS = (Case("n=7", {"values": 600, "n": 7}, 600), Case("n=100", {"values": 600, "n": 100}, 600))
HUNDRED = (Case("n=100", {"values": 300, "n": 100}, 300), Case("n=150", {"values": 300, "n": 150}))
SMALL = {
    "kernels/slicing": (Case("5000 events", {"events": 5000}, 5000),),
    "kernels/ranges_max": HUNDRED,
    "kernels/ranges_sum": HUNDRED,
}


@pytest.mark.parametrize("entry", RACES, ids=lambda race: race.name)
def test_every_contender_of_every_race_is_right(entry: Race) -> None:
    small = replace(entry, quick=SMALL.get(entry.name, WINDOWS), rounds=1)
    outcome = run_entry(small, quick=True)
    assert outcome.status == "ok", outcome.notes
    assert {row["contender"] for row in outcome.rows} == set(entry.contenders)


@pytest.mark.parametrize("entry", RACES, ids=lambda race: race.name)
def test_a_race_catches_a_contender_that_cheats(entry: Race) -> None:
    name, honest = next(iter(entry.contenders.items()))

    def start(inputs: object) -> object:
        runner = honest.start(inputs)

        def cheat() -> object:
            answer = runner()
            first = answer[-1] if isinstance(answer, tuple) else answer
            first.flat[0] += 1
            return answer

        return cheat

    contenders = {**entry.contenders, name: replace(honest, start=start)}
    small = replace(
        entry, contenders=contenders, quick=SMALL.get(entry.name, WINDOWS)[:1], rounds=1
    )
    outcome = run_entry(small, quick=True)
    assert outcome.status == "wrong"
    assert outcome.notes[0].startswith(f"{name}, ")


@pytest.fixture(scope="module")
def complexity() -> Outcome:
    return run_entry(ENTRIES["kernels/complexity"], quick=True)


@pytest.mark.parametrize(
    "name",
    [
        "planners/weave_experiment_4",
        "planners/weave_trees",
        "planners/weave_scale",
        "planners/factor_reduction",
        "planners/subsume_groups",
    ],
)
def test_tables_compute_their_columns(name: str) -> None:
    outcome = run_entry(ENTRIES[name], quick=True)
    assert outcome.status == "ok", outcome.notes
    columns = {column.name for column in outcome.columns}
    assert all(set(row) <= columns for row in outcome.rows)


def cells(outcome: Outcome, column: str) -> dict[str, object]:
    return {str(row["technique"]): row[column] for row in outcome.rows}


@pytest.mark.soak  # compiles every technique once more; the counters have unit tests of their own
def test_measured_combines_are_those_of_the_formulas(complexity: Outcome) -> None:
    assert complexity.status == "ok", complexity.notes
    measured, formula = cells(complexity, "combines"), cells(complexity, "formula")
    for name in ("naive", "b_int", "two_stacks", "daba", "slick_deque_inv", "daba_lite"):
        assert measured[name] == pytest.approx(formula[name], rel=1e-6)


@pytest.mark.parametrize("stretch", [1, 50])
def test_stretches_are_timed_and_their_answers_kept(stretch: int) -> None:
    from weft.bench.suite.kernels.probes import time_stretches
    from weft.kernels.operations import MAX_FLOAT64

    values = np.random.default_rng(5).random(1000)
    timed = time_stretches("daba_lite", MAX_FLOAT64, values, 20, stretch=stretch, passes=2)
    assert identical(moving_max(values, 20), timed.answers) == ""
    # Two windows' worth of slides fill the window and are left out.
    assert len(timed.stretch_ns) == (1000 - (40 if stretch == 1 else 50)) // stretch
    assert timed.stretch_ns.min() > 0


def test_a_weave_plan_that_leaves_a_query_out_is_caught() -> None:
    windows = [(6, 2), (8, 4), (9, 9)]
    plan = weave(windows, 1.0, "naive")
    assert planners_weave.plan_is_sound(plan, 3, 1.0, 0.0) == ""
    assert "exactly one tree" in planners_weave.plan_is_sound(plan, 4, 1.0, 0.0)
    assert "trees cost" in planners_weave.plan_is_sound(plan, 3, 2.0, 0.0)
    dear = replace(plan, cost_unshared=plan.cost / 2)
    assert "is above" in planners_weave.plan_is_sound(dear, 3, 1.0, 0.0)


def test_a_factor_plan_with_a_false_feeder_is_caught() -> None:
    setup = planners_factor.Setup.of("R-5-tumbling")
    wanted = setup.windows(seed=0)
    cost = PaperCost.of(wanted, 1e-6)
    plan = search_factors(wanted, cost, setup.relation)
    assert planners_factor.plan_is_sound(plan, wanted, cost, setup) == ""
    longest, shortest = (f(wanted, key=lambda w: w.range_us) for f in (max, min))
    wrong = replace(plan, feeder={**plan.feeder, shortest: longest})
    assert "cannot feed" in planners_factor.plan_is_sound(wrong, wanted, cost, setup)
    short = replace(plan, feeder={w: f for w, f in plan.feeder.items() if w != longest})
    assert "no feeder" in planners_factor.plan_is_sound(short, wanted, cost, setup)
    cheap = replace(plan, cost=plan.cost / 2)
    assert "cost" in planners_factor.plan_is_sound(cheap, wanted, cost, setup)


def test_groups_that_lose_or_misplace_a_window_are_caught() -> None:
    wanted = planners_subsume.windows_ending_together("medium", 50, seed=1, whole_slides=True)
    assert all((w.offset_us + w.range_us) % w.slide_us == 0 for w in wanted)
    groups = subsume_windows(wanted)
    sound = planners_subsume.groups_are_sound
    assert sound(groups, wanted, for_aggregates=True) == ""
    assert "other windows" in sound(groups[1:], wanted, for_aggregates=True)
    longest = max(groups, key=lambda group: len(group.chain))
    upside_down = replace(longest, chain=longest.chain[::-1])
    assert "does not enclose" in sound((upside_down,), wanted, for_aggregates=True)


def test_published_setups_are_those_of_the_tables() -> None:
    sizes = {planners_factor.Setup.of(s).size for s in planners_factor.SYNTHETIC}
    assert sizes == {5, 10, 15, 20}
    assert len(planners_factor.SYNTHETIC) == 16
    assert len(planners_factor.REAL) == 8


def test_windows_for_scale_are_multiples_of_their_slides() -> None:
    dividing = planners_weave.many_windows(500, divisors=True)
    assert not (720_720 % dividing[:, 1]).any()
    free = planners_weave.many_windows(500, divisors=False)
    assert (free[:, 1].min(), free[:, 1].max()) >= (20, 21)
    assert free[:, 1].max() <= 1000
    assert not (free[:, 0] % free[:, 1]).any()


@pytest.mark.parametrize("n", [1, 2, 3, 8, 50])
def test_oracles_agree_with_slices(n: int) -> None:
    values = np.random.default_rng(3).integers(-50, 50, 40)
    windows = [values[max(0, i - n + 1) : i + 1] for i in range(len(values))]
    assert moving_max(values, n).tolist() == [w.max() for w in windows]
    assert moving_sum(values, n).tolist() == [w.sum() for w in windows]
    assert close(np.array([float(w.sum()) for w in windows]), moving_sum(values * 1.0, n)) == ""


def test_comparisons_say_where_arrays_differ() -> None:
    grid = np.zeros((2, 3))
    other = grid.copy()
    other[1, 2] = 1e-6
    assert identical(grid, other) == "at 1, 2: expected 0.0, got 1e-06"
    assert close(grid, other) == "at 1, 2: expected 0.0, got 1e-06"
    assert identical(grid, grid[0]) == "expected shape (2, 3), got (3,)"


def test_a_hundred_ranges_reach_the_window() -> None:
    ranges = evenly_spaced_ranges(200)
    assert (len(ranges), ranges[0], ranges[-1]) == (100, 2, 200)
