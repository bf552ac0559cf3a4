"""Tests run on two workers, and whatever starts Spark in one of them: one session at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKE = shutil.which("make")


def test_all_tests_of_spark_are_one_group(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        groups = [mark.args for mark in item.iter_markers("xdist_group")]
        assert groups == ([("spark",)] if item.get_closest_marker("spark") else []), item.nodeid


def test_a_test_without_the_mark_finds_no_java_to_start() -> None:
    assert not Path(os.environ["JAVA_HOME"]).exists()


@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_make_test_keeps_groups_together_and_takes_further_words() -> None:
    words = [MAKE, "-C", ROOT, "--dry-run", "test", "ARGS=-k some", "COVERAGE=1"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in shown.splitlines() if line.endswith("-k some"))
    assert "-m pytest -n 2 --dist loadgroup --cov=weft" in line
