"""`weft run --chart`: windows over time, on a terminal and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.cli.chart import BARS

if TYPE_CHECKING:
    from pathlib import Path

SQL = """-- name: highs
SELECT k, MAX(v) AS hi FROM t GROUP BY k, Windows(Window('1m', TumblingWindow(minute, 1)),
                                                  Window('5m', TumblingWindow(minute, 5)));
-- name: words
SELECT MAX(k) AS word FROM t GROUP BY window(ts, '1 minute')
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    ts = pa.array(range(0, 3600, 30), pa.timestamp("s", "UTC"))
    values = [float(at) if at < 60 else None for at in range(120)]
    pq.write_table(pa.table({"ts": ts, "k": ["a", None] * 60, "v": values}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def run(table: Path, *words: str) -> str:
    given = ["run", "-e", SQL, "--table", f"t={table}", "--engine", "local", "--limit", "0"]
    result = CliRunner().invoke(app, [*given, *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_line_of_bars_for_each_window_and_key(table: Path) -> None:
    text = run(table, "--chart")
    lines = [line for line in text.splitlines() if " to " in line]
    assert lines[0] == "highs: hi, 1970-01-01 00:00:00 to 1970-01-01 00:59:00"
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["1m", "NULL"], ["1m", "a"], ["5m", "NULL"], ["5m", "a"],
    ]  # fmt: skip
    assert lines[2].endswith("0 to 58")
    bars = lines[2][10:70]
    assert set(bars[:29]) == set(BARS), "it rises from the lowest to the highest"
    assert bars[31:].strip() == "", "windows without a value are gaps"
    assert "words: nothing to draw" in text


def test_a_picture_for_each_query(table: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = run(table, "--chart-to", str(tmp_path / "out.svg"))
    assert "out-highs.svg" in text
    assert "5m NULL" in (tmp_path / "out-highs.svg").read_text()
    given = ["run", "-e", SQL, "-t", f"t={table}", "--engine", "local", "--chart-to", "out.xyz"]
    refused = CliRunner().invoke(app, given)
    assert refused.exit_code == 2
    assert "name a file that ends in .svg" in refused.output
