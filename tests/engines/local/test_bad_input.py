"""Late events and bad input: what counts, what is refused, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import weft
from weft.sessions.local_session import LocalSession

CENTURY_US = 100 * 365 * 86_400 * 1_000_000


def query(windows: dict[str, Any], aggs: dict[str, Any] | None = None, **more: Any) -> weft.Query:
    chosen = aggs or {"n": weft.agg.count()}
    return weft.Query("q", source="s", time="ts", windows=windows, aggs=chosen, **more)


def session(windows: dict[str, Any], delay: int = 0, **more: Any) -> LocalSession:
    return LocalSession(weft.Workload([query(windows, **more)]), watermark=delay)


def batch(*times: int | None, **columns: list[Any]) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.int64()), **columns})


def test_an_event_that_is_not_older_than_the_watermark_is_always_counted() -> None:
    stream = session({"10": weft.tumbling(10)}, delay=5)
    stream.push("s", batch(12))
    stream.push("s", batch(7))
    assert stream.push("s", batch(15))["n"].to_pylist() == [1]
    assert stream.metrics.late == {"q": 0}


def test_an_older_event_counts_in_all_its_windows_while_they_are_open() -> None:
    stream = session({"10": weft.tumbling(10), "20": weft.tumbling(20)})
    stream.push("s", batch(14))
    assert stream.push("s", batch(12))["n"].to_pylist() == []
    assert stream.finish()["n"].to_pylist() == [2, 2]
    assert stream.metrics.late == {"q": 0}


def test_a_late_event_is_dropped_from_all_its_windows_and_counted() -> None:
    stream = session({"10": weft.tumbling(10), "20": weft.tumbling(20)})
    assert stream.push("s", batch(3, 14))["n"].to_pylist() == [1]
    stream.push("s", batch(5))  # [0, 10) is out, so [0, 20) must not have it either
    assert stream.finish()["n"].to_pylist() == [1, 2]
    assert stream.metrics.late == {"q": 1}


def test_an_event_in_a_gap_is_never_late() -> None:
    stream = session({"w": weft.hopping(2, 10)})
    stream.push("s", batch(1, 25))
    stream.push("s", batch(5))
    assert stream.metrics.late == {"q": 0}


def test_a_session_stays_open_for_an_event_exactly_one_gap_away() -> None:
    stream = session({"w": weft.session(5)})
    stream.push("s", batch(1))
    assert stream.advance(6).num_rows == 0
    stream.push("s", batch(6))
    assert stream.finish()["n"].to_pylist() == [2]


def test_results_come_out_once_and_in_order() -> None:
    stream = session({"20": weft.tumbling(20), "10": weft.tumbling(10)}, keys=["k"])
    found = stream.push("s", batch(1, 2, 11, 40, k=["b", "a", "b", "a"]))
    assert [(r["window"], r["k"]) for r in found.to_pylist()] == [
        ("10", "a"), ("10", "b"), ("20", "a"), ("20", "b"), ("10", "b"),
    ]  # fmt: skip
    assert stream.advance(40).num_rows == 0
    assert stream.finish().num_rows == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (pa.table({"time": [1]}), "no column 'ts'"),
        (pa.table({"ts": ["noon"], "x": [1]}), "was int64 and now is string"),
        (pa.table({"ts": [9], "x": ["one"]}), "was int64 and now is string"),
        (pa.table({"ts": [30], "x": [0]}), "division by zero"),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_the_session_as_it_was(bad, message) -> None:
    windows, aggs = {"10": weft.tumbling(10), "s": weft.session(3)}, {"v": weft.agg.sum("6 / x")}
    streams = [session(windows, aggs=aggs), session(windows, aggs=aggs)]
    for stream in streams:
        stream.push("s", batch(1, 12, x=[1, 2]))
    before = streams[0].metrics
    with pytest.raises(weft.DataError, match=message):
        streams[0].push("s", bad)
    now = streams[0].metrics
    assert replace(now, peak_bytes=0) == replace(before, peak_bytes=0)  # the process's own memory
    good = batch(14, 25, x=[3, 1])
    assert streams[0].push("s", good).equals(streams[1].push("s", good))
    assert streams[0].finish().equals(streams[1].finish())


ALL_KINDS = {
    "hop": weft.hopping(20, 5),
    "month": weft.calendar("month", "Europe/Berlin"),
    "cum": weft.cumulating(20, 5),
    "gap": weft.session(6),
    "rows": weft.counting(3, 2),
    "flag": weft.punctuated("6 / x > 1"),
    "km": weft.measured("km", 4, 2),
}


@pytest.mark.parametrize(
    "bad",
    [
        batch(30, x=[1], km=[30]),
        batch(30, x=[0], km=[30], k=["new"]),
        batch(30, 40, x=[1, 1], km=[2, 40], k=["a", "a"]),
        batch(30, x=[1], km=pa.array([None], pa.int64()), k=["a"]),
        batch(30, x=["one"], km=[30], k=["a"]),
    ],
)
def test_after_an_error_the_state_is_what_it_was_whatever_the_windows(bad) -> None:
    aggs = {"v": weft.agg.sum("6 / x"), "d": weft.agg.count_distinct("x")}
    stream = session(ALL_KINDS, aggs=aggs, keys=["k"])
    stream.push("s", batch(1, 12, x=[1, 2], km=[1, 12], k=["a", "b"]))
    stream.push("s", batch(22, x=[3], km=[22], k=["a"]))
    before = stream.snapshot()
    with pytest.raises(weft.DataError):
        stream.push("s", bad)
    assert stream.snapshot() == before


class Moody(weft.UserWindow):
    """Begins at every event, ends at the next, and dislikes negative numbers."""

    def begins(self, event, state):
        if event["x"] < 0:
            raise ValueError("negative")
        state.setdefault("times", []).append(event["ts"])
        return 1

    def ends(self, event, state):
        return min(len(state.get("times", [])), 1)


def test_an_error_of_a_users_window_leaves_the_session_as_it_was() -> None:
    stream = session({"u": Moody()})
    stream.push("s", batch(1, 2, 3, x=[1, 2, 3]))
    before = stream.metrics.state_bytes
    with pytest.raises(ValueError, match="negative"):
        stream.push("s", batch(4, 5, x=[-1, 1]))
    assert stream.metrics.state_bytes == before
    assert stream.push("s", batch(4, 5, x=[4, 5]))["n"].to_pylist() == [1, 1]
    assert stream.finish()["n"].to_pylist() == [1, 1]


def test_a_user_defined_window_sees_unsorted_events_in_the_order_of_time() -> None:
    stream = session({"u": Moody()}, delay=100)
    for at in (5, 3, 9, 1):
        stream.push("s", batch(at, x=[at]))
    found = stream.finish()
    assert found["window_start"].cast(pa.int64()).to_pylist() == [1, 3, 5, 9]


def test_a_session_whose_first_batch_was_refused_takes_another_schema() -> None:
    stream = session({"10": weft.tumbling(10)}, aggs={"v": weft.agg.sum("6 / x")})
    with pytest.raises(weft.DataError, match="division by zero"):
        stream.push("s", batch(1, x=[0]))
    stream.push("s", batch(1, x=[2.0]))
    assert stream.finish()["v"].to_pylist() == [3.0]


def test_a_measure_that_falls_leaves_the_session_as_it_was() -> None:
    stream = session({"m": weft.measured("km", 5, 5)})
    stream.push("s", batch(1, 2, km=[1, 7]))
    before = stream.metrics
    with pytest.raises(weft.DataError, match="never decreases"):
        stream.push("s", batch(3, 9, km=[6, 8]))
    assert replace(stream.metrics, peak_bytes=before.peak_bytes) == before  # the program's own
    assert stream.push("s", batch(3, 9, 10, km=[8, 12, 13]))["n"].to_pylist() == [1, 2]


class Broken(weft.UserWindow):
    """Ends a window that never began."""

    def begins(self, event, state):
        return 0

    def ends(self, event, state):
        return 1


def test_a_user_defined_window_that_ends_too_often_is_named() -> None:
    with pytest.raises(weft.QueryError, match="1 ends at an event while 0"):
        weft.run(weft.Workload([query({"u": Broken()})]), {"s": batch(1)}, engine="local")


def test_times_that_are_null_are_dropped_and_counted() -> None:
    stream = session({"10": weft.tumbling(10)})
    stream.push("s", batch(1, None, 2))
    assert stream.metrics.timeless == 1
    assert stream.finish()["n"].to_pylist() == [2]


def test_an_empty_batch_changes_nothing() -> None:
    stream = session({"10": weft.tumbling(10), "s": weft.session(3)})
    assert stream.push("s", batch()).num_rows == 0
    stream.push("s", batch(1))
    assert stream.push("s", batch()).num_rows == 0
    assert stream.finish().num_rows == 2


def test_a_clock_that_jumps_a_century_allocates_nothing_in_between() -> None:
    windows = {
        "1us": weft.tumbling(1),
        "d": weft.calendar("day", "Europe/Berlin"),
        "h": weft.hopping(7, 3),
        "s": weft.session(5),
    }
    stream = session(windows)
    stream.push("s", batch(0))
    stream.push("s", batch(CENTURY_US))
    assert stream.metrics.open_slices < 20
    wanted = weft.run(weft.Workload([query(windows)]), {"s": batch(0, CENTURY_US)}, "reference")
    got = weft.run(weft.Workload([query(windows)]), {"s": batch(0, CENTURY_US)}, "local")
    assert got.equals(wanted)


def test_infinite_values_are_values() -> None:
    infinite = pa.array([float("inf"), float("-inf"), 1.0])
    aggs = {"sum": weft.agg.sum("x"), "hi": weft.agg.max("x"), "lo": weft.agg.min("x")}
    for rows in ([0], [0, 2], [0, 1]):
        table = pa.table({"ts": pa.array(rows), "x": infinite.take(pa.array(rows))})
        workload = weft.Workload([query({"w": weft.tumbling(10)}, aggs)])
        got, wanted = (
            weft.run(workload, {"s": table}, e).to_pylist() for e in ("local", "reference")
        )
        assert repr(got) == repr(wanted)


def test_nan_is_a_value_and_the_largest_one() -> None:
    aggs = {"hi": weft.agg.max("x"), "lo": weft.agg.min("x"), "d": weft.agg.count_distinct("x")}
    stream = session({"w": weft.tumbling(10)}, aggs=aggs)
    stream.push("s", batch(1, x=[float("nan")]))
    stream.push("s", batch(2, 3, x=[1.0, float("nan")]))
    (row,) = stream.finish().to_pylist()
    assert (repr(row["hi"]), row["lo"], row["d"]) == ("nan", 1.0, 2)


def test_a_million_keys_in_one_batch_are_a_million_rows() -> None:
    count = 1_000_000
    stream = session({"w": weft.tumbling(10)}, keys=["k"])
    stream.push("s", pa.table({"ts": pa.repeat(1, count), "k": pa.array(range(count))}))
    assert stream.metrics.open_slices == count
    found = stream.finish()
    assert found.num_rows == count
    assert found["n"].to_numpy().sum() == count


@pytest.mark.parametrize(
    "damage", [lambda b: b"x" + b, lambda b: b[:-1], lambda b: b[:12] + b"\x09" + b[13:]]
)
def test_bytes_that_are_no_snapshot_are_refused(damage) -> None:
    stream = session({"10": weft.tumbling(10)})
    stream.push("s", batch(1))
    with pytest.raises(weft.DataError, match="snapshot"):
        LocalSession.restore(damage(stream.snapshot()))


def test_a_finished_session_takes_no_more() -> None:
    stream = session({"10": weft.tumbling(10)})
    stream.finish()
    with pytest.raises(weft.QueryError, match="finished"):
        stream.push("s", batch(1))


def test_an_unknown_source_is_named() -> None:
    with pytest.raises(weft.QueryError, match="no query reads 'other'"):
        session({"10": weft.tumbling(10)}).push("other", batch(1))


def test_a_column_that_is_there_twice_is_refused_where_it_is_read() -> None:
    query = weft.Query(
        "q", source="s", time="ts", windows={"10": weft.tumbling(10)}, aggs={"s": weft.agg.sum("v")}
    )
    arrays = [pa.array([1, 2]), pa.array([1, 2]), pa.array([5, 6])]
    twice = pa.Table.from_arrays(arrays, names=["ts", "v", "v"])
    for run in (
        lambda: weft.run(query, {"s": twice}, engine="reference"),
        lambda: weft.run(query, {"s": twice}, engine="local"),
        lambda: weft.LocalSession(query).push("s", twice),
    ):
        with pytest.raises(weft.QueryError, match="s has 2 columns 'v', and query 'q' reads one"):
            run()
    unread = pa.Table.from_arrays([*arrays, arrays[0]], names=["ts", "v", "w", "w"])
    assert weft.run(query, {"s": unread}, engine="local")["s"].to_pylist() == [3]


LARGEST, LEAST = Decimal("9" * 38), Decimal("-" + "9" * 38)
WIDE = pa.decimal128(38, 0)


@pytest.mark.parametrize("function", ["sum", "avg", "sum_distinct", "avg_distinct"])
@pytest.mark.parametrize("values", [[LARGEST, Decimal(1)], [LEAST, Decimal(-1)], [LARGEST] * 2])
def test_a_decimal_that_does_not_fit_is_an_error(function: str, values: list[Decimal]) -> None:
    """128 bits hold some numbers of 39 digits, and an average has four digits more than its sum."""
    query = weft.Query(
        "q",
        source="s",
        time="ts",
        windows={"10": weft.tumbling(10)},
        aggs={"v": getattr(weft.agg, function)("v")},
    )
    table = pa.table({"ts": [1, 2], "v": pa.array(values, WIDE)})
    if function == "sum_distinct" and len(set(values)) == 1:
        assert weft.run(query, {"s": table}, engine="local")["v"].to_pylist() == values[:1]
        return
    for engine in ("reference", "local"):
        with pytest.raises(weft.DataError, match="does not fit decimal128"):
            weft.run(query, {"s": table}, engine=engine)
    session = weft.LocalSession(query)
    session.push("s", table.slice(0, 1))
    session.push("s", table.slice(1))
    with pytest.raises(weft.DataError, match="does not fit decimal128"):
        session.finish()
    fits = pa.table({"ts": [1, 2], "v": pa.array([Decimal("9" * 34), Decimal(1)], WIDE)})
    exact = weft.run(query, {"s": fits}, engine="reference")["v"].to_pylist()
    assert weft.run(query, {"s": fits}, engine="local")["v"].to_pylist() == exact
