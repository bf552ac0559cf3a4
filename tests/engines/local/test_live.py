"""Queries that come and go: what is complete is right, and nothing of the others changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import weft
from weft.engines.local.operator import ScopeOperator
from weft.plan.nodes import topological
from weft.sessions.local_session import LocalSession
from weft.testing import assert_same_rows
from weft.testing.strategies import events, periodic_windows, queries, windows
from weft.window import CountingWindow, MeasuredWindow, PunctuatedWindow, SessionWindow

RELAXED = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
FAR = 10**6


@dataclass
class Activity:
    """When a query was active: watermarks at which it came and went, and what it promised."""

    since_us: int
    complete_from_us: dict[str, int | None]
    until_us: int | None = None


@dataclass
class Watched:
    """A session, the rows it gave, and what its queries promised."""

    session: LocalSession
    pool: dict[str, weft.Query]
    activities: dict[str, list[Activity]] = field(default_factory=dict)
    rows: dict[str, list[pa.Table]] = field(default_factory=dict)
    watermark_us: int = -FAR

    def take(self, found: dict[str, pa.Table]) -> None:
        assert set(found) <= {name for name, q in self.session.queries.items() if q.active}
        for name, table in found.items():
            self.rows.setdefault(name, []).append(table)
        known = self.session.metrics.watermarks_us["events"]
        self.watermark_us = -FAR if known is None else known

    def toggle(self, name: str) -> None:
        registered = self.session.queries.get(name)
        if registered is not None and registered.active:
            self.session.suspend(name)
            self.activities[name][-1].until_us = self.watermark_us
            return
        resumed = registered is not None
        told = self.session.resume(name) if resumed else self.session.register(self.pool[name])
        assert (told.query, told.active) == (name, True)
        promised = dict(told.complete_from_us)
        self.activities.setdefault(name, []).append(Activity(self.watermark_us, promised))

    def expected(self, name: str, reference: pa.Table) -> pa.Table:
        """Keep the reference's rows that closed while the query was active and complete."""
        labels = np.array(reference["window"].to_pylist(), object)
        starts, ends = (
            reference[column].cast(pa.int64()).to_numpy()
            for column in ("window_start", "window_end")
        )
        keep = np.zeros(reference.num_rows, bool)
        for activity in self.activities[name]:
            for label, window in self.pool[name].windows:
                # A session is closed when the watermark has passed its end, others at the end.
                due = ends + (1 if isinstance(window, SessionWindow) else 0)
                least = activity.complete_from_us[label]
                keep |= (
                    (labels == label)
                    & (due > activity.since_us)
                    & (due <= (FAR**3 if activity.until_us is None else activity.until_us))
                    & (starts >= (-(FAR**3) if least is None else least))
                )
        return reference.filter(pa.array(keep))


def by_clock_or_gap() -> st.SearchStrategy[Any]:
    other = (CountingWindow, MeasuredWindow, PunctuatedWindow)
    return windows().filter(lambda window: not isinstance(window, other))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(1, 8)),
        st.tuples(st.just("push"), st.integers(1, 8)),
        st.tuples(st.just("toggle"), st.integers(0, 3)),
        st.tuples(st.just("advance"), st.integers(0, 6)),
        st.tuples(st.just("restore"), st.just(0)),
    ),
    max_size=30,
)


@RELAXED
@given(
    pool=st.tuples(
        *(queries(by_clock_or_gap(), f"q{n}") for n in range(2)),
        *(queries(periodic_windows(6), f"q{n}") for n in range(2, 4)),
    ),
    table=events(60),
    steps=STEPS,
    delay=st.sampled_from([0, 4]),
)
def test_queries_that_come_and_go_give_the_reference_rows_from_when_they_are_complete(
    pool: tuple[weft.Query, ...], table: pa.Table, steps: list[tuple[str, int]], delay: int
) -> None:
    table = table.sort_by([("ts", "ascending")])
    hops, sums = {"6/2": weft.hopping(6, 2)}, {"n": weft.agg.sum("i")}
    first = weft.Query("base", source="events", time="ts", keys=["k"], windows=hops, aggs=sums)
    session = LocalSession(weft.Workload([first, *pool[:1]]), watermark=delay)
    named = {q.name: q for q in (first, *pool)}
    watched = Watched(session, named)
    for name in ("base", "q0"):
        watched.activities[name] = [Activity(-FAR, dict.fromkeys(dict(named[name].windows)))]
    at = 0
    for step, number in [*steps, ("push", FAR)]:
        if step == "push":
            batch = table.slice(at, number)
            at += batch.num_rows
            watched.take(watched.session.push("events", batch))
        elif step == "advance":
            following = table["ts"][at].cast(pa.int64()).as_py() if at < table.num_rows else None
            to_us = watched.watermark_us + number
            if following is not None and to_us <= following:
                watched.take(watched.session.advance(to_us))
        elif step == "toggle":
            watched.toggle(f"q{number}")
        else:
            watched.session = LocalSession.restore(watched.session.snapshot())
        note((step, number, watched.session.metrics.watermarks_us))
    watched.take(watched.session.finish())
    for name in watched.activities:
        reference = weft.run(weft.Workload([named[name]]), {"events": table}, engine="reference")
        note((name, watched.activities[name]))
        parts = watched.rows.get(name, [])
        got = pa.concat_tables(parts) if parts else reference.schema.empty_table()
        assert_same_rows(named[name], got, watched.expected(name, reference))


def counting_queries(name: str) -> st.SearchStrategy[weft.Query]:
    """All kinds of windows in one scope, so that they share whatever they can."""
    return st.lists(windows(), min_size=1, max_size=3).map(
        lambda chosen: weft.Query(
            name,
            source="events",
            time="ts",
            keys=["k"],
            windows={f"w{i}": window for i, window in enumerate(chosen)},
            aggs={"n": weft.agg.count(), "s": weft.agg.sum("i")},
        )
    )


@RELAXED
@given(
    staying=counting_queries("staying"),
    pool=st.tuples(*(counting_queries(f"q{n}") for n in range(4))),
    table=events(60),
    steps=STEPS,
)
def test_nothing_changes_for_a_query_that_stays_whatever_comes_and_goes(
    staying: weft.Query, pool: tuple[weft.Query, ...], table: pa.Table, steps: list[tuple[str, int]]
) -> None:
    table = table.sort_by([("ts", "ascending")])
    watched = Watched(running(staying, *pool[:1], delay=2), {q.name: q for q in (staying, *pool)})
    watched.activities["q0"] = [Activity(-FAR, {})]
    at = 0
    for step, number in [*steps, ("push", FAR)]:
        if step == "push":
            watched.take(watched.session.push("events", table.slice(at, number)))
            at += number
        elif step == "toggle":
            watched.toggle(f"q{number}")
        elif step == "restore":
            watched.session = LocalSession.restore(watched.session.snapshot())
    watched.take(watched.session.finish())
    for name, parts in watched.rows.items():
        query = watched.pool[name]
        wanted = weft.run(weft.Workload([query]), {"events": table}, engine="reference")
        if name == "staying":
            assert_same_rows(query, pa.concat_tables(parts), wanted)
            continue
        # Counting depends on when it starts; any other instance is right or does not come.
        counting = {n for n, w in query.windows if isinstance(w, CountingWindow)}
        known = {repr(row) for row in wanted.to_pylist()}
        found = [row for part in parts for row in part.to_pylist()]
        assert {repr(row) for row in found if row["window"] not in counting} <= known


def test_a_host_is_told_all_that_a_change_of_queries_changes() -> None:
    session = running(ask("a", w=weft.hopping(20, 5), s=weft.session(3), c=weft.counting(3, 2)))
    chunks: dict[str, bytes] = {}
    session.push("s", batch(1, 2, 13, 14, 22))
    for at, action in (
        (23, lambda: session.register(ask("b", w=weft.tumbling(10), s=weft.session(3)))),
        (30, lambda: session.register(ask("c", w=weft.tumbling(7), s=weft.session(2)))),
        (37, lambda: session.suspend("a")),
    ):
        (operator,) = session._streams["s"].operators
        operator.changes().apply(chunks)
        action()
        session.push("s", batch(at, at + 1))
    (operator,) = session._streams["s"].operators
    operator.changes().apply(chunks)
    nodes = topological(operator.emits)
    restored = ScopeOperator.restored(operator.scan, operator.keys, nodes, operator.emits, chunks)
    assert restored.counters() == operator.counters()
    types = session._streams["s"].types
    left, right = (
        [(c.query, c.places.tolist(), c.starts_us.tolist(), [v.to_pylist() for v in c.values])
         for c in one.advance(None, types)]
        for one in (restored, operator)
    )  # fmt: skip
    assert left == right
    assert {query for query, *_ in left} == {"b", "c"}


def ask(
    name: str, aggs: dict[str, Any] | None = None, watermark: int | None = None, **windows: Any
) -> weft.Query:
    chosen = aggs or {"n": weft.agg.count()}
    return weft.Query(
        name, source="s", time="ts", windows=windows, aggs=chosen, watermark=watermark
    )


def batch(*times: int, **columns: list[Any]) -> pa.Table:
    return pa.table({"ts": pa.array(times, pa.int64()), **columns})


def running(*asked: weft.Query, delay: int = 0) -> LocalSession:
    return LocalSession(weft.Workload(asked), watermark=delay)


def test_a_query_that_live_slices_serve_answers_for_the_past_at_once() -> None:
    session = running(ask("a", w=weft.hopping(40, 10)))
    session.push("s", batch(5, 15, 25, 35, 45))
    slices = session.metrics.open_slices
    told = session.register(ask("b", w=weft.hopping(30, 10)))
    assert told.complete_from_us == {"w": 10}
    assert session.metrics.open_slices == slices
    found = session.push("s", batch(61))["b"]
    assert found["window_start"].cast(pa.int64()).to_pylist() == [20, 30]
    assert found["n"].to_pylist() == [3, 2]


def test_a_query_that_no_slices_serve_is_complete_after_the_latest_event() -> None:
    session = running(ask("a", w=weft.tumbling(10)), delay=20)
    session.push("s", batch(5, 13))
    told = session.register(ask("b", w=weft.tumbling(7)))
    assert told.complete_from_us == {"w": 14}
    assert str(told.complete_from["w"]) == "1970-01-01 00:00:00.000014+00:00"
    found = session.push("s", batch(12, 14, 50))
    assert found["b"]["n"].to_pylist() == [1]
    assert found["a"]["n"].to_pylist() == [1, 3]


def test_other_aggregates_than_those_sliced_start_with_the_next_event() -> None:
    session = running(ask("a", w=weft.tumbling(10)))
    session.push("s", batch(5, x=[1]))
    told = session.register(ask("b", {"x": weft.agg.sum("x")}, w=weft.tumbling(10)))
    assert told.complete_from_us == {"w": 10}
    found = session.push("s", batch(6, 12, 20, x=[2, 3, 4]))
    assert found["b"]["x"].to_pylist() == [3]
    assert found["a"]["n"].to_pylist() == [2, 1]


def test_a_query_of_another_scope_gets_an_operator_of_its_own() -> None:
    session = running(ask("a", w=weft.tumbling(10)))
    session.push("s", batch(5, k=["x"]))
    other = weft.Query("b", source="s", time="ts", keys=["k"], where="ts > 0",
                       windows={"w": weft.tumbling(10)}, aggs={"n": weft.agg.count()})  # fmt: skip
    assert session.register(other).complete_from_us == {"w": 10}
    found = session.push("s", batch(12, 20, k=["y", "x"]))
    assert found["b"].to_pylist()[0]["k"] == "y"


def test_a_session_window_is_complete_one_gap_after_what_was_not_seen() -> None:
    session = running(ask("a", w=weft.tumbling(100)))
    session.push("s", batch(10))
    assert session.register(ask("b", w=weft.session(5))).complete_from_us == {"w": 16}
    found = session.push("s", batch(15, 30, 50))["b"]
    assert found["window_start"].cast(pa.int64()).to_pylist() == [30]


def test_the_same_session_window_is_shared_with_its_open_sessions() -> None:
    session = running(ask("a", w=weft.session(5)))
    session.push("s", batch(10, 12))
    assert session.register(ask("b", w=weft.session(5))).complete_from_us == {"w": None}
    found = session.push("s", batch(14, 30))
    assert found["a"]["n"].to_pylist() == found["b"]["n"].to_pylist() == [3]


def test_a_counting_window_counts_from_when_it_came() -> None:
    session = running(ask("a", w=weft.tumbling(100)))
    session.push("s", batch(1, 2, 3))
    assert session.register(ask("b", w=weft.counting(2))).complete_from_us == {"w": 4}
    found = session.push("s", batch(4, 5, 6, 7, 8))["b"]
    assert found["window_start"].cast(pa.int64()).to_pylist() == [4, 6]


def test_a_measured_window_leaves_out_what_may_have_begun_before() -> None:
    session = running(ask("a", w=weft.tumbling(100)))
    session.push("s", batch(1, km=[3]))
    session.register(ask("b", w=weft.measured("km", 10, 10)))
    found = session.push("s", batch(2, 3, 4, 5, 6, km=[7, 12, 15, 21, 22]))["b"]
    assert found["n"].to_pylist() == [2]


def test_a_suspended_query_gives_no_rows_and_frees_what_it_alone_needs() -> None:
    session = running(ask("a", w=weft.tumbling(10)), ask("b", w=weft.hopping(1000, 10)))
    session.push("s", batch(*range(0, 500, 10)))
    held = session.metrics.state_bytes
    session.suspend("b")
    found = session.push("s", batch(500))
    assert "b" not in found
    assert session.metrics.state_bytes < held / 10
    assert session.queries["b"] == type(session.queries["b"])("b", False, {"w": None})
    assert session.resume("b").complete_from_us == {"w": 500}


def test_a_source_whose_queries_are_all_suspended_still_moves_on() -> None:
    session = running(ask("a", w=weft.tumbling(10)))
    session.push("s", batch(5))
    session.suspend("a")
    session.push("s", batch(25))
    assert session.metrics.watermarks_us == {"s": 25}
    assert session.resume("a").complete_from_us == {"w": 30}
    assert session.push("s", batch(26, 33, 41))["n"].to_pylist() == [1]


def test_a_query_registered_before_the_first_batch_is_complete() -> None:
    session = running(ask("a", w=weft.tumbling(10)))
    assert session.register(ask("b", w=weft.tumbling(5))).complete_from_us == {"w": None}
    assert session.push("s", batch(3, 7))["b"]["n"].to_pylist() == [1]


def test_a_query_of_a_new_source_opens_it() -> None:
    session = running(ask("a", w=weft.tumbling(10)))
    other = weft.Query("b", source="t", time="ts", windows={"w": weft.tumbling(5)},
                       aggs={"n": weft.agg.count()})  # fmt: skip
    session.register(other)
    assert session.push("t", batch(3, 7))["b"]["n"].to_pylist() == [1]


def test_late_events_are_counted_from_when_a_query_came() -> None:
    session = running(ask("a", w=weft.tumbling(10)))
    session.push("s", batch(5, 25))
    session.push("s", batch(6))
    session.register(ask("b", w=weft.tumbling(20)))
    session.push("s", batch(7))
    assert session.metrics.late == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda s: s.register(ask("a", w=weft.tumbling(10))), "has a query 'a' already"),
        (lambda s: s.suspend("zz"), "no active query is named 'zz'"),
        (lambda s: s.resume("a"), "no suspended query is named 'a'"),
        (lambda s: s.register(ask("b", {"x": weft.agg.sum("y")}, w=weft.tumbling(1))), "no column"),
        (
            lambda s: s.register(ask("b", watermark=99, w=weft.tumbling(1))),
            "waits 99us for late events, and this session 0s",
        ),
    ],
)
def test_a_registration_that_cannot_be_leaves_the_session_as_it_was(action, message) -> None:
    session = running(ask("a", w=weft.tumbling(10)))
    session.push("s", batch(5))
    before, queries_before = session.snapshot(), session.queries
    with pytest.raises(weft.QueryError, match=message):
        action(session)
    assert session.queries == queries_before
    assert session.snapshot() == before


def test_sessions_of_several_stores_keep_their_events_when_another_query_comes() -> None:
    rows = 20
    times = pa.array([0] * rows, pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "i": pa.array(range(rows), pa.int64())})
    sessions = {"3": weft.session(3), "1": weft.session(1), "w": weft.tumbling(1)}
    ask = {"source": "events", "time": "ts"}
    asked = weft.Query("q", windows=sessions, aggs={"m": weft.agg.median("i")}, **ask)
    session = LocalSession(asked, watermark=0)
    session.push("events", table.slice(0, 1))
    session.register(
        weft.Query("later", windows={"w": weft.tumbling(1)}, aggs={"n": weft.agg.count()}, **ask)
    )
    session.push("events", table.slice(1))
    wanted = weft.run(asked, {"events": table}, engine="reference")
    assert_same_rows(asked, session.finish()["q"], wanted)


def test_a_query_that_goes_leaves_the_sessions_of_another_with_the_same_windows() -> None:
    def asked(name: str, call: Any) -> weft.Query:
        windows = {"visit": weft.session(5)}
        return weft.Query(
            name, source="s", time="ts", keys=["k"], windows=windows, aggs={"n": call}
        )

    def events(*times: int) -> pa.Table:
        return pa.table({"ts": times, "k": ["a"] * len(times), "i": [1] * len(times)})

    session = LocalSession(weft.Workload([asked("stays", weft.agg.count())]), watermark=0)
    session.push("s", events(0, 2))
    session.register(asked("goes", weft.agg.count("i")))
    session.suspend("goes")
    session.push("s", events(4))
    assert session.finish()["stays"]["n"].to_pylist() == [3]
