"""The stream benchmarks check their answers; here on few events, without their bars."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.bench import entries
from weft.bench.frame import Race, Table
from weft.bench.race import run_entry

pytestmark = [pytest.mark.spark, pytest.mark.soak]
ENTRIES = {entry.name: entry for entry in entries() if entry.group == "spark-stream"}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_quick_run_answers_right(name: str) -> None:
    entry = ENTRIES[name]
    assert isinstance(entry, Race | Table)
    if isinstance(entry, Race):
        entry = replace(entry, rounds=1)
    assert run_entry(entry, quick=True).status in ("ok", "missed")
