"""`weft explain` prints what `Plan.explain` says, as it is."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app

SQL = """SELECT device, System.Window().Id, MIN(temp) AS lo FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(Window('20 min', TumblingWindow(minute, 20)),
  Window('30 min', TumblingWindow(minute, 30)), Window('40 min', TumblingWindow(minute, 40)))"""


def explain(*words: str) -> str:
    result = CliRunner().invoke(app, ["explain", *words], env={"COLUMNS": "40"})
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_the_text_is_not_wrapped_or_coloured():
    plan = weft.optimize(weft.parse(SQL))
    shown = explain("-e", SQL)
    assert shown == plan.explain().rstrip("\n") + "\n"
    assert max(map(len, shown.splitlines())) > 60
    assert "\x1b" not in shown


def test_one_event_a_minute_counts_as_the_paper_does():
    words = ("--planner", "independent", "--model", "paper", "--rate", "1/60", "--format", "json")
    plan = weft.Plan.from_json(explain("-e", SQL, *words))
    assert (plan.planner, plan.model, plan.cost) == ("independent", "paper", pytest.approx(360))


def test_what_is_known_of_the_events_is_stated():
    known = ("--rate", "2500", "--keys", "7", "--events", "9000000")
    shown = explain("-e", SQL, *known, "--engine", "local")
    assert "2500 events/s, 7 keys" in shown
    assert "priced for 9,000,000 events in 1h" in shown
    assert "assumed" not in shown


def test_an_unknown_planner_is_refused_with_those_there_are():
    result = CliRunner().invoke(app, ["explain", "-e", SQL, "--planner", "optimal"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: unknown planner 'optimal'\nhint: use one of auto, ")


@pytest.mark.parametrize(
    ("name", "begins"),
    [("plan.html", "<!doctype html>"), ("plan.json", "{"), ("plan.mmd", ""), ("plan.txt", "PLAN")],
)
def test_the_file_names_the_format(tmp_path, name, begins):
    path = tmp_path / name
    assert explain("-e", SQL, "-o", str(path)) == f"wrote {path}\n"
    assert path.read_text().lower().startswith(begins.lower())


def test_a_format_that_is_said_wins_over_the_file_name(tmp_path):
    path = tmp_path / "plan.html"
    explain("-e", SQL, "-o", str(path), "--format", "json")
    assert json.loads(path.read_text())
    explain("-e", SQL, "-o", str(path), "--overwrite", "-f", "mermaid")
    assert path.read_text().rstrip("\n") == weft.optimize(weft.parse(SQL)).explain(
        "mermaid"
    ).rstrip("\n")
