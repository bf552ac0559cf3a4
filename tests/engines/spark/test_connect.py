"""The Spark tests pass on a Connect session as well: nothing needs an RDD or the JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.soak]
HERE = Path(__file__).parent


@pytest.mark.skipif("SPARK_REMOTE" in os.environ, reason="runs over Connect already")
def test_every_spark_test_over_connect() -> None:
    """Run them in another process, which starts a Connect server of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE)]
    environment = os.environ | {"SPARK_REMOTE": "local[2]"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=HERE.parents[2]
    )
    assert done.returncode == 0, done.stdout[-4000:]
