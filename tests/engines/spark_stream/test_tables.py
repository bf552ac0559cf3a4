"""Streams into tables of others: open windows show, and a micro-batch run again changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import weft
from places.iceberg_catalog import iceberg_catalog
from places.postgres_server import MISSING, postgres_programs, postgres_server
from weft import agg
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    if postgres_programs() is None:
        pytest.skip(MISSING)
    with postgres_server() as address:
        yield address


def asked(name: str) -> weft.Query:
    return weft.Query(
        name,
        source="r",
        time="ts",
        keys=["k"],
        windows={
            "20s": weft.tumbling("20 seconds"),
            "1m": weft.hopping("60 seconds", "30 seconds"),
        },
        aggs={"n": agg.count(), "lo": agg.min("v")},
        watermark="5 seconds",
    )


def read(kind: str, place: str, database: str) -> pa.Table:
    """Read a table as others do."""
    if kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(place.removeprefix("delta://")).to_pyarrow_table()
    if kind == "iceberg":
        from pyiceberg.catalog import load_catalog

        catalog, _, table = place.removeprefix("iceberg://").partition(".")
        return load_catalog(catalog).load_table(table).scan().to_arrow()
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM counts")
        return cursor.fetch_arrow_table()


@pytest.mark.parametrize(
    "kind",
    [
        "delta",
        pytest.param("iceberg", marks=pytest.mark.soak),
        pytest.param("postgresql", marks=pytest.mark.soak),
    ],
)
def test_tables_show_open_windows_and_a_batch_that_is_run_again_changes_nothing(
    streams: Any, readings: pa.Table, kind: str, request: pytest.FixtureRequest
) -> None:
    place, database = streams.place, ""
    if kind == "postgresql":
        database = request.getfixturevalue("database")
    sink = {
        "delta": f"delta://{place}/delta",
        "iceberg": f"iceberg://{iceberg_catalog()}.stream.counts",
        "postgresql": f"jdbc:{database}&table=counts",
    }[kind]
    streams.write(readings, 3)
    files = sorted((place / "in").iterdir())
    files[2].rename(place / "later")

    def run() -> None:
        source = {"r": streams.read()}
        weft.start(asked("q"), source, sink, place / "c", "once", mode="update").awaitTermination()

    run()
    first = read(kind, sink, database)
    last = max(int(p.name) for p in (place / "c" / "commits").iterdir() if p.name.isdecimal())
    for name in (f"{last}", f".{last}.crc"):
        (place / "c" / "commits" / name).unlink(missing_ok=True)
    (place / "later").rename(files[2])
    run()  # the last micro-batch again, and then the rest
    got, wanted = (
        read(kind, sink, database),
        weft.run(asked("q"), {"r": readings}, engine="reference"),
    )
    assert_same_rows(asked("q"), got, wanted)
    assert first.num_rows < got.num_rows
    if kind == "delta":
        from deltalake import DeltaTable

        numbers = [int(entry["version"]) for entry in DeltaTable(f"{place}/delta").history()]
        batches = [p for p in (place / "c" / "commits").iterdir() if p.name.isdecimal()]
        assert len(numbers) - 1 <= len(batches), "a micro-batch was committed twice"


def test_windows_that_bounds_do_not_tell_apart_are_refused_before_the_stream_starts(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 1)
    query = asked("q").with_windows({"10": weft.counting(10)})
    with pytest.raises(weft.UnsupportedError, match="window '10' is cut by events"):
        weft.start(query, {"r": streams.read()}, f"delta://{streams.place}/t", streams.place / "c")
    assert not (streams.place / "t").exists()


def test_a_directory_refuses_the_batches_of_another_stream(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 1)
    for number, checkpoint in enumerate(("one", "other")):
        stream = weft.start(
            asked("q"), {"r": streams.read()}, streams.place / "out", streams.place / checkpoint,
            "once", "columnar",
        )  # fmt: skip
        if number == 0:
            stream.awaitTermination()
        else:
            with pytest.raises(Exception, match="has the micro-batches of another stream"):
                stream.awaitTermination()
