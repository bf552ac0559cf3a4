"""`weft run` and `weft verify` over files in every format."""

from __future__ import annotations

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.cli.commands.verify import compare, conclude, verify_plan
from weft.generate import sensors
from weft.tables import read_table, write_table

SQL = """-- name: lows
SELECT device, MIN(temp) AS lo, COUNT(*) AS n FROM readings
GROUP BY device, window(ts, '1 minutes');
-- name: highs
SELECT device, MAX(humidity) AS hi FROM readings
GROUP BY device, window(ts, '2 minutes', '1 minutes')
"""
# Spark, the default, has tests of its own beside those of its engine.
LOCAL = ("run", "--engine", "local")
READINGS = sensors(rows=300, seed=3, devices=2, rate=2.0)


@pytest.fixture
def statements(tmp_path):
    path = tmp_path / "two.sql"
    path.write_text(SQL)
    return str(path)


def invoke(*words: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == status, result.stderr
    return result.stderr if status == 2 else result.stdout


@pytest.mark.parametrize("extension", ["parquet", "csv", "json"])
def test_rows_are_those_of_the_library_in_every_format(tmp_path, statements, extension):
    table = write_table(READINGS, tmp_path / f"readings.{extension}")
    out = tmp_path / f"out.{extension}"
    shown = invoke(*LOCAL, statements, "-t", f"readings={table}", "-o", out, "--limit", 2)
    wanted = weft.run(weft.parse(SQL), {"readings": READINGS})
    for name, rows in wanted.items():
        found = read_table(tmp_path / f"out-{name}.{extension}")
        plain = pa.schema([(f.name, f.type) for f in found.schema])
        assert found.equals(rows.cast(plain))
        assert f"{name}: {rows.num_rows} rows, the first 2 shown\nwrote " in shown


def test_a_folder_of_parts_is_one_table(tmp_path, statements):
    for part in range(3):
        write_table(READINGS.slice(part * 100, 100), tmp_path / "parts" / f"part-{part}.csv")
    assert "same: " in invoke("verify", statements, "-t", f"readings={tmp_path / 'parts'}")


def test_a_table_that_no_query_reads_is_not_opened(tmp_path, statements):
    table = write_table(READINGS, tmp_path / "readings.parquet")
    tables = ("-t", f"readings={table}", "-t", "other=/no/such/file.csv")
    assert "highs: " in invoke(*LOCAL, statements, *tables)


def test_nothing_runs_when_the_output_is_refused(tmp_path, statements):
    (tmp_path / "out-highs.csv").write_text("keep me")
    words = ("-t", "readings=/no/such/file.csv", "-o", tmp_path / "out.csv")
    assert "out-highs.csv: the file exists" in invoke("run", statements, *words, status=2)
    assert (tmp_path / "out-highs.csv").read_text() == "keep me"


@pytest.mark.parametrize("planner", ["auto", "independent"])
def test_verify_compares_the_plan_with_the_reference_engine(tmp_path, statements, planner):
    table = write_table(READINGS, tmp_path / "readings.parquet")
    words = ("-t", f"readings={table}", "--engines", "reference", "--planner", planner)
    shown = invoke("verify", statements, *words)
    rows, differences = verify_plan(weft.parse(SQL), {"readings": READINGS}, planner)
    assert (shown, differences) == (f"same: {rows} rows on reference and plan\n", ())


def test_a_difference_is_named_and_ends_with_1(capsys):
    workload = weft.parse(SQL)
    made = weft.run(workload, {"readings": READINGS})
    wrong = made["highs"]
    at = wrong.schema.get_field_index("hi")
    made["highs"] = wrong.set_column(at, "hi", pa.array([-1.0] * wrong.num_rows))
    _, differences = compare(workload, {"readings": READINGS}, made, "local")
    assert [difference.query for difference in differences] == ["highs"]
    with pytest.raises(typer.Exit) as end:
        conclude("all rows", differences)
    assert end.value.exit_code == 1
    shown = capsys.readouterr().out
    assert shown.startswith("different: query 'highs', window ")
    assert "hi is -1.0 on local, not " in shown


def test_one_query_is_compared_as_well():
    workload = weft.parse(SQL.partition(";")[0])
    made = weft.run(workload, {"readings": READINGS})
    tables = {"readings": READINGS}
    assert compare(workload, tables, made, "local") == (made.num_rows, ())
    _, differences = compare(workload, tables, made.slice(1), "local")
    assert len(differences) == 1


def test_stats_show_expected_beside_counted_rows(tmp_path, statements):
    table = write_table(READINGS, tmp_path / "readings.parquet")
    words = ("-t", f"readings={table}", "-n", 0, "--stats", "--rate", 2, "--keys", 2)
    shown = [line.split() for line in invoke(*LOCAL, statements, *words).splitlines()]
    rows = {" ".join(line[:-4]): line[-3] for line in shown if len(line) > 4}
    assert rows["s0 SCAN readings by ts"] == "300"
    assert rows["-> query 'lows' window '1m'"] == "6"
    totals = dict(line for line in shown if len(line) == 2)
    assert (totals["events"], totals["scans"], totals["shuffles"]) == ("300", "1", "0")
    told = {" ".join(line[:-1]): line[-1] for line in shown if line}
    assert float(told["ms"].replace(",", "")) >= 0
    assert float(told["ms expected"].replace(",", "")) > 0


def test_an_engine_that_does_not_measure_says_so(tmp_path, statements):
    table = write_table(READINGS, tmp_path / "readings.parquet")
    words = ("-t", f"readings={table}", "--stats", "--engine", "reference")
    message = invoke("run", statements, *words, status=2)
    assert "the reference engine does not tell what a run took" in message
