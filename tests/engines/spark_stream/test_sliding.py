"""Windows that slide with the events, over tables and streams of Spark: rows of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

import weft
from engines.spark_stream.test_rolling import DELAY_S, START_US, S, complete, disordered, payments
from weft.cli.app import app
from weft.engines.spark.session import to_spark
from weft.engines.spark.streaming.settings import setting
from weft.tables import read_table, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from conftest import Streams

pytestmark = pytest.mark.spark
ITEMS = """user, COUNT(*) AS n, COUNT(*) FILTER (WHERE q > 0) AS some, SUM(q) AS s, AVG(q) AS m,
           MIN(w) AS lo, COUNT(DISTINCT shop) AS shops, window_start, window_end"""
SLIDING = (
    f"SELECT {ITEMS} FROM r TIMESTAMP BY ts WHERE q > -7 GROUP BY user, SlidingWindow(second, 20)"
)
CQL = f"SELECT {ITEMS} FROM r [RANGE 20 SECONDS] GROUP BY user"


def lines(rows: pa.Table) -> list[str]:
    """Return rows as texts in order, with times in UTC."""
    bounds = ("window_start", "window_end")
    for at, name in enumerate(rows.column_names):
        if name in bounds:
            rows = rows.set_column(at, name, rows[name].cast(pa.timestamp("us", "UTC")))
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("text", [SLIDING, CQL])
def test_a_table_of_spark_has_the_rows_of_this_process(spark: SparkSession, text: str) -> None:
    rows = payments(600)
    wanted = weft.sql(text, r=rows)
    # Rows of one instant come in different batches too.
    with setting(spark, "spark.sql.execution.arrow.maxRecordsPerBatch", "7"):
        found = weft.sql(text, r=to_spark(rows, spark)).toArrow()
    assert found.column_names == wanted.column_names
    assert wanted.num_rows > 300
    assert lines(found) == lines(wanted)


def test_the_plan_of_a_table_of_spark_is_told_and_nothing_is_run(spark: SparkSession) -> None:
    frame = to_spark(payments(10), spark)
    told = str(weft.explain(SLIDING, r=frame))
    assert "TRAIL 20s (t-20s, t]" in told
    frame.createOrReplaceTempView("r")
    assert lines(weft.sql(CQL).toArrow()) == lines(weft.sql(CQL, r=payments(10)))
    with pytest.raises(weft.UnsupportedError, match="bound by Spark"):
        weft.sql(SLIDING, r=frame, args={"q": 1})
    with pytest.raises(weft.QueryError, match="no table 'r'"):
        weft.sql(SLIDING, s=frame)
    with pytest.raises(weft.QueryError, match="stands alone"):
        weft.sql(SLIDING + ", TumblingWindow(second, 3)", r=frame)
    # A literal that speaks of such windows is none.
    plain = "SELECT 'SlidingWindow(second, 20)' AS word"
    assert weft.sql(plain, r=frame).collect()[0].word == "SlidingWindow(second, 20)"


@pytest.mark.usefixtures("spark")
def test_the_command_runs_it_over_files_on_both_engines(tmp_path: Path) -> None:
    rows = payments(100).drop_columns(["note"])
    write_table(rows, tmp_path / "rows.parquet")
    for engine in ("spark", "local"):
        out = tmp_path / f"{engine}.parquet"
        words = ["sql", "-e", SLIDING, "-t", f"r={tmp_path / 'rows.parquet'}", "-o", str(out)]
        result = CliRunner().invoke(app, [*words, "--engine", engine])
        assert result.exit_code == 0, result.output
        assert lines(read_table(out)) == lines(weft.sql(SLIDING, r=rows))


@pytest.mark.usefixtures("rocks")
@pytest.mark.parametrize("text", [SLIDING, CQL])
def test_a_stream_that_is_restarted_has_the_rows_of_a_table(streams: Streams, text: str) -> None:
    rows = payments(1_200)
    rows = disordered(rows.filter(pc.greater(rows["q"], -7)))
    streams.cut(rows.slice(0, 600), 2)

    def asked() -> Any:
        return weft.sql(text, r=streams.read().withWatermark("ts", f"{DELAY_S} seconds"))

    first = streams.ran(asked())
    streams.append(rows.slice(600))
    second = streams.ran(asked())
    wanted = weft.sql(text, r=rows)
    timed = wanted.append_column("ts", wanted["window_end"])
    closed = complete(timed, rows).drop_columns(["ts"])
    assert 0 < first.rows.num_rows < closed.num_rows
    assert closed.num_rows > 600
    assert lines(pa.concat_tables([first.rows, second.rows])) == lines(closed)


@pytest.mark.usefixtures("rocks")
def test_a_late_event_neither_comes_nor_leaves(streams: Streams) -> None:
    seconds = [0, 10, 100, 101, 5, 300, 400]  # the fifth one is late
    times = pa.array([START_US + second * S for second in seconds], pa.timestamp("us", "UTC"))
    table = pa.table({"ts": times, "q": range(7)})
    streams.cut(table.slice(0, 3), 1)
    for at, rows in ((3, 1), (4, 2), (6, 1)):
        streams.append(table.slice(at, rows))
    source = streams.read().withWatermark("ts", "20 seconds")
    text = "SELECT SUM(q) AS s, COUNT(*) AS n FROM r GROUP BY SlidingWindow(second, 99)"
    found = streams.ran(weft.sql(text, r=source)).rows.sort_by("window_end")
    ends = [int(end.timestamp()) - START_US // S for end in found["window_end"].to_pylist()]
    # At 104 nothing leaves: the late event was never there.
    assert list(zip(ends, found["s"].to_pylist(), found["n"].to_pylist(), strict=True)) == [
        (0, 0, 1),
        (10, 1, 2),
        (99, 1, 1),
        (100, 3, 2),
        (101, 6, 3),
        (109, 5, 2),
        (199, 3, 1),
        (300, 5, 1),
    ]


def test_the_command_runs_it_and_goes_on_from_its_checkpoint(streams: Streams) -> None:
    rows = payments(400)
    streams.cut(rows, 2)
    place = streams.place
    words = ["stream", "-e", CQL, "--source", f"r={place / 'in'}", "--sink", str(place / "out")]
    words += ["--checkpoint", str(place / "state"), "--watermark", f"{DELAY_S} seconds"]
    for _ in range(2):
        result = CliRunner().invoke(app, [*words, "--once", "--json"])
        assert result.exit_code == 0, result.output
    found = streams.spark.read.parquet(str(place / "out")).toArrow().drop_columns(["batch"])
    wanted = weft.sql(CQL, r=rows)
    closed = complete(wanted.append_column("ts", wanted["window_end"]), rows).drop_columns(["ts"])
    assert closed.num_rows > 100
    assert lines(found) == lines(closed)
