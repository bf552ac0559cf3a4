"""Tables of others: upserts, marks and stretches come out alike in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import weft
from places.iceberg_catalog import iceberg_catalog
from places.postgres_server import MISSING, postgres_programs, postgres_server
from weft.targets import Mark, RowIdentity, Stretch, identity_of, target_of
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weft.targets import Target

US = 1_000_000
HOUR = 3600 * US
IDENTITY = RowIdentity(("k", "city"), ("window", "window_start", "window_end"))


def rows_of(*rows: tuple[str | None, str, str, int, int, float | None]) -> pa.Table:
    """Rows of (k, city, label, start hour, n, mean)."""
    k, city, label, start, n, mean = zip(*rows, strict=True) if rows else [()] * 6
    instant = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "k": pa.array(k, pa.string()),
            "city": pa.array(city, pa.string()),
            "window": pa.array(label, pa.string()),
            "window_start": pa.array([s * HOUR for s in start], pa.int64()).cast(instant),
            "window_end": pa.array([(s + 1) * HOUR for s in start], pa.int64()).cast(instant),
            "n": pa.array(n, pa.int64()),
            "mean": pa.array(mean, pa.float64()),
            "cost": pa.array([None] * len(n), pa.decimal128(20, 3)),
        }
    )


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    if postgres_programs() is None:
        pytest.skip(MISSING)
    with postgres_server() as address:
        yield address


@pytest.fixture(params=["delta", "iceberg", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        address = request.getfixturevalue("database")
        return f"jdbc:{address}&table={tmp_path.name}".replace("-", "_")
    if request.param == "delta":
        return f"delta://{tmp_path}/t"
    return f"iceberg://{iceberg_catalog()}.metrics.{tmp_path.name}"


@pytest.fixture
def target(place: str) -> Target:
    found = target_of(place)
    assert found is not None
    return found


def read(target: Any) -> pa.Table:
    """Read a table as others do."""
    match type(target).__name__:
        case "DeltaTarget":
            from deltalake import DeltaTable

            return pa.table(DeltaTable(target.uri).to_pyarrow_table())
        case "IcebergTarget":
            from pyiceberg.catalog import load_catalog

            return load_catalog(target.catalog).load_table(target.table).scan().to_arrow()
        case _:
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(target.uri) as connection, connection.cursor() as cursor:
                cursor.execute(f'SELECT * FROM "{target.table}"')
                return cursor.fetch_arrow_table()


def seen(target: Target) -> list[tuple[Any, ...]]:
    table = read(target)
    columns = [table[name].to_pylist() for name in ("k", "city", "window", "n", "mean")]
    hours = [int(at.timestamp()) // 3600 for at in table["window_start"].to_pylist()]
    found = zip(*columns[:3], hours, *columns[3:], strict=True)
    return sorted(found, key=repr)


def test_rows_are_upserted_by_key_window_and_bounds_and_a_mark_is_written_once(
    target: Target,
) -> None:
    target.check()
    assert target.last("s/q") is None
    first = rows_of(
        ("a", "x", "1h", 0, 1, 0.5), (None, "x", "1h", 0, 2, None), ("a", "x", "it's", 0, 3, 1.5)
    )
    assert target.write(first, IDENTITY, Mark("s/q", 0))
    assert target.last("s/q") == 0
    # A micro-batch that is run again has the same number; whatever it brings, it is there.
    assert not target.write(rows_of(("a", "x", "1h", 0, 99, 9.0)), IDENTITY, Mark("s/q", 0))
    # Another stream counts by itself.
    assert target.write(rows_of(("b", "y", "1h", 0, 7, 7.0)), IDENTITY, Mark("other/q", 0))
    later = rows_of(
        ("a", "x", "1h", 0, 10, 5.0), (None, "x", "1h", 0, 20, 2.0), ("a", "x", "1h", 1, 4, 4.0)
    )
    assert target.write(later, IDENTITY, Mark("s/q", 5))
    assert target.last("s/q") == 5
    assert not target.write(later, IDENTITY, Mark("s/q", 4))
    assert seen(target) == sorted(
        [
            ("a", "x", "1h", 0, 10, 5.0),
            (None, "x", "1h", 0, 20, 2.0),
            ("a", "x", "it's", 0, 3, 1.5),
            ("b", "y", "1h", 0, 7, 7.0),
            ("a", "x", "1h", 1, 4, 4.0),
        ],
        key=repr,
    )


def test_a_stretch_that_is_cleared_keeps_what_is_written_anew_and_nothing_else(
    target: Target,
) -> None:
    whole = rows_of(*(("a", "x", label, hour, hour, 1.0) for label in "lm" for hour in range(4)))
    target.write(whole, IDENTITY, Mark("r", 1))
    anew = rows_of(("a", "x", "l", 2, 20, 1.0), ("b", "x", "l", 1, 11, 1.0))
    cleared = [Stretch("l", HOUR, 3 * HOUR), Stretch("m", 3 * HOUR, 9 * HOUR)]
    target.write(anew, IDENTITY, Mark("r", 2), cleared)
    wanted = [("a", "x", "l", h, h, 1.0) for h in (0, 3)]
    wanted += [("a", "x", "m", h, h, 1.0) for h in (0, 1, 2)]
    wanted += [("a", "x", "l", 2, 20, 1.0), ("b", "x", "l", 1, 11, 1.0)]
    assert seen(target) == sorted(wanted, key=repr)
    target.write(rows_of(), IDENTITY, Mark("r", 3), [Stretch("m", 0, 9 * HOUR)])
    assert seen(target) == sorted((row for row in wanted if row[2] == "l"), key=repr)


def test_a_table_of_its_own_for_each_of_several_queries(target: Target) -> None:
    for name in ("lows", "highs"):
        target.named(name).write(rows_of(("a", name, "1h", 0, 1, 1.0)), IDENTITY, Mark("s", 0))
    assert [row[1] for row in seen(target.named("highs"))] == ["highs"]


def test_places_that_cannot_be_are_refused_with_what_to_do(database: str) -> None:
    with pytest.raises(weft.InputError, match="names a database and no table"):
        target_of(database)
    with pytest.raises(weft.InputError, match="no table of a catalog"):
        target_of("iceberg://lows")
    with pytest.raises(weft.InputError, match="option 'kye'"):
        target_of("delta://lows?kye=a")
    gone = target_of("jdbc:postgresql://127.0.0.1:1/db?user=u&password=secret&table=t")
    assert gone is not None
    with pytest.raises(weft.InputError, match="cannot be written") as refusal:
        gone.check()
    assert "secret" not in f"{refusal.value}{gone!r}"
    named = target_of(f"{database}&table=bare")
    assert named is not None
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE bare (k text, city text, n bigint)")
        connection.commit()
    with pytest.raises(weft.InputError, match="unique index"):
        named.write(
            rows_of(("a", "x", "1h", 0, 1, 1.0)).select(["k", "city", "n"]),
            RowIdentity(("k", "city")),
            Mark("s", 0),
        )
    assert named.last("s") is None, "a mark without its rows would lose them"


def test_windows_cut_by_events_are_not_told_apart_by_their_bounds() -> None:
    query = weft.Query(
        "q", source="t", windows={"10": weft.counting(10)}, aggs={"n": "count(*)"}, keys=["k"]
    )
    assert identity_of(query).obstacle is not None
    assert identity_of(query.with_windows({"s": weft.session("5 minutes")})).obstacle is None


def test_refreshes_into_a_table_give_what_a_run_over_all_events_does(
    place: str, target: Target, tmp_path: Path
) -> None:
    query = weft.Query(
        "counts",
        source="t",
        time="ts",
        keys=["k"],
        windows={"1h": "1 hour", "day": weft.hopping("24 hours", "12 hours")},
        aggs={"n": "count(*)", "hi": "max(v)"},
    )
    random = np.random.default_rng(5)

    def day(number: int, rows: int = 50) -> pa.Table:
        times = number * 24 * HOUR + random.integers(0, 24 * HOUR, rows)
        return pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "k": pa.array(random.choice(["a", "b"], rows)),
                "v": pa.array(random.normal(size=rows)),
            }
        )

    store = weft.Store(tmp_path / "store", query)
    steps = [
        lambda: store.append(day(0), id="0"),
        lambda: store.append(day(1), id="1"),
        lambda: store.append(day(0, 3), id="late"),
        lambda: store.replace(day(1, 5), id="1"),  # most rows of that day go
        lambda: store.append(day(4), id="4"),
    ]
    for step in steps:
        step()
        done = weft.refresh(query, store, into=place)
        assert_same_rows(query, read(target), store.run(query))
    assert 0 < done.rows < read(target).num_rows
    assert weft.refresh(query, store, into=place).rows == 0
    other = query.with_windows({"1h": "1 hour"})
    with pytest.raises(weft.InputError, match="no refresh of counts from this store has written"):
        weft.refresh(other, store, into=place)
