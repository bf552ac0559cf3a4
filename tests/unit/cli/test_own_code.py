"""Modules and keys of the user's, given on the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import weft
from weft.aggregates.base import custom_names
from weft.cli.inputs import import_all, key_of

if TYPE_CHECKING:
    from pathlib import Path

OWN = """
import weft
weft.agg.custom("from_the_folder", lift=int, combine=max, lower=int, identity=0,
                commutative=True, idempotent=True)
"""


def test_a_module_of_the_folder_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_of_the_folder.py").write_text(OWN)
    (tmp_path / "own_broken.py").write_text("1 / 0")
    import_all(["own_of_the_folder"])
    assert "from_the_folder" in custom_names()
    assert str(weft.parse("SELECT from_the_folder(x) AS y FROM r GROUP BY window(ts, '1 minute')"))
    for module in ("own_broken", "own_missing"):
        with pytest.raises(weft.WeftError, match=f"cannot import {module}: "):
            import_all([module])


def test_a_key_is_all_bytes_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\x00binary\n" * 4)
    assert key_of(tmp_path / "key") == b"\x00binary\n" * 4
    with pytest.raises(weft.WeftError, match="cannot read the key"):
        key_of(tmp_path / "missing")
