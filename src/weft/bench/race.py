"""Run one entry: check every answer, then time the contenders side by side and judge the bars."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from statistics import median
from time import perf_counter
from typing import Any, assert_never

from weft.bench.frame import (
    Bar,
    Case,
    Cell,
    Column,
    Entry,
    Judgement,
    Outcome,
    Race,
    Row,
    Runner,
    Sheet,
    Spread,
    Status,
    Table,
    Verdict,
    missing,
)

# A shorter measurement is mostly the clock and the call; such a runner is called several times.
_LEAST_SECONDS = 0.01
_MOST_CALLS = 10_000
# A short round is the least of a few measurements, the same number for all contenders: what
# another process adds is in some of them only.
_ROUND_SECONDS = 0.5
_MOST_REPEATS = 5
# What another contender leaves in caches and heap weighs on the next run, if that one is shorter.
_SETTLED_SECONDS = 2.0
# glibc: the size from which a block is mapped on its own, and the free memory kept at the top.
# Each: its number, the value that keeps everything, and glibc's own value.
_MALLOC_SWITCHES = {
    "mmap_threshold": (-3, 1 << 30, 128 << 10),
    "trim_threshold": (-1, (1 << 31) - 1, 128 << 10),
}
_AT_FULL_SIZE = "holds at full size only"

Rounds = Mapping[str, list[float]]  # seconds of each contender, round by round


def run_entry(entry: Entry, *, quick: bool) -> Outcome:
    """Run an entry and judge it; figures are left out when an answer is wrong."""
    start = perf_counter()
    match entry:
        case Race():
            outcome = _run_race(entry, quick=quick)
        case Table():
            outcome = _run_table(entry, quick=quick)
        case _:
            assert_never(entry)
    return replace(outcome, seconds=perf_counter() - start)


def keep_freed_memory(keep: bool = True) -> bool:
    """Let the allocator keep what is freed, or not; False where there is no such switch.

    It gives large blocks back at once, and mapping a fresh array of 40 MB takes longer than many
    a contender needs to fill it. With a warm heap all contenders are timed by what they do.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return all(
        mallopt(switch, most if keep else own) == 1
        for switch, most, own in _MALLOC_SWITCHES.values()
    )


def _run_race(race: Race, *, quick: bool) -> Outcome:
    absent = {name: missing(c.needs) for name, c in race.contenders.items()}
    present = [name for name, reason in absent.items() if not reason]
    notes = tuple(f"{name} skipped: {reason}" for name, reason in absent.items() if reason)
    if len(present) < 2:
        return Outcome(race.name, race.question, "skipped", notes=notes)
    keep_freed_memory(race.warm_heap)
    rows: list[Row] = []
    verdicts: list[Verdict] = []
    for case in race.quick if quick else race.full:
        rounds, wrong = _time_case(race, case, present)
        if wrong:
            return Outcome(race.name, race.question, "wrong", notes=(*notes, *wrong))
        rows.extend(_rows_of(race, case, rounds))
        verdicts.extend(
            _judge_bar(bar, case, rounds, absent, quick=quick)
            for bar in race.bars
            if fnmatchcase(case.label, bar.cases)
        )
    return Outcome(
        race.name,
        race.question,
        _status(verdicts),
        _columns_of(race),
        tuple(rows),
        tuple(verdicts),
        notes,
        race.panels(tuple(rows)) if race.panels else (),
    )


def _time_case(race: Race, case: Case, present: list[str]) -> tuple[Rounds, tuple[str, ...]]:
    """Check each contender's answer, then time all of them in turn, round after round."""
    inputs = race.inputs(**case.arguments)
    runners = {name: race.contenders[name].start(inputs) for name in present}
    with _nothing_old_collected():
        return _time_runners(race, case, inputs, runners)


@contextmanager
def _nothing_old_collected() -> Iterator[None]:
    """Let the collector, which runs before each timing, pass over what was there before the race.

    In a large process going through all of it takes longer than most contenders.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _time_runners(
    race: Race, case: Case, inputs: Any, runners: Mapping[str, Runner]
) -> tuple[Rounds, tuple[str, ...]]:
    checks = {}
    if race.expected is not None:
        expected = race.expected(inputs)
    else:
        checks[race.baseline] = _timed(runners[race.baseline], 1)
        expected = checks[race.baseline][1]

    def difference(name: str, answer: Any) -> str:
        return "" if race.contenders[name].yardstick else race.same(expected, answer)

    for name, runner in runners.items():
        if name not in checks:
            checks[name] = _timed(runner, 1)
        if text := difference(name, checks[name][1]):
            return {}, (f"{name}, {case.label}: {text}",)
    seldom = {
        n: _Seldom(runner, runs, checks[n][0])
        for n, runner in runners.items()
        if (runs := race.contenders[n].runs) is not None
    }
    others = {n: runner for n, runner in runners.items() if n not in seldom}
    rounds, answers = _time_rounds(others, seldom, race.rounds)
    # A runner that spoils its inputs is right the first time only.
    wrong = tuple(
        f"{name}, {case.label}, after {race.rounds} rounds: {text}"
        for name, answer in answers.items()
        if (text := difference(name, answer))
    )
    return {name: rounds[name] for name in runners}, wrong


@dataclass(slots=True)
class _Seldom:
    """A runner that takes long: timed in a few rounds, and the rounds between take that time."""

    runner: Runner
    runs: int  # the check that comes before all rounds being the first
    seconds: float

    def in_round(self, number: int, number_of_rounds: int) -> float:
        """Return its time, taken anew where the next of its runs, evenly spread, is due.

        The machine may change its speed during a race, so both sides of a ratio are timed close
        to each other.
        """
        done, due = ((n * self.runs) // number_of_rounds for n in (number - 1, number))
        if number and due > done:
            self.seconds, _ = _timed(self.runner, 1)
        return self.seconds


def _time_rounds(
    runners: Mapping[str, Runner], seldom: Mapping[str, _Seldom], number_of_rounds: int
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Time runners in turn, round after round; return also the last answer of each."""
    seconds_of = {name: max(_timed(runner, 1)[0], 1e-9) for name, runner in runners.items()}
    calls = {
        name: min(max(1, round(_LEAST_SECONDS / seconds)), _MOST_CALLS)
        for name, seconds in seconds_of.items()
    }
    round_seconds = sum(calls[name] * seconds for name, seconds in seconds_of.items())
    # Where all contenders are timed seldom, nobody is left for the rounds between.
    repeats = min(max(1, round(_ROUND_SECONDS / max(round_seconds, 1e-9))), _MOST_REPEATS)
    names = list(runners)
    rounds: dict[str, list[float]] = {name: [] for name in (*names, *seldom)}
    answers: dict[str, Any] = {}
    for number in range(number_of_rounds):
        for name, one in seldom.items():
            rounds[name].append(one.in_round(number, number_of_rounds))
        # Each round starts with another contender, so that no one always follows the same one.
        turn = number % max(len(names), 1)
        for name in names[turn:] + names[:turn]:
            if repeats == 1 and seconds_of[name] < _SETTLED_SECONDS:
                runners[name]()
            measured = [_timed(runners[name], calls[name]) for _ in range(repeats)]
            rounds[name].append(min(seconds for seconds, _ in measured))
            answers[name] = measured[-1][1]
    return rounds, answers


def _timed(runner: Runner, calls: int) -> tuple[float, Any]:
    """Time the mean of some calls; the collector of cycles runs before and not within."""
    answer = None
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        for _ in range(calls):
            answer = runner()
        seconds = (perf_counter() - start) / calls
    finally:
        gc.enable()
    return seconds, answer


def _ratios(faster: list[float], slower: list[float]) -> Spread:
    return Spread.of(s / f for f, s in zip(faster, slower, strict=True))


def _columns_of(race: Race) -> tuple[Column, ...]:
    figures = [Column("case"), Column("contender"), Column(f"speed / {race.baseline}")]
    if any(case.items for case in race.full):
        figures.append(Column(f"million {race.item}s/s", ".4g"))
    return (*figures, Column("seconds", ".3g"))


def _rows_of(race: Race, case: Case, rounds: Rounds) -> list[Row]:
    baseline = rounds.get(race.baseline)
    rows: list[Row] = []
    for name, seconds in rounds.items():
        row: dict[str, Cell] = {"case": case.label, "contender": name}
        row[f"speed / {race.baseline}"] = _ratios(seconds, baseline) if baseline else None
        if case.items:
            row[f"million {race.item}s/s"] = case.items / median(seconds) / 1e6
        row["seconds"] = median(seconds)
        rows.append(row)
    return rows


def _judge_bar(
    bar: Bar, case: Case, rounds: Rounds, absent: Mapping[str, str], *, quick: bool
) -> Verdict:
    reason = absent[bar.faster] or absent[bar.slower]
    if reason:
        return Verdict(str(bar), case.label, None, "not judged", reason)
    ratio = _ratios(rounds[bar.faster], rounds[bar.slower])
    if quick and not bar.at_quick:
        return Verdict(str(bar), case.label, ratio, "not judged", _AT_FULL_SIZE)
    return Verdict(str(bar), case.label, ratio, _judgement(ratio.median >= bar.at_least))


def _run_table(table: Table, *, quick: bool) -> Outcome:
    if reason := missing(table.needs):
        return Outcome(table.name, table.question, "skipped", notes=(f"skipped: {reason}",))
    sheet = table.compute(quick)
    if sheet.wrong:
        return Outcome(table.name, table.question, "wrong", notes=sheet.wrong)
    verdicts = _judge_limits(table, sheet, quick=quick)
    return Outcome(
        table.name,
        table.question,
        _status(verdicts),
        table.columns,
        sheet.rows,
        tuple(verdicts),
        sheet.notes,
        sheet.panels,
    )


def _judge_limits(table: Table, sheet: Sheet, *, quick: bool) -> list[Verdict]:
    verdicts = []
    for limit in table.limits:
        meant = [row for row in sheet.rows if limit.meant(row)]
        if not meant:
            verdicts.append(Verdict(str(limit), "", None, "not judged", "no such row in this run"))
        for row in meant:
            cell = row.get(limit.column)
            value = cell.median if isinstance(cell, Spread) else cell
            where = str(next(iter(row.values())))
            if quick and not limit.at_quick:
                verdict = Verdict(str(limit), where, cell, "not judged", _AT_FULL_SIZE)
            elif not isinstance(value, int | float):
                verdict = Verdict(str(limit), where, cell, "not judged", "has no figure")
            else:
                verdict = Verdict(str(limit), where, cell, _judgement(limit.met(value)))
            verdicts.append(verdict)
    return verdicts


def _judgement(met: bool) -> Judgement:
    return "met" if met else "missed"


def _status(verdicts: list[Verdict]) -> Status:
    return "missed" if any(v.judgement == "missed" for v in verdicts) else "ok"
