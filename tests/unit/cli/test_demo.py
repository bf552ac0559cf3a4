"""`weft demo` shows the whole way, twice in a row, and leaves its files."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.tables import read_table


def test_the_demo_runs_twice_and_leaves_its_files(tmp_path):
    words = ["demo", "--rows", "4000", "--engine", "reference", "-o", str(tmp_path / "out")]
    for _ in range(2):
        result = CliRunner().invoke(app, words)
        assert (result.exit_code, result.stderr) == (0, "")
    shown = result.stdout
    for line in (
        "1. Making 4,000 readings",
        "2. One query asks for six windows",
        "PLAN by independent",
        "3. Running both plans on the reference engine",
        "4. Checking against the reference engine",
        "rows are the same",
        "The gain of sharing: ",
    ):
        assert line in shown
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {
        *("readings.parquet", "features.sql", "features.parquet"),
        *("plan.html", "plan.svg", "gain.svg"),
    }
    assert "times less" in (tmp_path / "out" / "gain.svg").read_text()
    assert read_table(tmp_path / "out" / "features.parquet").num_rows > 0


@pytest.mark.parametrize(
    ("words", "message"), [(["--engine", "abacus"], "unknown engine 'abacus'")]
)
def test_bad_input_is_refused(tmp_path, words, message):
    result = CliRunner().invoke(app, ["demo", "--rows", "10", "-o", str(tmp_path / "out"), *words])
    assert result.exit_code == 2
    assert message in result.stderr
