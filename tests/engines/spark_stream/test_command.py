"""`weft stream` as users run it: a line for each micro-batch, Ctrl-C, and on again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

import weft
from places.kafka_broker import free_port
from weft.cli.app import app
from weft.engines.spark.session import to_spark
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SQL = "SELECT k, MIN(v) AS lo FROM r TIMESTAMP BY ts GROUP BY k, window(ts, '30 seconds')"


def arguments(place: Path) -> list[str]:
    words = ["stream", "-e", SQL, "--source", f"r={place / 'in'}", "--watermark", "5s"]
    words += ["--checkpoint", str(place / "c"), "--sink", str(place / "out")]
    return [*words, "--files-per-batch", "1"]


def started(place: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "weft", *arguments(place), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
    )


def test_ctrl_c_stops_the_stream_and_the_same_command_goes_on(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 3)
    port = free_port()
    running = started(streams.place, "--metrics", f"127.0.0.1:{port}")
    assert running.stdout is not None
    first = running.stdout.readline()
    assert first.startswith("batch 0: 200 rows, ")
    assert "open windows" in first
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        figures = dict(
            line.split() for line in answer.read().decode().splitlines() if line[0] != "#"
        )
    assert int(figures["weft_events_total"]) >= 200
    assert int(figures["weft_open_windows"]) > 0
    running.send_signal(signal.SIGINT)
    said, complaints = running.communicate(timeout=120)
    assert running.returncode == 0, complaints
    assert "the same command goes on from the checkpoint" in said.splitlines()[-1]
    assert streams.spark is not None  # the command takes the session that is there
    again = CliRunner().invoke(app, [*arguments(streams.place), "--once", "--json"])
    assert again.exit_code == 0, again.output
    reports = [json.loads(line) for line in again.stdout.splitlines()]
    assert all(report["batch"] > 0 for report in reports)
    assert sum(report["rows"] for report in reports) <= 400
    last = reports[-1]
    assert last["watermark"].startswith("2023-11-14T22:23:")
    assert last["late"] == 0
    assert last["open_windows"] > 0
    assert last["state_bytes"] > 0
    (query,) = weft.parse(SQL).queries
    rows = streams.spark.read.parquet(str(streams.place / "out")).drop("batch").toArrow()
    wanted = streams.closed(weft.run(query, {"r": readings}, engine="reference"), 5_000_000)
    assert wanted.num_rows > 20
    assert_same_rows(query, rows, wanted)


def test_a_stream_that_cannot_be_read_is_one_clear_message(streams: Any) -> None:
    (streams.place / "in").mkdir()
    assert streams.spark is not None  # the command takes the session that is there
    result = CliRunner().invoke(app, [*arguments(streams.place), "--once"])
    assert result.exit_code == 2
    assert "there is no file in it" in result.output
    assert "Traceback" not in result.output


FRAMES = (
    "SELECT k, ts, v, round(SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 20 "
    "SECONDS PRECEDING AND CURRENT ROW), 6) AS total FROM r"
)


def test_a_statement_with_frames_goes_on_from_its_checkpoint(
    streams: Any, readings: pa.Table
) -> None:
    table = readings.filter(pc.is_valid(readings["ts"])).sort_by("ts")
    streams.cut(table.slice(0, 400), 2)
    words = [FRAMES if word == SQL else word for word in arguments(streams.place)]
    spark, out = streams.spark, str(streams.place / "out")
    result = CliRunner().invoke(app, [*words, "--once", "--json"])
    assert result.exit_code == 0, result.output
    some = spark.read.parquet(out).count()
    streams.append(table.slice(400))
    assert CliRunner().invoke(app, [*words, "--once", "--json"]).exit_code == 0
    rows = spark.read.parquet(out).toArrow()
    assert 0 < some < rows.num_rows
    passed = table["ts"][-1].as_py() - timedelta(seconds=5)
    wanted = weft.sql(FRAMES, r=to_spark(table, spark)).toArrow().to_pylist()
    closed = [row for row in wanted if row["ts"] < passed.replace(tzinfo=row["ts"].tzinfo)]
    found = rows.drop_columns(["batch"]).to_pylist()  # a file has the number of its micro-batch
    assert sorted(map(str, found)) == sorted(map(str, closed))
    refused = CliRunner().invoke(app, [*words, "--once", "--mode", "update"])
    assert refused.exit_code == 2
    assert "--mode update is of windows" in refused.output
