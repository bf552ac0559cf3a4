"""Plans of streams: SQL and statistics in, EXPLAIN with the choice of a strategy out.

A line `-- rate R, keys K` gives the statistics, `, strategy S` after it forces a strategy. Prices
are those below, so measuring a machine again changes no golden file.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from golden.loader import Case, cases
from weft.cost.prices import Coefficients
from weft.cost.streams import CATCHING_UP_US, STREAM, STREAM_COLUMNAR
from weft.parsing import parse
from weft.planners.portfolio import optimize
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_KNOWN = re.compile(r"-- rate (\S+), keys (\d+)(?:, strategy (\w+))?")
PRICED = (
    "scan_event", "fold_event", "lift", "read_partial", "combine", "write_partial", "shuffle_row",
    "state_row", "emit_row", "turn",
)  # fmt: skip
PRICES = {
    STREAM: (50, 50, 10, 500, 10, 500, 1000, 500, 100, 100_000_000),
    STREAM_COLUMNAR: (20, 20, 10, 50, 10, 50, 1500, 50, 100, 400_000_000),
}


@pytest.fixture
def set_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, prices in PRICES.items():
        ns = {f"{what}_ns": float(price) for what, price in zip(PRICED, prices, strict=True)}
        told = asdict(Coefficients(name, "set for a test", **ns))
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    monkeypatch.setenv("WEFT_COEFFICIENTS", str(tmp_path))


@pytest.mark.parametrize("case", cases("streams/*.test"))
def test_plan(case: Case, golden: Callable[[Case, str], None], set_prices: None) -> None:
    asked = _KNOWN.search(case.text)
    assert asked is not None
    plan = optimize(
        parse(case.text),
        statistics=Statistics(rate=float(asked[1]), keys=int(asked[2])),
        strategy=asked[3],
        micro_batch=CATCHING_UP_US,
    )
    golden(case, plan.explain())
