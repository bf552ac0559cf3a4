"""Tests run in two lanes, which take parts as they come free; one part has Spark for itself."""

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

@pytest.mark.spark
@pytest.mark.kills
def test_of_kills():
    assert {kills}

def test_of_others():
    assert {others}
"""
KERNEL = """
def test_of_kernels():
    assert __import__("os").environ.get("NUMBA_DISABLE_JIT") != "1" or {kernels}
"""


def outcome(folder: Path, words: list[str], **passes: bool) -> subprocess.CompletedProcess[str]:
    parts = ("spark", "kills", "others", "kernels", "types")
    passes = dict.fromkeys(parts, True) | passes
    kernels = folder / "tests" / "unit" / "kernels"
    kernels.mkdir(parents=True)
    (folder / "test_marked.py").write_text(MARKED.format(**passes))
    (kernels / "test_kernels.py").write_text(KERNEL.format(**passes))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = spark\n  kills\n  soak\n")
    # Plugins take most of the time that a run of four small tests has, and none of them is needed.
    plain = {"PYTEST": f"{sys.executable} -m pytest", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    wrong = "raise(SystemExit('test_of_types'))"
    plain["TYPES"] = "true" if passes["types"] else f"{sys.executable} -c {wrong}"
    environment = os.environ | plain
    command = ["bash", RUN, *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_test_without_the_mark_finds_no_java_to_start() -> None:
    assert not Path(os.environ["JAVA_HOME"]).exists()


def test_both_lanes_run_everything_and_kernels_twice(tmp_path: Path) -> None:
    run = outcome(tmp_path, [])
    assert run.returncode == 0
    assert run.stdout.count("1 passed, 3 deselected") == 2  # sharing a session, and killing
    assert run.stdout.count("2 passed, 2 deselected") == 1  # all that need no Spark
    assert "without compiling" in run.stdout
    assert run.stdout.count(" 1 passed in ") == 1


@pytest.mark.parametrize("failing", ["spark", "kills", "others", "kernels", "types"])
def test_any_part_can_fail_the_run(tmp_path: Path, failing: str) -> None:
    run = outcome(tmp_path, [], **{failing: False})
    assert run.returncode == 1
    assert f"test_of_{failing}" in run.stdout


def test_words_that_pick_from_one_part_only_are_no_failure(tmp_path: Path) -> None:
    assert outcome(tmp_path / "some", ["-k", "others"], spark=False).returncode == 0
    assert outcome(tmp_path / "none", ["-k", "nothing"]).returncode == 5
