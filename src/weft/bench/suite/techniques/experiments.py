"""Experiments 6 and 7 of Shein & Chrysanthis: estimated beside actual throughput, in sessions.

A plan of WeaveShare or TriWeave is made for every technique with the published cost model; its
estimate is one over its cost. A session then runs the plan as fast as it can. Both are normalized
by their greatest figure, and differ by the deviation.
"""

from __future__ import annotations

from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING

from weft import agg
from weft.bench.frame import Column, Entry, Panel, Row, Sheet, Table
from weft.generate.workloads import WeaveSetting
from weft.planners.portfolio import optimize
from weft.query import Query
from weft.statistics import Statistics
from weft.techniques import TECHNIQUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.plan import Plan

_TECHNIQUES = ("naive", "flat_fat", "flat_fit", "slick_deque_inv", "slick_deque")
_PUBLISHED = {"weave": 0.31, "triweave": 0.14}
_QUERIES, _QUICK_QUERIES = (10, 30, 100), (4,)


def _plan(planner: str, technique: str, queries: int) -> Plan:
    setting = WeaveSetting(queries=queries, slide_max=100, overlap_max=100)  # fit a session
    inverse = "invertible" in TECHNIQUES[technique].needs
    windows = {f"w{at}": window for at, window in enumerate(setting.windows(0))}
    aggregate = agg.sum("n") if inverse else agg.max("n")
    query = Query("q", source="s", time="ts", windows=windows, aggs={"v": aggregate})
    return optimize(
        query,
        planner,
        "local",
        Statistics(rate=float(setting.rate)),
        "paper",
        exact_columns={"s": frozenset({"n"})},
        technique=technique,
    )


def _results_per_second(plan: Plan, seconds: int, steps: int) -> float:
    """Push events of so many seconds at a time, at full speed, and count what comes back."""
    import numpy as np
    import pyarrow as pa

    from weft.sessions.local_session import LocalSession

    session = LocalSession(plan)
    count, taken = 0, 0.0
    for step in range(2 * steps):  # the first half fills the windows
        times = np.arange(step * seconds, (step + 1) * seconds)
        columns = {"ts": times * 1_000_000, "n": times * 7919 % 10_007}
        table = pa.table({name: pa.array(column) for name, column in columns.items()})
        start = perf_counter()
        closed = session.push("s", table)
        if step >= steps:
            taken += perf_counter() - start
            count += closed.num_rows
    return count / taken


def _computing(planner: str) -> Callable[[bool], Sheet]:
    def compute(quick: bool) -> Sheet:
        seconds, steps = (50, 4) if quick else (1_000, 20)
        measured: list[tuple[int, str, float, float]] = []
        for queries in _QUICK_QUERIES if quick else _QUERIES:
            for technique in _TECHNIQUES:
                plan = _plan(planner, technique, queries)
                actual = _results_per_second(plan, seconds, steps)
                # A plan's cost is for all queries together: throughput is answers by cost.
                measured.append((queries, technique, 1 / plan.cost, actual))
        rows: list[Row] = []
        deviations = []
        for queries in dict.fromkeys(one[0] for one in measured):
            own = [one for one in measured if one[0] == queries]
            most_estimated, most_actual = max(o[2] for o in own), max(o[3] for o in own)
            for _, technique, estimated, actual in own:
                shares = estimated / most_estimated, actual / most_actual
                deviations.append(abs(shares[0] - shares[1]))
                rows.append(
                    {
                        "queries": queries,
                        "technique": technique,
                        "estimated": shares[0],
                        "results/s": actual,
                        "actual": shares[1],
                        "deviation": deviations[-1],
                        "paper": None,
                    }
                )
        mean: Row = {
            "technique": "mean",
            "deviation": fmean(deviations),
            "paper": _PUBLISHED[planner],
        }
        return Sheet((*rows, mean), panels=_panels(rows))

    return compute


def _panels(rows: list[Row]) -> tuple[Panel, ...]:
    found = []
    for column in ("estimated", "actual"):
        lines: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        for row in rows:
            name, x, y = str(row["technique"]), row["queries"], row[column]
            assert isinstance(x, int)
            assert isinstance(y, float)
            xs, ys = lines.get(name, ((), ()))
            lines[name] = ((*xs, float(x)), (*ys, y))
        found.append(
            Panel(f"{column} throughput, of the greatest", "queries", column, lines, log_x=True)
        )
    return tuple(found)


def _table(number: int, planner: str, words: str) -> Table:
    return Table(
        name=f"techniques/experiment_{number}",
        question=f"{words}: is the throughput in a session what the published model estimates?",
        columns=(
            Column("queries", ",d"),
            Column("technique"),
            Column("estimated", ".3f"),
            Column("results/s", ",.0f"),
            Column("actual", ".3f"),
            Column("deviation", ".2f"),
            Column("paper", ".2f", published=True),
        ),
        compute=_computing(planner),
    )


ENTRIES: tuple[Entry, ...] = (
    _table(6, "weave", "WeaveShare"),
    _table(7, "triweave", "TriWeave"),
)
