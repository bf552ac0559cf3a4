"""The Spark tests pass on a Connect session as well: nothing needs an RDD or the JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HERE = Path(__file__).parent
# One of each: both strategies against stock Spark, user-defined windows, joins, the command line.
SOME = (
    "test_stock.py::test_rows_are_those_of_stock_spark",
    "test_columnar.py::test_queries_of_different_keys_filters_and_outputs",
    "test_columnar.py::test_global_windows_are_sliced_in_parallel",
    "test_joins.py::test_joins_that_differ_in_windows_share_slices_and_nothing_else",
    "test_command_line.py::test_a_folder_of_parquet_is_run_on_spark_by_default",
)


def run_over_connect(*tests: Path | str) -> str:
    """Run tests in another process, which starts a Connect server of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, tests)]
    environment = os.environ | {"SPARK_REMOTE": "local[2]"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=HERE.parents[2]
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="runs over Connect already")
def test_main_paths_over_connect() -> None:
    run_over_connect(*(HERE / test for test in SOME))


@pytest.mark.soak
@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="runs over Connect already")
def test_every_spark_test_over_connect() -> None:
    run_over_connect(HERE)
