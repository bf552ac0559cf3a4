"""What bench entries are, and how they are run and judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from weft.bench import race
from weft.bench.frame import (
    Bar,
    Case,
    Column,
    Contender,
    Limit,
    Outcome,
    Panel,
    Race,
    Sheet,
    Spread,
    Table,
)
from weft.bench.race import run_entry
from weft.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Time that passes only when a contender works, so that ratios are exact on any machine."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


@pytest.fixture(autouse=True)
def _fake_time(monkeypatch: pytest.MonkeyPatch) -> None:
    CLOCK.now = 0.0  # how sums of times are rounded must not depend on the tests before
    monkeypatch.setattr(race, "perf_counter", CLOCK)


def busy(seconds: float, answer: int = 7) -> Callable[[Any], Callable[[], int]]:
    """Make a contender that takes a known time."""

    def start(inputs: Any) -> Callable[[], int]:
        def runner() -> int:
            CLOCK.now += seconds * inputs["size"]
            return answer

        return runner

    return start


RACE = Race(
    name="test/race",
    question="Is a millisecond less than three?",
    inputs=lambda size: {"size": size},
    expected=lambda inputs: 7,
    contenders={"one": Contender(busy(0.001)), "three": Contender(busy(0.003))},
    baseline="three",
    full=(Case("size=2", {"size": 2}, items=1000),),
    quick=(Case("size=1", {"size": 1}, items=500),),
    bars=(Bar("one", "three", 2.0),),
    rounds=3,
    item="row",
)


def row_of(outcome: Outcome, contender: str) -> dict[str, Any]:
    return next(dict(row) for row in outcome.rows if row["contender"] == contender)


def test_figures_of_a_race_are_ratios_to_its_baseline() -> None:
    outcome = run_entry(RACE, quick=False)
    assert outcome.status == "ok"
    ratio = row_of(outcome, "one")["speed / three"]
    assert ratio.median == pytest.approx(3.0)
    assert (ratio.low, ratio.high) == pytest.approx((3.0, 3.0))
    assert row_of(outcome, "three")["speed / three"].median == pytest.approx(1.0)
    one = row_of(outcome, "one")
    assert one["million rows/s"] == pytest.approx(1e-3 / one["seconds"])
    assert [v.judgement for v in outcome.verdicts] == ["met"]
    assert [c.name for c in outcome.columns] == list(one)


def test_a_bar_that_is_missed_fails_the_entry() -> None:
    outcome = run_entry(replace(RACE, bars=(Bar("one", "three", 50.0),)), quick=False)
    assert outcome.status == "missed"
    assert outcome.failed
    assert outcome.verdicts[0].judgement == "missed"


def test_a_bar_is_not_judged_at_quick_size_unless_it_says_so() -> None:
    bars = (Bar("one", "three", 50.0), Bar("one", "three", 60.0, at_quick=True))
    outcome = run_entry(replace(RACE, bars=bars), quick=True)
    assert [v.judgement for v in outcome.verdicts] == ["not judged", "missed"]
    assert outcome.verdicts[0].reason == "holds at full size only"
    assert outcome.verdicts[0].where == "size=1"


def test_a_bar_speaks_of_the_cases_it_names() -> None:
    cases = (Case("n=1", {"size": 1}), Case("n=2", {"size": 1}))
    entry = replace(RACE, full=cases, bars=(Bar("one", "three", 1.5, cases="n=2"),))
    assert [v.where for v in run_entry(entry, quick=False).verdicts] == ["n=2"]


def test_a_wrong_answer_fails_before_anything_is_timed_or_reported() -> None:
    timed = []

    def start(inputs: Any) -> Callable[[], int]:
        return lambda: timed.append(1) or 8

    entry = replace(RACE, contenders={**RACE.contenders, "liar": Contender(start)})
    outcome = run_entry(entry, quick=True)
    assert outcome.status == "wrong"
    assert outcome.failed
    assert outcome.rows == ()
    assert outcome.notes == ("liar, size=1: expected 7, got 8",)
    assert len(timed) == 1


def test_a_contender_that_is_right_only_once_is_wrong() -> None:
    def start(inputs: Any) -> Callable[[], int]:
        answers = [7]
        return lambda: answers.pop() if answers else 0

    entry = replace(RACE, contenders={**RACE.contenders, "spoiler": Contender(start)})
    outcome = run_entry(entry, quick=True)
    assert outcome.status == "wrong"
    assert outcome.notes == ("spoiler, size=1, after 3 rounds: expected 7, got 0",)


def turns_of(**seconds: float) -> str:
    """Run a race of contenders that take so long, and tell who was called when."""
    turns: list[str] = []

    def start(name: str) -> Callable[[Any], Callable[[], int]]:
        def ready(inputs: Any) -> Callable[[], int]:
            runner = busy(seconds[name])(inputs)
            return lambda: turns.append(name) or runner()

        return ready

    contenders = {name: Contender(start(name)) for name in seconds}
    run_entry(replace(RACE, contenders=contenders, baseline="a", bars=()), quick=True)
    return "".join(turns)


def test_contenders_take_turns_within_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race, "_SETTLED_SECONDS", 0.4)
    # Each is called for its check and for the length of a call, then in three rounds.
    assert turns_of(a=0.5, b=0.5) == "ab" + "ab" + "ab" + "ba" + "ab"


def test_a_short_contender_beside_a_long_one_is_called_once_more_before_it_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(race, "_SETTLED_SECONDS", 0.4)
    assert turns_of(a=0.25, b=0.5) == "ab" + "ab" + "aab" + "baa" + "aab"


@pytest.mark.parametrize("times", [1, 2])
def test_a_long_contender_runs_as_often_as_told_and_first_for_its_answer(times: int) -> None:
    runs: list[int] = []

    def start(inputs: Any) -> Callable[[], int]:
        slow = busy(30.0)(inputs)
        return lambda: runs.append(1) or slow()

    contenders = {"quick": Contender(busy(1.0)), "slow": Contender(start, runs=times)}
    entry = replace(RACE, expected=None, contenders=contenders, baseline="slow", bars=())
    outcome = run_entry(entry, quick=True)
    assert outcome.status == "ok"
    assert len(runs) == times
    (quick,) = (row for row in outcome.rows if row["contender"] == "quick")
    assert quick["speed / slow"] == Spread(30.0, 30.0, 30.0)
    liar = replace(entry, contenders={**contenders, "quick": Contender(busy(1.0, answer=8))})
    assert run_entry(liar, quick=True).notes == ("quick, size=1: expected 7, got 8",)


def test_runs_of_a_long_contender_are_spread_over_the_rounds() -> None:
    turns: list[str] = []

    def start(name: str, seconds: float) -> Callable[[Any], Callable[[], int]]:
        def ready(inputs: Any) -> Callable[[], int]:
            runner = busy(seconds)(inputs)
            return lambda: turns.append(name) or runner()

        return ready

    contenders = {"a": Contender(start("a", 3.0)), "s": Contender(start("s", 30.0), runs=3)}
    entry = replace(RACE, expected=None, contenders=contenders, baseline="s", bars=(), rounds=6)
    run_entry(entry, quick=True)
    # Both are checked and the length of a call is found; then two rounds for each long run.
    assert "".join(turns) == "sa" + "a" + "aa" + "saa" + "saa"


def test_all_contenders_may_take_long() -> None:
    slow = {name: Contender(busy(seconds), runs=2) for name, seconds in (("a", 10.0), ("b", 30.0))}
    entry = replace(RACE, expected=None, contenders=slow, baseline="b", bars=(), rounds=2)
    outcome = run_entry(entry, quick=True)
    assert outcome.status == "ok"
    assert [row["speed / b"].median for row in outcome.rows] == [3.0, 1.0]


def test_the_answer_of_a_yardstick_is_not_compared() -> None:
    stick = Contender(busy(0.5, answer=0), yardstick=True)
    entry = replace(RACE, contenders={**RACE.contenders, "stick": stick})
    assert run_entry(entry, quick=True).status == "ok"


def test_a_round_takes_the_least_of_a_few_short_calls() -> None:
    delays = iter([1.0] * 100)

    def start(inputs: Any) -> Callable[[], int]:
        calls = [0]

        def runner() -> int:
            # Every third call is disturbed by another process.
            calls[0] += 1
            CLOCK.now += 0.02 + (next(delays) if calls[0] % 3 == 0 else 0.0)
            return 7

        return runner

    entry = replace(RACE, contenders={**RACE.contenders, "disturbed": Contender(start)})
    assert row_of(run_entry(entry, quick=True), "disturbed")["seconds"] == pytest.approx(0.02)


def test_a_missing_library_skips_its_contender_and_its_bars() -> None:
    contenders = {**RACE.contenders, "peer": Contender(busy(0.001), needs=("no_such_library",))}
    bars = (Bar("one", "peer", 1.0), Bar("one", "three", 1.5))
    outcome = run_entry(replace(RACE, contenders=contenders, bars=bars), quick=False)
    assert outcome.status == "ok"
    needs = "needs no_such_library: pip install 'weft-spark[bench]'"
    assert outcome.notes == (f"peer skipped: {needs}",)
    assert [(v.judgement, v.reason) for v in outcome.verdicts] == [
        ("not judged", needs),
        ("met", ""),
    ]


def test_a_race_without_its_baseline_still_tells_seconds() -> None:
    contenders = {**RACE.contenders, "peer": Contender(busy(0.001), needs=("no_such_library",))}
    outcome = run_entry(replace(RACE, contenders=contenders, baseline="peer"), quick=True)
    assert row_of(outcome, "one")["speed / peer"] is None
    assert row_of(outcome, "one")["seconds"] > 0


def test_a_race_of_one_is_skipped() -> None:
    contenders = {
        "one": Contender(busy(0.001)),
        "three": Contender(busy(0.001), needs=("no_such_library",)),
    }
    outcome = run_entry(replace(RACE, contenders=contenders), quick=True)
    assert outcome.status == "skipped"
    assert not outcome.failed


def test_a_race_draws_what_its_rows_say() -> None:
    def panels(rows: Any) -> tuple[Panel, ...]:
        ys = tuple(row["seconds"] for row in rows)
        return (Panel("seconds", "contender", "s", {"all": ((0.0, 1.0), ys)}),)

    outcome = run_entry(replace(RACE, panels=panels), quick=True)
    assert outcome.panels[0].lines["all"][1] == tuple(r["seconds"] for r in outcome.rows)


TABLE = Table(
    name="test/table",
    question="How dear is a plan?",
    columns=(Column("queries"), Column("cost"), Column("published", published=True)),
    compute=lambda quick: Sheet(
        (
            {"queries": 1, "cost": 2.0, "published": 2.1},
            {"queries": 100, "cost": Spread(40.0, 30.0, 60.0), "published": None},
        )
    ),
    limits=(Limit("cost", at_most=50), Limit("cost", at_least=3, rows={"queries": "10*"})),
)


def test_a_table_is_judged_cell_by_cell() -> None:
    outcome = run_entry(TABLE, quick=False)
    assert outcome.status == "ok"
    assert [(v.promise, v.where, v.judgement) for v in outcome.verdicts] == [
        ("cost at most 50", "1", "met"),
        ("cost at most 50", "100", "met"),
        ("cost at least 3 where queries 10*", "100", "met"),
    ]


@pytest.mark.parametrize(
    ("limit", "judgements"),
    [
        (Limit("cost", at_most=3), ["met", "missed"]),
        (Limit("cost", at_least=2.5, at_most=3), ["missed", "missed"]),
        (Limit("cost", at_most=3, at_quick=False), ["not judged", "not judged"]),
        (Limit("published", at_most=3), ["met", "not judged"]),
        (Limit("cost", at_most=3, rows={"queries": "7"}), ["not judged"]),
    ],
)
def test_limits(limit: Limit, judgements: list[str]) -> None:
    outcome = run_entry(replace(TABLE, limits=(limit,)), quick=True)
    assert [v.judgement for v in outcome.verdicts] == judgements
    assert outcome.failed == ("missed" in judgements)


def test_a_table_with_a_wrong_answer_shows_no_figures() -> None:
    wrong = replace(TABLE, compute=lambda quick: Sheet(({"queries": 1},), wrong=("cost 3, not 2",)))
    outcome = run_entry(wrong, quick=False)
    assert (outcome.status, outcome.rows, outcome.notes) == ("wrong", (), ("cost 3, not 2",))


def test_a_table_whose_library_is_missing_is_skipped() -> None:
    outcome = run_entry(replace(TABLE, needs=("no_such_library",)), quick=False)
    assert outcome.status == "skipped"
    assert outcome.notes == ("skipped: needs no_such_library: pip install 'weft-spark[bench]'",)


def test_entries_that_name_what_is_not_there_cannot_be_made() -> None:
    with pytest.raises(InternalError, match="names no contender"):
        replace(RACE, baseline="nobody")
    with pytest.raises(InternalError, match="has no column"):
        replace(TABLE, limits=(Limit("price", at_most=1),))
    with pytest.raises(InternalError, match="not named group/name"):
        replace(TABLE, name="table")


def test_a_spread_of_one_value_is_that_value() -> None:
    assert Spread.of([2.5]) == Spread(2.5, 2.5, 2.5)
