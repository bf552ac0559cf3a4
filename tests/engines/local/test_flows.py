"""Runs of slices that become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.windows import flow as flows
from weft.engines.local.windows.flow import Flow, merged

if TYPE_CHECKING:
    import pytest


def test_many_runs_are_merged_in_a_logarithmic_number_of_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when many chunks of a table come before anything closes."""
    runs = [Flow(np.arange(10), np.full(10, at % 40), None, {}) for at in range(64)]
    rows = 0
    pair = flows._merged_pair

    def counting(older: Flow, newer: Flow) -> Flow:
        nonlocal rows
        rows += len(older) + len(newer)
        return pair(older, newer)

    monkeypatch.setattr(flows, "_merged_pair", counting)
    found = merged(runs)
    assert rows <= 640 * 6
    assert found.keys.tolist() == np.repeat(np.arange(10), 40).tolist()
    assert found.starts_us.tolist() == np.tile(np.arange(40), 10).tolist()
