"""Tests run in two processes, and whatever starts Spark in one of them: one session at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "scripts" / "test.sh"

MARKED = """
import pytest

@pytest.mark.spark
def test_of_spark():
    print("in", __import__("os").getpid())
    assert {spark}

def test_of_others():
    assert {others}
"""


def outcome(folder: Path, words: list[str], **passes: bool) -> subprocess.CompletedProcess[str]:
    (folder / "test_marked.py").write_text(MARKED.format(**passes))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = spark\n  soak\n")
    environment = {**os.environ, "PYTEST": f"{sys.executable} -m pytest -p no:cacheprovider"}
    command = ["bash", RUN, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_test_without_the_mark_finds_no_java_to_start() -> None:
    assert not Path(os.environ["JAVA_HOME"]).exists()


def test_both_halves_run_and_are_told(tmp_path: Path) -> None:
    run = outcome(tmp_path, [], spark=True, others=True)
    assert run.returncode == 0
    assert run.stdout.count("1 passed, 1 deselected") == 2


@pytest.mark.parametrize("failing", ["spark", "others"])
def test_either_half_can_fail_the_run(tmp_path: Path, failing: str) -> None:
    passes = {"spark": True, "others": True} | {failing: False}
    run = outcome(tmp_path, [], **passes)
    assert run.returncode == 1
    assert f"test_of_{failing}" in run.stdout


def test_words_that_pick_from_one_half_only_are_no_failure(tmp_path: Path) -> None:
    assert outcome(tmp_path, ["-k", "others"], spark=False, others=True).returncode == 0
    assert outcome(tmp_path, ["-k", "nothing"], spark=True, others=True).returncode == 5
