"""Filters and key sets on the local engine, against queries apart and DuckDB's statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import weft
from weft.bench.frame import Contender, Entry
from weft.bench.suite.local.peers import THREADS
from weft.bench.suite.mixed.inputs import clicks, plan_together, plans_apart
from weft.bench.suite.mixed.races import Races
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.frame import Runner
    from weft.query import Query, Workload

Answer = dict[str, pa.Table]


class Inputs(NamedTuple):
    """Clicks in memory, and what is asked of them."""

    table: pa.Table
    workload: Workload


def _inputs(workload: Callable[[], Workload]) -> Callable[..., Inputs]:
    return lambda events: Inputs(clicks(events), workload())


def _start_together(inputs: Inputs) -> Runner:
    plan = plan_together(inputs.workload, inputs.table.num_rows, "local")

    def runner() -> Answer:
        found = weft.run(plan, {"clicks": inputs.table}, engine="local")
        return found if isinstance(found, dict) else {plan.queries[0].name: found}

    return runner


def _start_apart(inputs: Inputs) -> Runner:
    plans = plans_apart(inputs.workload, inputs.table.num_rows, "local")

    def runner() -> Answer:
        answer: Answer = {}
        for plan in plans:
            found = weft.run(plan, {"clicks": inputs.table}, engine="local")
            answer |= found if isinstance(found, dict) else {plan.queries[0].name: found}
        return answer

    return runner


def _start_duckdb(inputs: Inputs) -> Runner:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.register("clicks", inputs.table)
    connection.execute(
        "CREATE VIEW events AS "
        "SELECT epoch_us(ts) AS us, customer, merchant, action, amount FROM clicks"
    )
    queries = [query for query in inputs.workload if isinstance(query, weft.Query)]
    texts = {query.name: _duckdb_sql(query) for query in queries}
    return lambda: {name: connection.sql(text).to_arrow_table() for name, text in texts.items()}


def _duckdb_sql(query: Query) -> str:
    ((_, window),) = query.windows
    assert isinstance(window, PeriodicWindow)
    slide, copies = window.slide_us, window.range_us // window.slide_us
    keys = "".join(f'"{name}", ' for name, _ in query.keys)
    calls = ", ".join(f"{call} AS {alias}" for alias, call in query.aggs)
    source = "events" if copies == 1 else f"events, range({copies}) AS copies(i)"
    start = f"us // {slide}" if copies == 1 else f"us // {slide} - i"
    where = "" if query.where is None else f" WHERE {query.where}"
    return (
        f"SELECT {keys}({start}) * {slide} AS start_us, {calls} FROM {source}{where} "
        f"GROUP BY {keys}{start}"
    )


def same_totals(expected: Answer, answer: Answer) -> str:
    """Compare how many rows there are of each query, and what their counts and totals add up to.

    >>> one = {"q": pa.table({"n": [1, 2], "total": [0.5, 1.0]})}
    >>> same_totals(one, one), same_totals(one, {"q": pa.table({"n": [3], "total": [1.5]})})
    ('', 'q: expected 2 rows, 3 events, 1.5 in all, got 1 rows, 3 events, 1.5 in all')
    """
    for query, table in expected.items():
        wanted, got = _totals(table), _totals(answer[query])
        if wanted != got:
            return f"{query}: expected {wanted}, got {got}"
    return ""


def _totals(table: pa.Table) -> str:
    events, total = (pc.sum(table[name]).as_py() for name in ("n", "total"))
    return f"{table.num_rows} rows, {events} events, {total} in all"


_RACES = Races("local", _inputs, same_totals, Contender(_start_apart), Contender(_start_together))
_CONTENDERS = {
    "duckdb": Contender(_start_duckdb, needs=("duckdb",)),
    "apart": _RACES.apart,
    "weft": _RACES.together,
}
ENTRIES: tuple[Entry, ...] = (_RACES.mixed_24("duckdb", _CONTENDERS, 8.0), *_RACES.no_worse())
