"""Help and plans come quickly: nothing heavy is loaded before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SQL = "SELECT device, MIN(temp) AS lo FROM readings GROUP BY device, window(ts, '20 minutes')"
SCRIPT = """
import sys
from weft.cli import main
try:
    main()
finally:
    loaded = sorted({name.partition(".")[0] for name in sys.modules} & set(FORBIDDEN))
    print(loaded, file=sys.stderr)
"""
HEAVY = ["pyspark", "numba", "pandas", "matplotlib"]


@pytest.mark.parametrize(
    ("words", "forbidden"),
    [
        (["--help"], [*HEAVY, "numpy", "pyarrow", "sqlglot", "rich"]),
        (["run", "--help"], [*HEAVY, "numpy", "pyarrow", "sqlglot", "rich"]),
        (["explain", "-e", SQL], [*HEAVY, "pyarrow", "rich"]),
    ],
    ids=["help", "run help", "explain"],
)
def test_nothing_heavy_is_loaded(words, forbidden):
    script = f"FORBIDDEN = {forbidden}\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_generating_loads_no_pandas(tmp_path):
    script = f"FORBIDDEN = {HEAVY}\n{SCRIPT}"
    words = ["generate", "sensors", "--rows", "10", "-o", str(tmp_path / "s")]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "[]\n")
