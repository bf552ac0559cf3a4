"""`weft bench` hands names and paths to the bench, and its verdict to the shell."""

from __future__ import annotations

from typer.testing import CliRunner

from weft import bench
from weft.cli.app import app


def test_list_shows_every_entry_and_runs_none():
    result = CliRunner().invoke(app, ["bench", "--list"], env={"COLUMNS": "300"})
    assert result.exit_code == 0
    assert all(entry.name in result.stdout for entry in bench.entries())


def test_an_unknown_entry_is_bad_input():
    result = CliRunner().invoke(app, ["bench", "no/such/entry", "--quick"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: no bench entry is named 'no/such/entry'\nhint: ")
