"""Compiled kernels are kept once for all copies of the same source, and never mixed up."""

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import weft
from weft.kernels.kept import KernelCache, SharedFolder

SOURCES = Path(weft.__file__).parent
COUNT_ONE = """
from weft.kernels.techniques import naive
from weft.kernels.operations import COUNT
import numpy as np
store = naive.new(COUNT, capacity=4)
naive.size(store, 0)
stats = naive.size.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


def hits_and_misses(path: Path, **environment: str) -> tuple[int, int, str]:
    """Use a kernel of a copy of weft, in a process of its own."""
    without = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    run = subprocess.run(
        [sys.executable, "-c", COUNT_ONE],
        env={**without, "PYTHONPATH": str(path), **environment},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    hits, misses, where = run.stdout.split()
    return int(hits), int(misses), where


def copy_of(folder: Path) -> Path:
    """Copy the kernels, and what they import, without anything that was compiled."""
    for path in SOURCES.rglob("*.py"):
        to = folder / "weft" / path.relative_to(SOURCES)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(path.read_bytes())
    return folder


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_copies_of_one_source_compile_once_and_an_edit_compiles_again(tmp_path: Path) -> None:
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first, second = copy_of(tmp_path / "one"), copy_of(tmp_path / "two")
    assert hits_and_misses(first, **home)[:2] == (0, 1)
    hits, misses, where = hits_and_misses(second, **home)
    assert (hits, misses) == (1, 0)
    assert where.startswith(str(tmp_path / "cache"))
    edited = second / "weft" / "kernels" / "compensated.py"
    edited.write_text(edited.read_text() + "\n# another word\n")
    assert hits_and_misses(second, **home)[:2] == (0, 1)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_home_that_cannot_be_made_leaves_the_choice_to_numba(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("not a folder")
    copy = copy_of(tmp_path / "one")
    _, misses, where = hits_and_misses(copy, XDG_CACHE_HOME=str(taken))
    assert misses == 1
    assert where.startswith(str(copy))


def test_a_source_in_an_archive_is_left_to_numba(tmp_path: Path) -> None:
    # Its digest cannot be taken, so another version would have the same name.
    archive = tmp_path / "weft.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("weft/kernels/some.py", "")
    assert SharedFolder.from_function(lambda: None, str(archive / "weft/kernels/some.py")) is None


def test_two_processes_that_count_alike_choose_names_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def kernel() -> None: ...

    one, other = KernelCache(kernel)._cache_file, KernelCache(kernel)._cache_file
    assert one._index_path == other._index_path
    assert one._data_name(1) != other._data_name(1)


def test_what_is_old_is_removed_when_something_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = SharedFolder(lambda: None)
    place = Path(folder.get_cache_path())
    place.mkdir(parents=True)
    old, new = place / "old.nbc", place / "new.nbc"
    old.touch(), new.touch()
    months = time.time() - 90 * 86_400
    os.utime(old, (months, months))
    folder.ensure_cache_path()
    assert [path.name for path in place.iterdir()] == ["new.nbc"]
