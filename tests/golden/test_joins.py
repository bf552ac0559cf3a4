"""Plans of joins: SQL and statistics in, every placement with its cost out, as papers count.

A line `-- source: rate R, groups G, values V` gives the statistics of a source; `-- planner: P`
asks for a placement.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from golden.loader import Case, cases
from weft.parsing import parse
from weft.planners.portfolio import optimize
from weft.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Callable

_SOURCE = re.compile(r"-- (\w+): rate (\S+), groups (\d+), values (\d+)")
_PLANNER = re.compile(r"-- planner: (\w+)")


@pytest.mark.parametrize("case", cases("joins/*.test"))
def test_plan(case: Case, golden: Callable[[Case, str], None]) -> None:
    known = {
        source: Statistics(rate=float(rate), keys=int(groups), join_values=int(values))
        for source, rate, groups, values in _SOURCE.findall(case.text)
    }
    asked = _PLANNER.search(case.text)
    planner = "auto" if asked is None else asked[1]
    plan = optimize(parse(case.text), planner, "local", known or None, "paper")
    golden(case, plan.explain())
