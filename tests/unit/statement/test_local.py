"""Statements over tables of other libraries: no Spark, the columns that Spark would give."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

_HOUR = dt.datetime(2024, 3, 30, 10, tzinfo=dt.UTC)
READINGS = pa.table(
    {
        "ts": pa.array(
            [_HOUR + dt.timedelta(minutes=m) for m in (0, 20, 40, 70)], pa.timestamp("us", "UTC")
        ),
        "device": ["fan", "fan", "pump", None],
        "temp": [20.5, 21.5, None, 19.0],
    }
)
TWO = """
WITH hourly AS (
  SELECT device, window.start AS ws, COUNT(*) AS n, AVG(temp) AS mean
  FROM readings GROUP BY device, window(ts, '1 hour')
), daily AS (
  SELECT device, MAX(temp) - MIN(temp) FROM readings GROUP BY device, window(ts, '1 day')
)
SELECT h.device, h.ws, n, mean, n / 4 AS share, d.*
FROM hourly h JOIN daily d ON h.device <=> d.device ORDER BY ws, h.device NULLS LAST
"""


def test_a_statement_runs_without_spark_and_has_its_columns() -> None:
    rows = weft.sql(TWO, readings=READINGS)
    assert [(f.name, str(f.type)) for f in rows.schema] == [
        ("device", "string"),
        ("ws", "timestamp[us, tz=UTC]"),
        ("n", "int64"),
        ("mean", "double"),
        ("share", "double"),
        ("device", "string"),
        ("(max(temp) - min(temp))", "double"),
    ]
    assert rows.column(0).to_pylist() == ["fan", "pump", None]
    assert [rows.column(at).to_pylist() for at in (2, 3, 4, 6)] == [
        [2, 1, 1],
        [21.0, None, 19.0],
        [0.5, 0.25, 0.25],
        [1.0, None, 0.0],
    ]


@pytest.mark.parametrize("library", ["pandas", "polars", "stream"])
def test_tables_of_every_library_come_back_as_they_came(library: str) -> None:
    text = (
        "SELECT device, COUNT(*) AS n FROM r GROUP BY device, window(ts, '1 day') ORDER BY device"
    )
    given: Any = {
        "pandas": READINGS.to_pandas,
        "polars": lambda: polars.from_arrow(READINGS),
        "stream": READINGS.to_reader,
    }[library]()
    rows = weft.sql(text, r=given)
    assert type(rows) is (pa.Table if library == "stream" else type(given))
    assert [*rows["n"]] == [1, 2, 1] or rows["n"].to_pylist() == [1, 2, 1]


def test_several_statements_are_a_mapping_by_name() -> None:
    text = "-- name: rows\nSELECT COUNT(*) AS n FROM r; SELECT MAX(temp) AS top FROM r"
    results = weft.sql(text, r=READINGS)
    assert {name: table.to_pylist() for name, table in results.items()} == {
        "rows": [{"n": 4}],
        "q2": [{"top": 21.5}],
    }


def test_explain_tells_the_blocks_and_computes_nothing() -> None:
    told = str(weft.explain(TWO, readings=READINGS))
    assert told.startswith(
        "block 1 is shared\nblock 2 is shared\n\nevents:\n  SELECT ts AS weft_time"
    )
    assert "TUMBLE 1h" in told


def test_explain_takes_a_query_by_itself() -> None:
    query = weft.Query("q", source="r", time="ts", windows={"1h": "1 hour"}, aggs={"n": "count(*)"})
    assert weft.explain(query, r=READINGS) == weft.explain(weft.Workload([query]), r=READINGS)


def test_a_stream_reads_no_table(tmp_path: Path) -> None:
    query = weft.Query("q", source="r", time="ts", windows={"1h": "1 hour"}, aggs={"n": "count(*)"})
    with pytest.raises(weft.DataError, match="'r' is a Table, and a stream reads DataFrames"):
        weft.start(query, {"r": READINGS}, tmp_path / "out", tmp_path / "state")


def test_windows_of_weft_keep_their_columns() -> None:
    text = "SELECT MAX(temp) AS hi FROM r TIMESTAMP BY ts GROUP BY TumblingWindow(hour, 1)"
    assert "window_start" in weft.sql(text, r=READINGS).column_names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT nothing FROM readings", "no table that it reads has a column nothing"),
        ("SELECT temp FROM reading", "no table is named reading; given are readings"),
        ("SELECT MEDIAN(temp) FROM readings", "median of double is not among"),
        ("SELECT device, COUNT(*) AS n FROM readings GROUP BY CUBE (device)", "CUBE"),
        (
            "SELECT ts, PERCENTILE(temp, 0.5) FROM readings GROUP BY ts, window(ts, '1 hour')",
            "block 1",
        ),
        ("INSERT INTO readings SELECT * FROM readings", "does not read this statement"),
        ("WITH RECURSIVE a AS (SELECT 1 AS n) SELECT n FROM a", "does not run WITH RECURSIVE"),
        ("SELECT temp FROM readings, readings AS r", "temp may mean several columns"),
        ("SELECT device AS d FROM readings WHERE d = 'fan'", "has a column d"),
        ("SELECT temp, COUNT(*) AS n FROM readings", "cannot be run"),
    ],
)
def test_what_is_not_known_to_agree_is_refused(text: str, reason: str) -> None:
    with pytest.raises(weft.WeftError, match=reason) as refusal:
        weft.sql(text, readings=READINGS)
    assert "hint: use engine='spark'" in str(refusal.value)


def test_statements_run_from_the_command_line_without_spark(tmp_path: Path) -> None:
    place, out = tmp_path / "readings.parquet", tmp_path / "out.csv"
    pq.write_table(READINGS, place)
    file = tmp_path / "two.sql"
    file.write_text(TWO)
    words = ["sql", str(file), "-t", f"readings={place}", "--engine", "local", "--notes"]
    done = CliRunner().invoke(app, [*words, "-o", str(out)])
    assert done.exit_code == 0, done.stderr
    assert "block 2 is shared" in done.stdout
    assert out.read_text().count("\n") == 4
    refused = CliRunner().invoke(app, [*words[:4], "--engine", "magic"])
    assert (refused.exit_code, "use spark or local" in refused.stderr) == (2, True)


NO_SPARK = """
import sys
sys.modules["pyspark"] = None
import pyarrow as pa, weft
ts = pa.array([0, 60_000_000, 3_600_000_000], pa.timestamp("us", "UTC"))
text = "SELECT window.end AS e, SUM(x) FROM t GROUP BY window(ts, '1 hour') ORDER BY e"
print(weft.sql(text, t=pa.table({"ts": ts, "x": [1, 2, 3]}))["sum(x)"].to_pylist())
sys.modules["duckdb"] = None
import importlib.util
importlib.util.find_spec = lambda name: None
try:
    weft.sql(text, t=pa.table({"ts": ts, "x": [1, 2, 3]}))
except weft.UnsupportedError as error:
    print(error)
"""


def test_neither_spark_nor_duckdb_is_needed_to_import_it() -> None:
    done = subprocess.run([sys.executable, "-c", NO_SPARK], capture_output=True, text=True)
    assert done.stdout.splitlines()[0] == "[3, 3]", done.stderr


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("of <> 0 AND 10 / of > 1", [1, 3]),
        ("of = 0 OR 10 / of > 3", [0, 1]),
        ("(of IS NULL OR of = 0) OR 10 / of > 3", [0, 1, 2]),
    ],
)
def test_a_condition_that_decides_keeps_the_other_from_failing(where: str, kept: list[int]) -> None:
    table = pa.table({"id": [0, 1, 2, 3], "of": pa.array([0, 2, None, 4], pa.int32())})
    joined = f"SELECT id FROM t JOIN (SELECT id AS other FROM t) o ON id = other WHERE {where}"
    rows = weft.sql(f"{joined} ORDER BY id", engine="local", t=table)
    assert rows["id"].to_pylist() == kept
