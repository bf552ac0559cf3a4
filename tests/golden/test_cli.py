"""Command lines in; standard output, standard error and exit status out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from golden.loader import Case, cases
from weft.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable

READINGS = """\
ts,device,temp
2026-01-01T00:00:00Z,a,20.5
2026-01-01T00:05:00Z,b,19
2026-01-01T00:10:00Z,a,
2026-01-01T00:19:59.999999Z,a,21.25
2026-01-01T00:20:00Z,b,18.5
"""
LOWS = """\
-- name: lows
SELECT device, window.start, MIN(temp) AS lo, COUNT(*) AS n
FROM readings
GROUP BY device, window(ts, '20 minutes')
"""
TWO = (
    LOWS.rstrip()
    + ";\n"
    + LOWS.replace("lows", "highs").replace("MIN(temp) AS lo", "MAX(temp) AS hi")
)
FILES = {
    "readings.csv": READINGS,
    "lows.sql": LOWS,
    "two.sql": TWO,
    "misspelt.sql": LOWS.replace("minutes", "minuts"),
    "unknown-column.sql": LOWS.replace("MIN(temp)", "MIN(tmp)"),
    "readings.xlsx": "not a table",
    "binary.sql": "",
}


@pytest.mark.parametrize("case", cases("cli/*.test", on_spark="weft run "))
def test_command_line(
    case: Case, golden: Callable[[Case, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)
    Path("binary.sql").write_bytes(b"\xff\xfe\x00")
    Path("empty").mkdir()
    golden(case, "\n".join(_session(case.text.splitlines())))


def _session(lines: list[str]) -> list[str]:
    """Run each line, and print what a terminal would show; lines of standard error begin with !"""
    shown: list[str] = []
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "weft", f"a case runs weft and nothing else: {line}"
        result = CliRunner().invoke(app, words, prog_name="weft", env={"COLUMNS": "80"})
        shown += [f"$ {line}"] if len(lines) > 1 else []
        shown += result.stdout.rstrip("\n").split("\n") if result.stdout else []
        shown += [
            f"! {error}".rstrip() for error in result.stderr.rstrip("\n").split("\n") if error
        ]
        shown += [f"exit {result.exit_code}"] if result.exit_code else []
    return [line.rstrip() for line in shown]
