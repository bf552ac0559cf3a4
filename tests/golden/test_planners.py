"""One golden file per planner: a workload in, its plan out, in the papers' counting.

No case depends on calibrated costs, so measuring a machine again changes no golden file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from golden.loader import Case, cases
from weft.aggregates import AggregateCall
from weft.planners.portfolio import PLANNERS, optimize
from weft.query import Query, Workload
from weft.statistics import Statistics
from weft.window import Window, calendar, hopping, session, tumbling

if TYPE_CHECKING:
    from collections.abc import Callable

_CALL = re.compile(r"(\w+)\((\w*)\)")
_KINDS = {"TUMBLE": tumbling, "HOP": hopping, "SESSION": session, "CALENDAR": calendar}


def window_of(text: str) -> Window:
    kind, _, durations = text.partition(" ")
    size, _, offset = durations.partition(" @")
    first, _, second = size.partition("/")
    return _KINDS[kind](*filter(None, (first, second)), **({"offset": offset} if offset else {}))


def query_of(name: str, line: str) -> Query:
    """Read `min(temp), count() by device over TUMBLE 20m, HOP 1h/5m`."""
    asked, _, windows = line.partition(" over ")
    calls, _, keys = asked.partition(" by ")
    return Query(
        name,
        source="readings",
        time="ts",
        keys=keys.split(", ") if keys else [],
        windows={text: window_of(text) for text in windows.split(", ")},
        aggs={
            f"{f}_{arg}".rstrip("_"): AggregateCall(f, (arg,) if arg else ())
            for f, arg in _CALL.findall(calls)
        },
    )


@pytest.mark.parametrize("case", cases("planners/*.test"))
def test_plan(case: Case, golden: Callable[[Case, str], None]) -> None:
    """A line `using x` forces the technique; every other line is a query."""
    lines = case.text.splitlines()
    techniques = [t for line in lines if line.startswith("using ") for t in line[6:].split(", ")]
    queries = [line for line in lines if not line.startswith("using ")]
    plan = optimize(
        Workload(query_of(f"q{i}", line) for i, line in enumerate(queries)),
        planner=case.path.stem,
        model="paper",
        statistics=Statistics(rate=1 / 60, keys=1),
        exact_columns={"readings": frozenset({"n"})},
        technique=techniques[0] if techniques else None,
    )
    golden(case, plan.explain())


def test_every_planner_has_a_golden_file_with_a_case_that_shares_nothing() -> None:
    files = {param.values[0].path.stem for param in cases("planners/*.test")}
    assert files == {*PLANNERS, "auto"}
    for name in PLANNERS:
        titles = [p.values[0].title for p in cases(f"planners/{name}.test")]
        assert any(title.startswith("unchanged") for title in titles), name
