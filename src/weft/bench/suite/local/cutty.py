"""Shared slicing by the number of queries, as Figures 8 and 9 of Carbone et al., "Cutty" show it.

Reduce calls, partials stored and throughput of 1 to 100 queries: periodic windows of random ranges
and slides, then sessions, which no periodic technique can cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bench.frame import Column, Entry, Limit, Panel, Row, Sheet, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.suite.local.cutty_runs import Windows

_QUERIES = (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
_QUICK_QUERIES = (1, 10)
_RECORDS = 2_000_000
_QUICK_RECORDS = 20_000
_QUICK_SCALE = 50
_PERIODIC = ("cutty", "cutty, lazy", "pairs", "pairs+", "record", "naive")
_SESSIONS = ("cutty", "cutty, lazy", "record", "naive")
_DRAWN = {
    "store and merge calls": "reduce calls of the store",
    "partials": "partials stored",
    "million records/s": "million records a second",
}


def _compute(
    names: tuple[str, ...], draw: Callable[[int, int, int], Windows], quick: bool
) -> Sheet:
    from weft.bench.suite.kernels.oracles import identical
    from weft.bench.suite.local.cutty_runs import run, sums_of

    records = _QUICK_RECORDS if quick else _RECORDS
    values = np.random.default_rng(17).integers(1, 1000, records)
    rows: list[Row] = []
    wrong: list[str] = []
    for queries in _QUICK_QUERIES if quick else _QUERIES:
        windows = draw(queries, records, _QUICK_SCALE if quick else 1)
        expected = sums_of(values, windows)
        found = {name: run(name, values, windows) for name in names}
        ours = found["cutty"]
        our_calls = ours.update + ours.merge  # none, where every window is one slice
        for name, counts in found.items():
            if difference := identical(expected, counts.answers):
                wrong.append(f"{name}, {queries} queries: {difference}")
            of_store = counts.update + counts.merge
            row: dict[str, Any] = {
                "technique": name,
                "queries": queries,
                "lift calls": counts.lift,
                "update calls": counts.update,
                "merge calls": counts.merge,
                "store and merge calls": of_store,
                "calls / cutty": of_store / our_calls if our_calls else None,
                "partials": counts.stored,
                "million records/s": records / counts.seconds / 1e6,
                "speed of cutty": counts.seconds / ours.seconds,
            }
            rows.append(row)
    return Sheet(tuple(rows), tuple(wrong), _panels(tuple(rows)))


def _panels(rows: tuple[Row, ...]) -> tuple[Panel, ...]:
    panels = []
    for column, title in _DRAWN.items():
        drawn: dict[str, tuple[list[float], list[float]]] = {}
        for row in rows:
            x, y = drawn.setdefault(str(row["technique"]), ([], []))
            queries, figure = row["queries"], row[column]
            assert isinstance(queries, int)
            assert isinstance(figure, int | float)
            x.append(float(queries))
            y.append(float(figure))
        lines = {name: (tuple(x), tuple(y)) for name, (x, y) in drawn.items()}
        panels.append(Panel(title, "queries", title, lines, log_y=True))
    return tuple(panels)


def _periodic(quick: bool) -> Sheet:
    from weft.bench.suite.local.cutty_runs import periodic_windows

    return _compute(_PERIODIC, periodic_windows, quick)


def _sessions(quick: bool) -> Sheet:
    from weft.bench.suite.local.cutty_runs import session_windows

    return _compute(_SESSIONS, session_windows, quick)


_COLUMNS = (
    Column("technique"),
    Column("queries", "d"),
    Column("lift calls", ",d"),
    Column("update calls", ",d"),
    Column("merge calls", ",d"),
    Column("store and merge calls", ",d"),
    Column("calls / cutty", ".3g"),
    Column("partials", ",d"),
    Column("million records/s", ".3g"),
    Column("speed of cutty", ".3g"),
)

PERIODIC = Table(
    name="local/cutty_periodic",
    question="What do 1 to 100 sliding windows cost by each way to share slices?",
    columns=_COLUMNS,
    compute=_periodic,
    limits=(
        Limit("calls / cutty", at_least=1, rows={"technique": "pairs*"}),
        Limit("calls / cutty", at_least=10, rows={"technique": "record"}, at_quick=False),
        Limit("speed of cutty", at_least=2, rows={"technique": "record"}, at_quick=False),
    ),
)

SESSIONS = Table(
    name="local/cutty_sessions",
    question="What do 1 to 100 session windows cost when begins alone cut slices?",
    columns=_COLUMNS,
    compute=_sessions,
    limits=(Limit("calls / cutty", at_least=10, rows={"technique": "record"}, at_quick=False),),
)

ENTRIES: tuple[Entry, ...] = (PERIODIC, SESSIONS)
