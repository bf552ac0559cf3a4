"""Windows that events delimit: slices from begin to begin, shared, and no more than are needed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import weft
from weft.sessions.local_session import LocalSession
from weft.testing import assert_same_rows

ROOT = Path(__file__).parents[3]


def ask(**windows: Any) -> weft.Query:
    aggs = {"n": weft.agg.count(), "lo": weft.agg.min("x"), "last": weft.agg.last("x")}
    return weft.Query("q", source="s", time="ts", windows=windows, aggs=aggs)


def running(query: weft.Query) -> LocalSession:
    return LocalSession(weft.Workload([query]))


def rows_of(found: pa.Table) -> list[tuple[str, int, int]]:
    columns = (found["window"], found["window_start"].cast(pa.int64()), found["n"])
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def counts_of(session: LocalSession) -> int:
    """Return how many slices are held for windows that events delimit."""
    (operator,) = session._streams["s"].operators
    (store,) = operator.delimited
    return 0 if store.kept is None else len(store.kept)


def test_two_measures_share_slices() -> None:
    # Records a to i by time and distance: ten units every six of one, every five of the other.
    minutes, miles = [0, 2, 4, 6, 7, 11, 12, 17, 18], [0, 1, 4, 6, 9, 10, 13, 15, 21]
    query = ask(time=weft.measured("minutes", 10, 6), distance=weft.measured("miles", 10, 5))
    session, found, held = running(query), [], []
    for at, (m, d) in enumerate(zip(minutes, miles, strict=True)):
        event = pa.table({"ts": [at], "minutes": [m], "miles": [d], "x": [at]})
        found += rows_of(session.push("s", event))
        found += rows_of(session.advance(at + 1))
        held.append(counts_of(session))
    # abc | de | f | g | h, as long as an open window begins with them; i begins two more.
    assert held == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert found == [
        ("time", 0, 2), ("distance", 0, 3),  # those that began before zero
        ("time", 0, 5), ("distance", 0, 5),
        ("time", 3, 4), ("distance", 3, 4),
        ("distance", 5, 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "shapes", [[(60, 60), (5, 5)], [(100, 50), (7, 3), (4, 1)], [(10, 3), (4, 4)], [(3, 7)]]
)
def test_there_are_as_many_slices_as_begins_of_open_windows(shapes: list[tuple[int, int]]) -> None:
    query = ask(**{f"{r}/{s}": weft.counting(r, s) for r, s in shapes})
    session, parts = running(query), []
    for seen in range(1, 180):
        parts.append(session.push("s", pa.table({"ts": [seen - 1], "x": [seen % 11]})))
        parts.append(session.advance(seen))
        begins = {
            begin for r, s in shapes for begin in range(0, seen, s) if begin + r > seen
        }  # fmt: skip
        assert counts_of(session) == len(begins)
    parts.append(session.finish())
    table = pa.table({"ts": list(range(179)), "x": [seen % 11 for seen in range(1, 180)]})
    wanted = weft.run(weft.Workload([query]), {"s": table}, engine="reference")
    assert_same_rows(query, pa.concat_tables(parts), wanted)


def test_an_open_session_is_one_slice() -> None:
    session = running(ask(w=weft.session(5)))
    for at in range(0, 400, 4):
        session.push("s", pa.table({"ts": [at], "x": [at]}))
    assert counts_of(session) == 1
    assert session.finish()["n"].to_pylist() == [100]


def test_windows_are_combined_from_slices_and_not_from_events() -> None:
    session = running(ask(w=weft.counting(1000, 10)))
    events = 5000
    for at in range(0, events, 50):
        batch = range(at, at + 50)
        session.push("s", pa.table({"ts": list(batch), "x": list(batch)}))
    per_window = session.metrics.combines / (events / 10)
    assert per_window < 200  # a thousand events, in a hundred slices


@pytest.mark.parametrize("size", [1, 7, 300])
def test_the_trader_sees_in_a_stream_what_the_reference_sees(size: int, capsys: Any) -> None:
    place = ROOT / "examples" / "stock_trader.py"
    spec = importlib.util.spec_from_file_location("stock_trader", place)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    assert "min" in capsys.readouterr().out
    quotes = example.quotes(300)
    query = weft.Query("q", source="s", time="ts", windows={"trader": example.Trader()},
                       aggs={"lo": weft.agg.min("price"), "n": weft.agg.count()})  # fmt: skip
    session = running(query)
    parts = [session.push("s", quotes.slice(at, size)) for at in range(0, 300, size)]
    assert counts_of(session) <= 4
    parts.append(session.finish())
    wanted = weft.run(weft.Workload([query]), {"s": quotes}, engine="reference")
    assert wanted.num_rows > 10
    assert_same_rows(query, pa.concat_tables(parts), wanted)


def test_combines_are_counted_as_they_are_made() -> None:
    query = ask(ten=weft.tumbling(10), forty=weft.tumbling(40))
    table = pa.table({"ts": list(range(0, 80, 5)), "x": [1] * 16})
    session = LocalSession(weft.Workload([query]), planner="slice")
    session.push("s", table)
    session.finish()
    # Eight windows of ten from eight slices: none to combine; two of forty from four each.
    assert session.metrics.combines == 6
