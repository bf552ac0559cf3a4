"""`weft size`: figures for a cluster that nobody has started."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.app import app

DOCS = Path(__file__).parents[3] / "docs"
SQL = "SELECT k, MIN(v) AS lo FROM r GROUP BY k, window(ts, '1 hour', '5 minutes')"


def sized(*words: str) -> str:
    result = CliRunner().invoke(app, ["size", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("run", ["batch", "stream"])
def test_the_example_of_the_docs_is_what_the_command_says(run: str) -> None:
    commands = re.findall(r"^weft size (.*)$", (DOCS / "evidence.md").read_text(), re.MULTILINE)
    (command,) = [c for c in commands if ("--trigger" in c) == (run == "stream")]
    words = shlex.split(command)
    words[0] = str(DOCS.parent / words[0])
    assert sized(*words) == (DOCS / "data" / f"forty_windows_{run}.txt").read_text()


def test_more_executors_need_less_memory_each() -> None:
    stream = ("-e", SQL, "--rate", "1e5", "--keys", "1000000", "--trigger", "1 minute")
    few, many = (sized(*stream, "--executors", n) for n in ("2", "32"))
    assert "open slices" in few or "open windows" in few
    assert _gib(many) < _gib(few)


def _gib(text: str) -> float:
    units = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
    told = re.findall(r"^spark\.executor\S* +([\d.]+) (\w+)$", text, re.MULTILINE)
    return sum(float(number) * units[unit] for number, unit in told) / 2**30


def test_what_is_not_said_is_assumed_and_told() -> None:
    assert "assumed" in sized("-e", SQL)
    distinct = SQL.replace("MIN(v)", "COUNT(DISTINCT v)")
    assert "has no bound but the events" in sized("-e", distinct, "--rate", "10", "--keys", "5")
