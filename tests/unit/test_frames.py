"""Tables of every library: what comes in, and what comes out."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import weft
from weft.frames import kind_of, to_arrow

ROWS = 200
TABLE = pa.table(
    {
        "ts": pa.array(np.arange(ROWS) * 7_000_000).cast(pa.timestamp("us", "UTC")),
        "device": [f"d{i % 3}" for i in range(ROWS)],
        "temp": np.arange(ROWS) / 4,
    }
)
QUERY = weft.Query(
    "means",
    source="readings",
    time="ts",
    keys=["device"],
    windows={"1m": weft.tumbling("1 minute"), "5m": weft.hopping("5 minutes", "1 minute")},
    aggs={"mean": weft.agg.avg("temp"), "n": weft.agg.count()},
)
WANTED = weft.run(weft.Workload([QUERY]), {"readings": TABLE}, engine="reference").to_pylist()


class Stream:
    """What a library of our own would hand over: batches by the protocol, and nothing else."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def relation(table: pa.Table) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection.from_arrow(table).filter("temp >= 0")


def views(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("device")
    return table.set_column(at, "device", table["device"].cast(pa.string_view()))


GIVEN = {
    "an Arrow reader": (lambda: TABLE.to_reader(), pa.Table),
    "an Arrow batch": (lambda: TABLE.combine_chunks().to_batches()[0], pa.Table),
    "views of text": (lambda: views(TABLE), pa.Table),
    "a stream by the protocol": (lambda: Stream(TABLE), pa.Table),
    "a stream of views": (lambda: Stream(views(TABLE)), pa.Table),
    "a DuckDB relation": (lambda: relation(TABLE), pa.Table),
    "a Polars frame": (lambda: pl.from_arrow(TABLE), pl.DataFrame),
    "a lazy Polars frame": (lambda: pl.from_arrow(TABLE).lazy().filter(pl.len() > 0), pl.DataFrame),
    "a pandas frame": (lambda: TABLE.to_pandas(), pd.DataFrame),
    "a pandas frame of times": (lambda: TABLE.to_pandas().set_index("ts"), pd.DataFrame),
}


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize(("make", "type"), GIVEN.values(), ids=GIVEN.keys())
def test_tables_come_in_by_any_door_and_go_out_by_their_own(make, type, engine: str) -> None:
    result = weft.run(QUERY, {"readings": make()}, engine=engine)
    assert isinstance(result, type)
    assert to_arrow(result).select(QUERY.columns).to_pylist() == WANTED


def test_sessions_take_what_batches_come_in() -> None:
    session = weft.LocalSession(QUERY)
    half = ROWS // 2
    parts = [
        session.push("readings", Stream(TABLE[:half])),
        session.push("readings", pl.from_arrow(TABLE[half:]).lazy()),
        session.finish(),
    ]
    assert pa.concat_tables(parts).to_pylist() == WANTED


def test_statistics_are_measured_of_a_relation() -> None:
    measured = weft.Statistics.measure(relation(TABLE), time="ts", keys=["device"])
    assert measured.keys == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.chunked_array([[1, 2]]), "cannot read a table from ChunkedArray: "),
        (pl.Series("x", [1]), "cannot read a table from Series: "),
        ([1, 2], "cannot read a table from list"),
    ],
)
def test_what_has_no_named_columns_is_no_table(given: Any, message: str) -> None:
    with pytest.raises(weft.DataError) as refused:
        weft.run(QUERY, {"readings": given})
    assert str(refused.value).startswith(message)
    assert "\nhint: pass " in str(refused.value)


def test_subclasses_are_what_they_derive_from() -> None:
    class Readings(pd.DataFrame):
        """As GeoPandas has them."""

    assert kind_of(Readings({"x": [1]})) == "pandas"


def indexed(**changes: Any) -> pd.DataFrame:
    return TABLE.to_pandas().set_index("ts").rename_axis(**changes)


def test_a_time_index_is_the_event_time() -> None:
    asked = {"windows": {"1m": weft.tumbling("1 minute")}, "aggs": {"n": weft.agg.count()}}
    wanted = weft.aggregate(TABLE, **asked).to_pylist()
    for frame, time in (
        (indexed(), None),
        (indexed(), "ts"),
        (indexed(index=None), None),
        (indexed(index=None), "index"),
        (TABLE.to_pandas().set_index(["device", "ts"]), "ts"),
    ):
        assert to_arrow(weft.aggregate(frame, time=time, **asked)).to_pylist() == wanted
    by_level = TABLE.to_pandas().set_index(["device", "ts"])
    assert weft.aggregate(by_level, by=["device"], **asked)["n"].sum() == ROWS


def test_a_column_goes_before_an_index_of_its_name() -> None:
    frame = TABLE.to_pandas()
    frame.index = pd.DatetimeIndex(frame["ts"] + pd.Timedelta(days=1), name="ts")
    assert to_arrow(frame)["ts"].equals(TABLE["ts"].cast(to_arrow(frame)["ts"].type))


def test_an_index_without_times_is_left_out() -> None:
    assert to_arrow(TABLE.to_pandas().set_index("device")).column_names == ["ts", "temp"]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_short_forms_ask_the_same(engine: str) -> None:
    asked = {"windows": {"1m": "1 minute", "5m": weft.tumbling("5 minutes")}, "engine": engine}
    short = weft.aggregate(
        indexed(), by="device", aggs={"m": "avg(temp)", "n": "count(*)"}, **asked
    )
    whole = weft.aggregate(
        TABLE,
        time="ts",
        by={"device": "device"},
        aggs={"m": weft.agg.avg("temp"), "n": weft.agg.count()},
        **asked,
    )
    assert to_arrow(short).to_pylist() == whole.to_pylist()
