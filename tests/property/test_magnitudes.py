"""Workloads at real magnitudes: the local engine gives the rows of the reference engine."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import weft
from sampling import examples
from weft.cli.app import app
from weft.query import Query
from weft.testing import soak
from weft.testing.magnitudes import YEAR_1_US, YEAR_10000_US, Case, random_case
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = ("reference", "local")
# Chosen to be thousands of rows or all eras; the others are drawn.
FEW = settings(
    deadline=None,
    max_examples=examples(8),
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@FEW
@given(st.integers(0, 2**31))
@example(4)
@example(1312)  # filters of which one is known more of than another
def test_the_local_engine_answers_workloads_at_real_magnitudes(seed: int) -> None:
    """Again: `weft soak --minutes 0 --seed SEED`."""
    case = random_case(seed, most_rows=400)
    report = weft.verify(case.workload, {"events": case.events}, ENGINES)
    assert report.ok, report.differences[0]


def test_cases_reach_the_ends_of_what_there_is() -> None:
    cases = [random_case(seed, most_rows=3000) for seed in range(200)]
    times = [pc.min_max(case.events["ts"].cast("int64")) for case in cases if case.events.num_rows]
    low = min(time["min"].as_py() for time in times if time["min"].is_valid)
    high = max(time["max"].as_py() for time in times if time["max"].is_valid)
    assert YEAR_1_US <= low < YEAR_1_US + 10**16
    assert YEAR_10000_US - 10**16 < high < YEAR_10000_US
    assert max(case.events.num_rows for case in cases) > 2000
    assert min(case.events.num_rows for case in cases) == 0
    ends = {2**63 - 1, -(2**63)}
    assert ends <= {value for case in cases for value in case.events["i"].to_pylist()}
    windows = [
        window
        for case in cases
        for query in case.workload
        if isinstance(query, Query)
        for _, window in query.windows
    ]
    assert len({type(window) for window in windows}) == 7
    ranges = [window.range_us for window in windows if isinstance(window, PeriodicWindow)]
    assert min(ranges) < 1000
    assert max(ranges) > 365 * 86_400 * 10**6


def sums_of_y(case: Case) -> str | None:
    """Fail where y is summed and an infinity is among the events: a fault to be cut down to."""
    asked = any(
        str(call) == "sum(y)" for q in case.workload if isinstance(q, Query) for _, call in q.aggs
    )
    infinite = pc.any(pc.is_inf(case.events["y"])).as_py()
    return "sums differ" if asked and infinite else None


def test_a_failure_is_cut_down_to_what_makes_it() -> None:
    found = soak.soak(ENGINES, 60.0, 0, check=sums_of_y)
    assert found.failure is not None
    small = found.failure.case
    assert found.failure.told == "sums differ"
    assert small.events["y"].to_pylist() == [float("inf")]
    (query,) = small.workload.queries
    assert isinstance(query, Query)
    assert [str(call) for _, call in query.aggs] == ["sum(y)"]
    assert len(query.windows) == 1
    assert query.keys == ()
    assert query.where is None


@pytest.mark.parametrize("wrong", [False, True])
def test_a_failure_is_a_script_that_shows_it(tmp_path: Path, wrong: bool) -> None:
    """The script is run with an engine that is wrong on purpose, and with none."""
    case = random_case(11, 5)
    script = tmp_path / "shown.py"
    script.write_text(soak.script_of(soak.Failure(case, 'as "told"', ENGINES)), encoding="utf-8")
    spoiled = (
        "import runpy, sys, weft.verification.report as r\n"
        "true = r._answer\n"
        "def _answer(w, t, engine, p):\n"
        "    found = true(w, t, engine, p)\n"
        f"    wrong = engine == 'local' and {wrong}\n"
        "    return {n: one.slice(1) if wrong else one for n, one in found.items()}\n"
        "r._answer = _answer\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
    )
    ran = subprocess.run([sys.executable, "-c", spoiled], capture_output=True, text=True)
    assert ran.returncode == int(wrong), ran.stderr
    assert ("local has" in ran.stdout) is wrong


def test_the_command_ends_with_status_one_and_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "shown.py"
    words = ["soak", "--minutes", "0", "--seed", "3", "--script", str(script)]
    fine = CliRunner().invoke(app, words)
    assert fine.exit_code == 0, fine.output
    assert "1 workloads over" in fine.output
    assert not script.exists()
    monkeypatch.setattr(soak, "difference", lambda case, engines: "other rows")
    failed = CliRunner().invoke(app, words)
    assert failed.exit_code == 1
    assert "a difference at --seed 3" in failed.output
    assert script.read_text(encoding="utf-8").startswith("# 'other rows'")


@pytest.mark.parametrize("engines", ["local", "spark-stream,local", "reference,nowhere"])
def test_what_cannot_be_compared_is_refused(engines: str) -> None:
    refused = CliRunner().invoke(app, ["soak", "--engines", engines])
    assert refused.exit_code == 2


def test_windows_that_go_by_order_meet_one_event_an_instant_on_spark() -> None:
    whole, single = (soak.case_for(engines, 5) for engines in (("local",), ("local", "spark")))
    instants = whole.events["ts"].to_pylist()
    assert len(set(instants)) < len(instants)
    kept = single.events["ts"].to_pylist()
    assert len(kept) == len(set(kept))
    assert set(kept) == set(instants)
    assert soak.difference(single, ("reference", "local")) is None
