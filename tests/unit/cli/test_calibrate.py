"""`weft calibrate` shows what it measured, and keeps it unless told not to."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from typer.testing import CliRunner

from weft.cli.app import app


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--dry-run"]], ids=["kept", "dry run"])
def test_coefficients_are_shown_and_kept(tmp_path, words, monkeypatch):
    module = import_module("weft.calibration.fit")  # a function there has the same name
    monkeypatch.setattr(module, "MOST_SPREAD", 10.0)  # however busy this host is
    result = CliRunner().invoke(
        app,
        ["calibrate", "--engine", "reference", "--events", "60", *words],
        env={"WEFT_COEFFICIENTS": str(tmp_path)},
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert "combine" in result.stdout
    assert "rank correlation of expected and measured times: " in result.stdout
    kept = tmp_path / "reference.json"
    assert kept.exists() is (not words)
    if not words:
        assert json.loads(kept.read_text())["engine"] == "reference"
        assert result.stdout.endswith(f"wrote {kept}\n")


def test_an_engine_without_probes_is_refused():
    result = CliRunner().invoke(app, ["calibrate", "--engine", "abacus"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "abacus" in result.stderr
