"""The golden files' own rules: what a case is, and how one is rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from golden.loader import read, rewrite

if TYPE_CHECKING:
    from pathlib import Path

FILE = """# about

case  one
in 1

in 2
----
out 1

out 2

case  two
----
out
"""


def test_cases_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.test"
    path.write_text(FILE)
    assert [(c.title, c.text, c.want) for c in read(path)] == [
        ("one", "in 1\n\nin 2", "out 1\n\nout 2"),
        ("two", "", "out"),
    ]


def test_rewriting_changes_one_case_and_settles(tmp_path: Path) -> None:
    path = tmp_path / "a.test"
    path.write_text(FILE)
    for _ in range(2):
        for case in read(path):
            rewrite(case, f"new {case.title}")
    assert path.read_text() == (
        "# about\n\ncase  one\nin 1\n\nin 2\n----\nnew one\n\ncase  two\n----\nnew two\n"
    )


@pytest.mark.parametrize("damage", [("----\nout 1", "out 1"), ("case  two", "case  one")])
def test_malformed_files_are_refused(tmp_path: Path, damage: tuple[str, str]) -> None:
    path = tmp_path / "a.test"
    path.write_text(FILE.replace(*damage))
    with pytest.raises(AssertionError):
        read(path)
