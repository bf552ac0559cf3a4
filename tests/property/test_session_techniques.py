"""Every technique gives the rows of the reference engine: in sessions, with restores, in batch."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import weft
from weft.errors import UnsupportedError
from weft.kernels.incremental import notes
from weft.plan import Roll
from weft.techniques import FAN_OUT, INCREMENTAL, TECHNIQUES, WHOLE
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable

    from _pytest.mark import ParameterSet

IN_ORDER = weft.agg.custom(
    "numbers_in_order",
    lift=lambda x: (x,),
    combine=lambda a, b: a + b,
    lower=lambda numbers: " ".join(map(str, numbers)),
    identity=(),
    commutative=False,
    idempotent=False,
)
LARGEST = weft.agg.custom(
    "largest_number",
    lift=lambda x: (x,),
    combine=max,
    lower=lambda number: number[0],
    identity=(-99,),
    commutative=True,
    idempotent=True,
)
AGGREGATES = {
    "sum": weft.agg.sum("n"),
    "max": weft.agg.max("text"),
    "variance": weft.agg.var("x"),
    "ordered": IN_ORDER("n"),
}
WINDOWS = {
    "hop": weft.hopping(12, 2),
    "long": weft.hopping(40, 5, 3),
    "uneven": weft.hopping(7, 4),
    "apart": weft.hopping(3, 10, 1),
    "tumble": weft.tumbling(10),
}
USUAL = ("two_stacks_lite", "slick_deque", "flat_fit")  # the techniques that plans name themselves
COMPILED = ("prefix_sums", "sparse_table", "disjoint_sparse_table")


def is_legal(name: str, aggregate: str) -> bool:
    laws = [p.laws() for p in AGGREGATES[aggregate].partials]
    if aggregate == "sum":
        laws = [p.laws(exact=True) for p in AGGREGATES[aggregate].partials]
    return not any(one.missing(TECHNIQUES[name].needs) for one in laws)


def combinations(names: Iterable[str]) -> list[ParameterSet]:
    """Give each technique with each aggregate: some of them in `make test`, all in `make soak`.

    A technique is compiled for each aggregate, which takes seconds. The code is the same, so that
    sums and what Python combines stand for the others, but for the techniques that plans name.
    """
    return [
        pytest.param(
            name,
            aggregate,
            marks=pytest.mark.soak
            if aggregate in ("max", "variance")
            and is_legal(name, "sum")
            and name in INCREMENTAL
            and name not in USUAL
            else (),
        )
        for name in names
        for aggregate in AGGREGATES
    ]


def query_of(aggregate: str, windows=WINDOWS, name: str = "q") -> weft.Query:
    aggs = {aggregate: AGGREGATES[aggregate]}
    return weft.Query(name, source="s", time="ts", keys=["k"], windows=windows, aggs=aggs)


def batches(seed: int, late: int) -> list[pa.Table]:
    """Keys that come, go and return, gaps in which nothing happens, NULLs, and new texts."""
    rng, time, out = random.Random(seed), 100, []
    for _ in range(rng.randrange(8, 16)):
        time += rng.choice([0, 1, 3, 25, 200])
        active = rng.sample(range(6), rng.randrange(1, 5))
        columns = {"ts": [], "k": [], "n": [], "x": [], "text": []}
        for _ in range(rng.randrange(1, 24)):
            time += rng.choice([0, 0, 1, 2])
            columns["ts"].append(time - rng.randrange(late + 1))
            columns["k"].append(rng.choice(active))
            columns["n"].append(rng.choice([None, *range(-3, 9)]))
            columns["x"].append(rng.choice([None, rng.random()]))
            columns["text"].append(rng.choice([None, *"abcdef", f"t{time}"]))
        types = {"ts": pa.int64(), "k": pa.int64(), "n": pa.int64(), "x": pa.float64()}
        out.append(pa.table({c: pa.array(v, types.get(c)) for c, v in columns.items()}))
    return out


def plan_of(query: weft.Query, planner: str, name: str) -> weft.Plan:
    exact = {"s": frozenset({"n"})}
    return weft.optimize(query, planner, "local", exact_columns=exact, technique=name, session=True)


def since_epoch(time: dt.datetime) -> int:
    return round(time.timestamp() * 1e6)


def joined(tables: list[pa.Table]) -> pa.Table:
    """Put results together; of a custom aggregate the type is not known until there are some."""
    return pa.concat_tables(tables, promote_options="permissive")


def pushed(session: weft.LocalSession, parts: list[pa.Table], *, restores: bool) -> pa.Table:
    found = []
    for at, part in enumerate(parts):
        found.append(session.push("s", part))
        if restores and at % 3 == 1:
            session = weft.LocalSession.restore(session.snapshot())
    return joined([*found, session.finish()])


@pytest.mark.parametrize(("name", "aggregate"), combinations(INCREMENTAL))
def test_a_session_gives_the_rows_of_the_reference(name: str, aggregate: str) -> None:
    query = query_of(aggregate)
    if not is_legal(name, aggregate):
        with pytest.raises(UnsupportedError, match=f"technique {name} cannot run"):
            weft.LocalSession(query, planner="slice", technique=name)
        return
    for seed in range(4):
        late = 4 * (seed % 2)
        parts = batches(seed, late)
        wanted = weft.run(query, {"s": pa.concat_tables(parts)}, engine="reference")
        for planner, restores in (("slice", False), ("slice", True), ("independent", seed == 0)):
            plan = plan_of(query, planner, name)
            assert {n.technique for n in plan.nodes if hasattr(n, "technique")} <= {name, None}
            session = weft.LocalSession(plan, watermark=late)
            assert_same_rows(query, pushed(session, parts, restores=restores), wanted, name)


@pytest.mark.parametrize(("name", "aggregate"), combinations([*WHOLE, *INCREMENTAL, FAN_OUT]))
def test_a_batch_gives_the_rows_of_the_reference(name: str, aggregate: str) -> None:
    query = query_of(aggregate)
    table = pa.concat_tables(batches(7, 3))
    if not is_legal(name, aggregate) or (aggregate == "ordered" and name in COMPILED):
        with pytest.raises(UnsupportedError, match=f"technique {name} cannot run"):
            weft.run(query, {"s": table}, engine="local", planner="slice", technique=name)
        return
    wanted = weft.run(query, {"s": table}, engine="reference")
    for planner in ("slice", "independent", "subsume"):
        got = weft.run(query, {"s": table}, engine="local", planner=planner, technique=name)
        assert_same_rows(query, got, wanted, name)


@pytest.mark.parametrize("name", ["two_stacks_lite", "flat_fit", "daba_lite"])
def test_queries_that_come_and_go_find_the_slices_that_are_there(name: str) -> None:
    first, second = query_of("sum"), query_of("sum", {"later": weft.hopping(20, 2)}, "later")
    parts = batches(3, 0)
    session = weft.LocalSession(first, technique=name, planner="slice")
    found: dict[str, list[pa.Table]] = {"q": [], "later": []}
    for at, part in enumerate(parts):
        if at == 3:
            session.register(second)
        if at == 5:
            session.suspend("later")
        if at == 7:
            complete = session.resume("later").complete_from_us["later"] or 0
            passed = max(max(earlier["ts"].to_pylist()) for earlier in parts[:at])
        rows = session.push("s", part)
        rows = rows if isinstance(rows, dict) else {"q": rows}
        for query, table in rows.items():
            found[query].append(table)
    for query, table in session.finish().items():
        found[query].append(table)
    tables = {"s": pa.concat_tables(parts)}
    assert_same_rows(first, joined(found["q"]), weft.run(first, tables, engine="reference"))
    wanted = weft.run(second, tables, engine="reference").to_pylist()
    since = [
        row
        for row in wanted
        if since_epoch(row["window_start"]) >= complete and since_epoch(row["window_end"]) > passed
    ]
    got = joined(found["later"]).to_pylist()
    assert since
    assert [row for row in since if row not in got] == []


def test_an_error_in_the_middle_of_a_batch_leaves_no_trace() -> None:
    calls = {"left": 10**9}

    def add(a: int, b: int) -> int:
        calls["left"] -= 1
        if calls["left"] < 0:
            raise RuntimeError("no more")
        return a + b

    total = weft.agg.custom(
        "failing_total", lift=int, combine=add, lower=int, identity=0,
        commutative=True, idempotent=False,
    )  # fmt: skip
    windows = {"h": weft.hopping(20, 1)}
    query = weft.Query(
        "q", source="s", time="ts", keys=["k"], windows=windows, aggs={"t": total("n")}
    )
    parts = [pa.table({"ts": [t, t, t], "k": [0, 1, 2], "n": [t, t + 1, t + 2]}) for t in range(60)]
    session = weft.LocalSession(query, technique="two_stacks_lite")
    found = []
    for at, part in enumerate(parts):
        if at in (30, 41):
            calls["left"] = 4
            with pytest.raises(RuntimeError):
                session.push("s", part)
            calls["left"] = 10**9
        found.append(session.push("s", part))
    found.append(session.finish())
    wanted = weft.run(query, {"s": pa.concat_tables(parts)}, engine="reference")
    assert_same_rows(query, joined(found), wanted)


@pytest.mark.parametrize("name", ["two_stacks_lite", "daba_lite", "flat_fit", "fiba"])
def test_a_shelf_that_is_swept_at_every_step_forgets_nothing_that_is_needed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "_LEAST_USED", -(10**9))
    monkeypatch.setattr(notes, "_LEAST_NOTES", 1)
    windows = {"hop": weft.hopping(12, 2), "long": weft.hopping(40, 5, 3)}
    parts = batches(3, 0)
    for aggs in ({"ordered": IN_ORDER("n")}, {"largest": LARGEST("n")}):
        query = weft.Query("q", source="s", time="ts", keys=["k"], windows=windows, aggs=aggs)
        session = weft.LocalSession(plan_of(query, "slice", name))
        wanted = weft.run(query, {"s": pa.concat_tables(parts)}, engine="reference")
        assert_same_rows(query, pushed(session, parts, restores=False), wanted, name)


def slides(name: str, n: int, aggregate: str = "sum", windows=None) -> list[int]:
    """Count the combines of every push of a session whose window holds n slices of one key."""
    query = query_of(aggregate, windows or {"h": weft.hopping(n, 1)})
    session = weft.LocalSession(plan_of(query, "slice", name))
    rng, counts = random.Random(5), []
    for time in range(8 * n * (n + 1)):
        before = session.metrics.combines
        table = {"ts": [time], "k": [1], "n": [rng.randrange(1, 9)], "x": [0.5]}
        table["text"] = [f"{rng.random()}"]
        session.push("s", pa.table(table))
        counts.append(session.metrics.combines - before)
    return counts[4 * n * (n + 1) :]


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("name", [n for n in INCREMENTAL if n not in ("slick_deque", "fiba")])
def test_a_session_combines_as_often_as_published(name: str, n: int) -> None:
    counts = slides(name, n)
    wanted = TECHNIQUES[name].combines_per_slide(n)
    if name == "flat_fat":
        wanted -= n.bit_length() - 2 + 1 / n  # a sum commutes: the root answers
    assert Fraction(sum(counts), len(counts)) == pytest.approx(wanted)
    if name in ("daba", "daba_lite"):
        assert max(counts) <= (8 if name == "daba" else 6)


@pytest.mark.parametrize("n", [4, 8, pytest.param(16, marks=pytest.mark.soak)])
def test_a_deque_compares_less_than_twice_a_slide(n: int) -> None:
    counts = slides("slick_deque", n, "max")
    assert sum(counts) / len(counts) == pytest.approx(2 - 2 / n, abs=0.15)
    assert max(counts) <= n


def test_a_tree_combines_as_often_as_published_where_slices_come_in_order() -> None:
    counts = slides("fiba", 8)
    assert 2 <= sum(counts) / len(counts) <= TECHNIQUES["fiba"].combines_per_slide(8)


def test_a_late_slice_costs_a_tree_what_its_distance_asks_for() -> None:
    n, delay = 256, 250
    query = query_of("sum", {"h": weft.hopping(n, 1)})
    session = weft.LocalSession(plan_of(query, "slice", "fiba"), watermark=delay)
    parts = []

    def push(time: int) -> int:
        before = session.metrics.combines
        parts.append(pa.table({"ts": [time], "k": [1], "n": [time % 7]}))
        found.append(session.push("s", parts[-1]))
        return session.metrics.combines - before

    found: list[pa.Table] = []
    for time in range(0, 2 * n, 2):
        push(time)
    latest = 2 * n - 2
    for distance in (3, 31, 121, 241):
        assert 0 < push(latest - distance) <= 6 + 6 * distance.bit_length()  # a rebuild takes n
    wanted = weft.run(query, {"s": pa.concat_tables(parts)}, engine="reference")
    assert_same_rows(query, joined([*found, session.finish()]), wanted)


def test_a_query_that_comes_later_takes_the_technique_of_its_session() -> None:
    session = weft.LocalSession(query_of("sum"), technique="daba_lite", planner="slice")
    session.push("s", batches(1, 0)[0])
    session = weft.LocalSession.restore(session.snapshot())
    session.register(query_of("sum", {"later": weft.hopping(21, 7)}, "later"))
    plan = session._streams["s"].plan
    assert {n.technique for n in plan.nodes if hasattr(n, "technique")} <= {"daba_lite", None}


def test_a_plan_names_no_technique_that_a_session_does_not_keep() -> None:
    windows = {"tens": weft.tumbling(10), "hop": weft.hopping(40, 10)}
    plan = weft.optimize(
        query_of("sum", windows), "subsume", "local", technique="daba_lite", session=True
    )
    over_windows = [n for n in plan.nodes if isinstance(n, Roll) and isinstance(n.feeder, Roll)]
    assert over_windows
    assert {n.technique for n in over_windows}.isdisjoint(INCREMENTAL)


def test_a_store_that_several_windows_share_takes_every_slice_in_once() -> None:
    windows = {f"h{n}": weft.hopping(n, 1) for n in (8, 5, 3)}
    counts = slides("prefix_ring", 8, windows=windows)
    assert set(counts) == {1 + 3}  # one for the slice, one for each answer
    counts = slides("slick_deque", 8, "max", {f"h{n}": weft.hopping(n, 1) for n in (8, 5)})
    assert sum(counts) / len(counts) == pytest.approx(2 - 2 / 8, abs=0.2)
