"""A run compiles what it needs and no more, and nothing once the common kernels are on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from weft.generate import sensors

if TYPE_CHECKING:
    from pathlib import Path

# The command line in a process of its own, which then tells what it compiled.
COMMAND = """
from numba.core.event import install_recorder
from weft.cli import main

with install_recorder("numba:compile") as recorded:
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
depth, kernels = 0, []
for _, event in recorded.buffer:  # a kernel, and within it what it calls
    if event.is_start and depth == 0:
        kernels.append(event.data["dispatcher"].__name__)
    depth += 1 if event.is_start else -1
print("compiled", *kernels)
"""
EVERYTHING = """
SELECT device, MIN(temp) AS lo, MAX(temp) AS hi, SUM(temp) AS total, AVG(temp) AS mean,
       COUNT(*) AS n FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(Window('20s', TumblingWindow(second, 20)),
                         Window('1m', TumblingWindow(minute, 1)),
                         Window('2m/10s', HoppingWindow(second, 120, 10)))
"""
COUNTS = "SELECT device, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '20 seconds')"


def compiled(sql: str, rows: int, folder: Path, **environment: str) -> list[str]:
    """Return the kernels that a first run over a file compiles, in a process of its own."""
    path = folder / "readings.parquet"
    pq.write_table(sensors(rows, 1), path)
    words = ["run", "-e", sql, "-t", f"readings={path}", "--engine", "local", "--limit", "0"]
    run = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    told, *names = run.stdout.splitlines()[-1].split()
    assert told == "compiled"
    return names


def test_a_run_after_the_set_up_compiles_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "weft.cli.first_use"], check=True)
    assert compiled(EVERYTHING, 100_000, tmp_path) == []


def test_a_run_without_the_set_up_compiles_what_it_needs(tmp_path: Path) -> None:
    names = compiled(COUNTS, 1_000, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert "_count_rows" in names
    assert len(names) <= 12, names
    assert compiled(COUNTS, 1_000, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == []
