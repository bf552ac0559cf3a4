"""Executors and their Python: the driver's own where nobody chose another, or one clear error."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.kills]
JOB = """
from pyspark.sql import SparkSession

import weft
from weft.generate import sensors

builder = SparkSession.builder.master("local[2]")
session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
frame = session.createDataFrame(sensors(200, 2, devices=3, rate=1.0))
asked = {"windows": {"1m": weft.tumbling("1 minute")}, "aggs": {"n": weft.agg.count()}}
try:
    result = weft.aggregate(frame, time="ts", strategy="columnar", **asked)
    print("rows", sum(row.n for row in result.collect()))
except weft.WeftError as error:
    print("refused", error)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python of the same version without any package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder / "bin"


def run_job(folder: Path, bare: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the job as a user does, `python job.py`, where python3 is another one."""
    job = folder / "job.py"
    job.write_text(JOB)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "PYTHON"))}
    environment = kept | {"PATH": f"{bare}{os.pathsep}{kept['PATH']}"} | variables
    command = [sys.executable, str(job)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)


def test_executors_on_one_machine_run_the_python_of_the_driver(tmp_path: Path, bare: Path) -> None:
    done = run_job(tmp_path, bare)
    assert done.returncode == 0, done.stderr
    assert "rows 200" in done.stdout


def test_a_python_without_weft_is_named_before_anything_runs(tmp_path: Path, bare: Path) -> None:
    chosen = str(bare / "python3")
    done = run_job(tmp_path, bare, PYSPARK_PYTHON=chosen)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    assert lines == [
        "refused the columnar strategy runs on Spark's executors, and their Python "
        f"({chosen}) has no weft and no numpy and no pyarrow and no numba and no sqlglot",
        f"hint: set PYSPARK_PYTHON to a Python that has weft, such as {sys.executable}, or ship "
        "weft with the job; strategy='native' needs no Python there",
    ]
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
