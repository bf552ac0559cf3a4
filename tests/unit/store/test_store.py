"""The slice store: what it serves, what it refuses, and what no writer, crash or damage can do."""

from __future__ import annotations

import datetime as dt
import errno
import os
import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft.aggregates.kinds import PARTIAL_KINDS
from weft.errors import DataError, InputError, QueryError, UnsupportedError
from weft.store import disk
from weft.testing import assert_same_rows
from weft.testing.strategies import DECOMPOSABLE, HOLISTIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.query import Query

DAY = 86_400_000_000
FLIGHTS = Path(__file__).parents[3] / "docs" / "data" / "flights.parquet"
MINUTES = {"5m": weft.tumbling("5 minutes"), "1h/15m": weft.hopping("1 hour", "15 minutes")}
AGGS = {"n": weft.agg.count(), "total": weft.agg.sum("x"), "lo": weft.agg.min("x")}


def query(**changes: Any) -> Query:
    asked = {"source": "t", "keys": ["k", "city"], "windows": MINUTES, "aggs": AGGS}
    return weft.Query("q", **{**asked, **changes})


def day(number: int, seed: int = 0, rows: int = 500) -> pa.Table:
    random = np.random.default_rng([number, seed])
    times = number * DAY + random.integers(0, DAY, rows)
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array(random.integers(0, 5, rows)),
            "city": pa.array(random.choice(["rome", "oslo", "lima"], rows)),
            "x": pa.array(random.normal(size=rows) * 10.0 ** random.integers(-3, 17, rows)),
        }
    )


def assert_served(store: weft.Store, asked: Query, events: list[pa.Table], **how: Any) -> None:
    wanted = weft.run(asked, {"t": pa.concat_tables(events)}, engine="local")
    if "since" in how:
        wanted = wanted.filter(pa.compute.field("window_start") >= how["since"])
    got = store.run(asked, **how)
    assert got.num_rows
    assert_same_rows(asked, got, wanted)


@pytest.fixture
def store(tmp_path: Path) -> weft.Store:
    made = weft.Store(tmp_path / "store", query())
    for number in range(3):
        made.append(day(number), id=f"day {number}")
    return made


DAYS = [day(0), day(1), day(2)]


@pytest.mark.parametrize(
    "asked",
    [
        query(),
        query(windows={"1d": "1 day", "20m": weft.hopping("20 minutes", "5 minutes")}),
        query(windows={"late": weft.tumbling("1 hour", offset="10 minutes")}),
        query(windows={"m": weft.calendar("month"), "w": weft.calendar("week", "Asia/Kolkata")}),
        query(windows={"c": weft.cumulating("1 day", "1 hour")}),
        query(keys=["k"]),
        query(keys=()),
        query(keys={"town": "upper(city)"}),
        query(where="city = 'rome' AND k > 1"),
        query(aggs={"mean": "avg(x)"}),
    ],
    ids=["asked", "windows", "offset", "calendar", "cumulating", "key", "no key", "computed key",
         "filter", "aggregate"],
)  # fmt: skip
def test_slices_serve_what_was_asked_and_what_was_not(store: weft.Store, asked: Query) -> None:
    assert_served(store, asked, DAYS)


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        (query(windows={"1m": "1 minute"}), "cut every 1m; they are cut every 5m"),
        (query(windows={"d": weft.calendar("day", "Asia/Kathmandu")}), None),
        (query(keys=["ts"]), "slices by ts too"),
        (query(aggs={"hi": "max(x)"}), "slices with max\\(x\\)"),
        (query(where="x > 0"), "asks for those with x > 0"),
        (query(windows={"s": weft.session("5 minutes")}), "slices hold no events"),
        (query(windows={"c": weft.counting(5)}), "slices hold no events"),
    ],
)
def test_what_slices_do_not_serve_is_said_with_what_it_would_need(
    store: weft.Store, asked: Query, lacks: str | None
) -> None:
    if lacks is None:
        assert_served(store, asked, DAYS)  # 5:45 ahead of UTC, and yet whole slices
        return
    with pytest.raises(UnsupportedError, match=lacks):
        store.run(asked)


def test_every_kind_of_partial_is_kept_in_plain_columns(tmp_path: Path) -> None:
    asked = {f"a{i}": call for i, call in enumerate(DECOMPOSABLE + HOLISTIC)}
    whole = weft.Query("q", source="t", keys="k", windows={"1h": "1 hour"}, aggs=asked)
    kinds = {p.kind for call in asked.values() for p in call.partials}
    assert kinds >= {*PARTIAL_KINDS[:3], "distinct", "values", "quantiles", "hll"}
    random = np.random.default_rng(3)
    rows = 400
    table = pa.table(
        {
            "ts": pa.array(random.integers(0, DAY, rows), pa.timestamp("us", "UTC")),
            "k": pa.array(random.choice(["a", None, "b"], rows)),
            "i": pa.array(random.integers(-9, 9, rows), mask=random.random(rows) < 0.3),
            "km": pa.array(random.integers(-9, 9, rows)),
            "x": pa.array(random.normal(size=rows), mask=random.random(rows) < 0.3),
            "flag": pa.array(random.random(rows) < 0.5, mask=random.random(rows) < 0.3),
        }
    )
    store = weft.Store(tmp_path, whole)
    store.append(table.slice(0, 150))
    store.append(table.slice(150))
    for windows in ({"1h": "1 hour"}, {"6h": weft.hopping("6 hours", "1 hour")}):
        again = whole.with_windows(windows)
        assert_same_rows(again, store.run(again), weft.run(again, {"t": table}, "reference"))


def test_a_file_of_slices_can_be_read_by_anyone(store: weft.Store) -> None:
    files = sorted(store.path.rglob("*.parquet"))
    assert [f.parent.name for f in files] == [f"day=1970-01-0{n}" for n in (1, 2, 3)]
    table = pq.read_table(files[0], partitioning=None)
    assert table.column_names == [
        "slice_start", "k", "city", "count_rows", "sum_x", "count_x", "min_x",
    ]  # fmt: skip
    assert sum(table["count_rows"].to_pylist()) == 500


def test_an_aggregate_of_ones_own_is_kept_as_plain_values_and_never_as_a_pickle(
    tmp_path: Path,
) -> None:
    every = weft.agg.custom(
        "every_x_kept", lift=lambda x: (x,), combine=lambda a, b: a + b, lower=sorted, identity=(),
        commutative=True, idempotent=False,
    )  # fmt: skip
    asked = query(aggs={"all": every("x")})
    plain = weft.Store(tmp_path / "plain", asked)
    plain.append(day(0, rows=40))
    assert_served(plain, asked, [day(0, rows=40)])
    thing = weft.agg.custom(
        "an_object_kept", lift=lambda x: object(), combine=lambda a, b: a or b, lower=str,
        identity=None, commutative=True, idempotent=False,
    )  # fmt: skip
    opaque = weft.Store(tmp_path / "opaque", query(aggs={"o": thing("x")}))
    with pytest.raises(UnsupportedError, match="only a pickle can keep"):
        opaque.append(day(0))
    assert opaque.coverage is None


def test_the_same_id_changes_nothing_and_replacing_it_does(store: weft.Store) -> None:
    before = store.manifest
    store.append(day(1, seed=9), id="day 1")
    assert store.manifest == before
    store.replace(day(1, seed=9), id="day 1")
    assert_served(store, query(), [day(0), day(1, seed=9), day(2)])
    with pytest.raises(InputError, match="nothing was appended under the id 'day 7'"):
        store.replace(day(7), id="day 7")


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    def write(number: int) -> None:
        mine = weft.Store(tmp_path, query())
        mine.append(day(number % 4, seed=number), id=f"batch {number % 8}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(16)))
    store = weft.Store(tmp_path)
    assert sorted(store.batches) == [f"batch {n}" for n in range(8)]
    assert store.manifest.events == 8 * 500
    assert sum(store.run(query(keys=(), windows={"1d": "1 day"}))["n"].to_pylist()) == 4000


def crashing(monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException) -> list[str]:
    """Let the n-th write fail; nothing that tidies up afterwards runs either."""
    done: list[str] = []

    def failing(name: str, write: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            done.append(name)
            if len(done) >= at:
                raise error
            return write(*args, **options)

        return step

    for name in ("fsync", "link", "replace"):
        monkeypatch.setattr(os, name, failing(name, getattr(os, name)))
    monkeypatch.setattr(disk, "remove", failing("remove", disk.remove))
    return done


def small(number: int, seed: int = 0) -> pa.Table:
    return day(number, seed, rows=20)


EVERY_WRITE = pytest.param(1, marks=pytest.mark.soak, id="every write")


@pytest.mark.parametrize("full", [True, False], ids=["disk full", "killed"])
@pytest.mark.parametrize("step", [pytest.param(7, id="some writes"), EVERY_WRITE])
def test_a_crash_at_any_write_loses_nothing_and_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool, step: int
) -> None:
    asked = query(windows={"5m": "5 minutes"})
    for at in range(1 + full, 200, step):
        folder = tmp_path / str(at)
        store = weft.Store(folder / "store", asked)
        store.append(small(0), id="0")
        weft.refresh(asked, store, into=folder / "results")
        error = OSError(errno.ENOSPC, "No space left") if full else KeyboardInterrupt()
        with monkeypatch.context() as patched:
            done = crashing(patched, at, error)
            with suppress(InputError, OSError, KeyboardInterrupt):
                store.append(small(1), id="1")
                store.replace(small(0, seed=5), id="0")
                weft.refresh(asked, store, into=folder / "results")
        store = weft.Store(folder / "store")  # as the next process finds it
        for id, table in {"1": small(1), "0": small(0, seed=5)}.items():
            store.append(table, id=id)
            store.replace(table, id=id)
        weft.refresh(asked, store, into=folder / "results")
        assert_served(store, asked, [small(0, seed=5), small(1)])
        assert_same_rows(asked, pq.read_table(folder / "results"), store.run(asked))
        store.compact(unused_after=0)
        used = {file.path for file in store.manifest.files()}
        left = {p.relative_to(store.path).as_posix() for p in store.path.rglob("*.parquet*")}
        assert left == used
        if len(done) < at:
            return
    raise AssertionError("writes without end")


@pytest.mark.parametrize("damage", ["gone", "cut short", "turned"])
def test_damage_is_refused(store: weft.Store, damage: str) -> None:
    newest = sorted(store.path.glob("manifests/0*.json"))[-1]
    for path in (sorted(store.path.rglob("*.parquet"))[0], newest):
        whole = path.read_bytes()
        content = bytearray(whole)
        if damage == "gone":
            path.unlink()
        elif damage == "cut short":
            path.write_bytes(content[: len(content) // 2])
        else:
            for at in range(len(content) // 3, len(content) // 3 + 40):
                content[at] ^= 1
            path.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged|was there, and is gone"):
            weft.Store(store.path).run()
        path.write_bytes(whole)
    assert_served(weft.Store(store.path), query(), DAYS)


@pytest.mark.parametrize("damage", ["cut short", "turned"])
def test_damage_to_what_a_refresh_knows_is_refused(
    store: weft.Store, tmp_path: Path, damage: str
) -> None:
    weft.refresh(query(), store, into=tmp_path / "r")
    (state,) = (tmp_path / "r" / "_weft").glob("*.json")
    text = state.read_text()
    state.write_text(text[:-9] if damage == "cut short" else text.replace('"version": 4', "5"))
    store.append(day(3), id="day 3")
    with pytest.raises(DataError, match=r"refreshed\.json is damaged"):
        weft.refresh(query(), store, into=tmp_path / "r")


def test_a_file_that_finds_no_room_leaves_the_store_as_it_was(store: weft.Store) -> None:
    before, (_, most) = store.manifest, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, most))  # the system refuses what is larger
    try:
        with pytest.raises(InputError, match=r"cannot write .*\.parquet: .*\nhint: .*nothing was"):
            store.append(day(3), id="day 3")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    assert store.manifest == before
    store.append(day(3), id="day 3")
    assert_served(store, query(), [*DAYS, day(3)])
    store.compact(unused_after=0)
    assert not [path for path in store.path.rglob("*") if disk.is_unfinished(path)]


@pytest.mark.parametrize("step", [pytest.param(7, id="some writes"), EVERY_WRITE])
def test_a_crash_while_a_store_is_made_or_compacted_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    hours = query(windows={"1h": "1 hour", "5m": "5 minutes"})
    rule = {"5 minutes": "1 hour", "1 hour": "2 days"}
    for at in range(1, 200, step):
        folder = tmp_path / str(at)
        with monkeypatch.context() as patched:
            done = crashing(patched, at, KeyboardInterrupt())
            with suppress(KeyboardInterrupt):
                store = weft.Store(folder, hours)
                store.append(small(0), id="0")
                store.append(small(2), id="2")
                store.compact(rule, unused_after=0)
        store = weft.Store(folder, hours)
        for id, table in {"0": small(0), "2": small(2)}.items():
            store.append(table, id=id)
        asked = query(windows={"1h": "1 hour"})
        assert_served(store, asked, [small(0), small(2)])
        store.compact(rule, unused_after=0)
        assert_served(store, asked, [small(0), small(2)])
        left = {p.relative_to(folder).as_posix() for p in folder.rglob("*.parquet*")}
        assert left == {file.path for file in store.manifest.files()}
        if len(done) < at:
            return
    raise AssertionError("writes without end")


def test_refreshes_over_real_flights_equal_full_runs(tmp_path: Path) -> None:
    flights = pq.read_table(FLIGHTS).sort_by("ts")
    asked = weft.Query(
        "delays", source="flights", time="ts", keys=["origin", "carrier"],
        windows={"1h": "1 hour", "1d": "1 day", "7d/1d": weft.hopping("7 days", "1 day")},
        aggs={"n": "count(*)", "mean": "avg(dep_delay)", "worst": "max(dep_delay)",
              "dests": "count_distinct(dest)", "mid": "median(dep_delay)"},
    )  # fmt: skip
    store, results = weft.Store(tmp_path / "store", asked), tmp_path / "results"
    rows = flights.num_rows
    cuts = [(0, 4000), (4100, 8000), (8000, rows), (4000, 4100)]  # the last comes late
    held: dict[str, pa.Table] = {}
    for number, (low, high) in enumerate(cuts):
        held[str(number)] = flights.slice(low, high - low)
        store.append(held[str(number)], id=str(number))
        if number == 2:
            held["1"] = held["1"].filter(pa.compute.field("carrier") != "UA")
            store.replace(held["1"], id="1")
        weft.refresh(asked, store, into=results)
        wanted = weft.run(asked, {"flights": pa.concat_tables(held.values())}, engine="local")
        assert_same_rows(asked, pq.read_table(results), wanted)


def test_compaction_never_changes_an_answer_that_is_still_offered(store: weft.Store) -> None:
    rule = {"5 minutes": "1 day", "1 hour": "2 days"}
    before = sum(file.rows for file in store.manifest.files())
    store.compact(rule, unused_after=0)
    assert sum(file.rows for file in store.manifest.files()) < before
    assert_served(store, query(windows={"1h": "1 hour", "1d": "1 day"}), DAYS)
    with pytest.raises(UnsupportedError, match=r"is kept since 1970-01-0\d"):
        store.run(query())
    fresh = dt.timedelta(microseconds=max(f.to_us for f in store.manifest.files() if f.level))
    since = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + fresh
    got, wanted = store.run(query(), since=since), weft.run(query(), {"t": pa.concat_tables(DAYS)})
    later = pa.compute.field("window_start") >= since.replace(tzinfo=None)
    assert got.num_rows
    assert_same_rows(query(), got, wanted.filter(later))
    store.replace(day(0, seed=4), id="day 0")
    store.compact()
    hours = query(windows={"1h": "1 hour"})
    assert_served(store, hours, [day(0, seed=4), day(1), day(2)])
    with pytest.raises(QueryError, match="not cut every 7m"):
        store.compact({"7 minutes": "1 day"})


def test_a_refresh_touches_what_changed_and_nothing_else(store: weft.Store, tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = weft.refresh(query(), store, into=results)
    assert first.whole
    assert weft.refresh(query(), store, into=results).files == 0
    times = {path.name: path.stat().st_mtime_ns for path in results.glob("*.parquet")}
    store.append(day(1, seed=2, rows=3), id="late")
    done = weft.refresh(query(), store, into=results)
    changed = {p.name for p in results.glob("*.parquet") if times[p.name] != p.stat().st_mtime_ns}
    assert not done.whole
    assert changed <= {
        "0-5m-1970-01-02.parquet",
        "1-1h-15m-1970-01-01.parquet",
        "1-1h-15m-1970-01-02.parquet",
    }
    assert_same_rows(query(), pq.read_table(results), store.run(query()))
    with pytest.raises(InputError, match="another store or query"):
        weft.refresh(query(keys=["k"]), store, into=results)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds notes.txt, which no refresh has written"):
        weft.refresh(query(), store, into=tmp_path / "mine")


def test_events_of_other_types_are_brought_to_those_of_the_first_or_refused(
    store: weft.Store,
) -> None:
    ints = day(5).set_column(3, "x", pa.array(range(500)))
    store.append(ints, id="whole numbers")
    with pytest.raises(DataError, match="column 'x' of 't' is string, and was double"):
        store.append(day(6).set_column(3, "x", pa.array(["no"] * 500)))
    with pytest.raises(DataError, match="have no column 'x'"):
        store.append(day(6).drop_columns(["x"]))


def test_a_plan_over_a_store_says_which_slices_it_reads(store: weft.Store) -> None:
    plan = weft.optimize(query(keys=["k"]), engine="local", store=store)
    assert plan.planner == "slice"
    assert plan.notes[-1] == "query 'q' reads kept slices of t by k, city"
    with pytest.raises(UnsupportedError, match="they are cut every 5m"):
        weft.optimize(query(windows={"1m": "1 minute"}), store=store)


def test_a_store_that_is_not_there_or_is_another_is_refused(
    store: weft.Store, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="there is no store at"):
        weft.Store(tmp_path / "nowhere")
    with pytest.raises(UnsupportedError, match="do not serve query 'q'"):
        weft.Store(store.path, query(windows={"1m": "1 minute"}))


def test_a_store_serves_features_as_of_points_on_its_edges(store: weft.Store) -> None:
    random = np.random.default_rng(5)
    points = pa.table(
        {
            "k": pa.array(random.integers(0, 7, 200)),
            "at": pa.array(random.integers(0, 60, 200) * 3_600_000_000, pa.timestamp("us")),
        }
    )
    asked = {
        "time": "ts", "at": "at", "by": ["k"], "round": "5 minutes",
        "windows": {"1h": "1 hour", "2d": "2 days"},
        "aggs": {**AGGS, "mean": weft.agg.avg("x")},
    }  # fmt: skip
    got = weft.as_of(points, store, **asked)
    wanted = weft.as_of(points, pa.concat_tables(DAYS), **asked)
    assert got.column_names == wanted.column_names
    for name in wanted.column_names[2:]:
        a, b = (np.array(t[name].to_pylist(), float) for t in (got, wanted))
        np.testing.assert_allclose(a, b, rtol=1e-9)
    late = points.set_column(1, "at", pa.array([7] * 200, pa.timestamp("us")))
    with pytest.raises(UnsupportedError, match="point 0 lies inside a slice"):
        weft.as_of(late, store, **asked)
    with pytest.raises(UnsupportedError, match="may begin or end inside a slice"):
        weft.as_of(points, store, **{**asked, "round": None})


def test_a_session_begins_with_what_the_store_has(store: weft.Store) -> None:
    asked = query(windows={"5m": "5 minutes", "2d/1h": weft.hopping("2 days", "1 hour")})
    session = weft.LocalSession(asked, store=store)
    rows = pa.concat_tables([session.push("t", day(3).sort_by("ts")), session.finish()])
    wanted = weft.run(asked, {"t": pa.concat_tables([*DAYS, day(3)])}, engine="local")
    assert_same_rows(asked, rows, wanted)
    with pytest.raises(UnsupportedError, match="do not serve query 'q'"):
        weft.LocalSession(query(windows={"1m": "1 minute"}), store=store)


def test_queries_that_share_a_window_are_answered_alike(store: weft.Store, tmp_path: Path) -> None:
    low = weft.Query("low", source="t", keys="k", windows=MINUTES, aggs={"lo": AGGS["lo"]})
    sums = weft.Query("sums", source="t", keys="k", windows=MINUTES, aggs={"s": AGGS["total"]})
    both = weft.Workload([low, sums])
    wanted = weft.run(both, {"t": pa.concat_tables(DAYS)}, engine="local")
    weft.refresh(both, store, into=tmp_path / "results")
    for asked in (low, sums):
        assert_same_rows(asked, store.run(both)[asked.name], wanted[asked.name])
        refreshed = pq.read_table(tmp_path / "results" / asked.name)
        assert_same_rows(asked, refreshed, wanted[asked.name])
