"""`weft store`: append, run, refresh and show."""

from __future__ import annotations

import pyarrow.parquet as pq
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.generate import sensors
from weft.tables import write_table

SQL = """-- name: lows
SELECT device, MIN(temp) AS lo, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 minute')
"""
READINGS = sensors(rows=300, seed=3, devices=2, rate=2.0)


def invoke(*words: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["store", *map(str, words)])
    assert result.exit_code == status, result.stderr
    return result.stderr if status == 2 else result.stdout


def test_a_store_is_made_asked_and_refreshed(tmp_path):
    table = f"readings={write_table(READINGS, tmp_path / 'readings.parquet')}"
    store = tmp_path / "store"
    told = invoke("append", store, "-e", SQL, "-t", table, "--id", "one")
    assert "version 2, 300 events in 1 batches" in told
    assert "version 2, 300 events" in invoke("append", store, "-t", table, "--id", "one")
    assert "version 3" in invoke("append", store, "-t", table, "--id", "one", "--replace")
    shown = invoke("show", store)
    assert "slices of readings by device, cut every 1m" in shown
    assert "min_temp: min(temp)" in shown
    wide = SQL.replace("1 minute", "2 minutes")
    out = tmp_path / "rows.parquet"
    invoke("run", store, "-e", wide, "-o", out)
    wanted = weft.run(weft.parse(wide), {"readings": READINGS})
    assert pq.read_table(out).to_pylist() == wanted.to_pylist()
    rows = weft.Store(store).run().num_rows
    assert f"{rows} rows in 1 files" in invoke("refresh", store, "--into", tmp_path / "r")
    assert pq.read_table(tmp_path / "r").num_rows == rows
    lacks = invoke("run", store, "-e", SQL.replace("1 minute", "10 seconds"), status=2)
    assert "would need slices cut every 10s; they are cut every 1m" in lacks
    assert "there is no store" in invoke("show", tmp_path / "nowhere", status=2)
