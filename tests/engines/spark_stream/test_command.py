"""`weft stream` as users run it: a line for each micro-batch, Ctrl-C, and on again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SQL = "SELECT k, MIN(v) AS lo FROM r TIMESTAMP BY ts GROUP BY k, window(ts, '30 seconds')"


def started(place: Path, *more: str) -> subprocess.Popen[str]:
    arguments = ["stream", "-e", SQL, "--source", f"r={place / 'in'}", "--watermark", "5s"]
    arguments += ["--checkpoint", str(place / "c"), "--sink", str(place / "out")]
    return subprocess.Popen(
        [sys.executable, "-m", "weft", *arguments, "--files-per-batch", "1", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_stops_the_stream_and_the_same_command_goes_on(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 3)
    running = started(streams.place)
    assert running.stdout is not None
    first = running.stdout.readline()
    assert first.startswith("batch 0: 200 rows, ")
    assert "open windows" in first
    running.send_signal(signal.SIGINT)
    said, complaints = running.communicate(timeout=120)
    assert running.returncode == 0, complaints
    assert "the same command goes on from the checkpoint" in said.splitlines()[-1]
    again = started(streams.place, "--once", "--json")
    said, complaints = again.communicate(timeout=240)
    assert again.returncode == 0, complaints
    reports = [json.loads(line) for line in said.splitlines()]
    assert all(report["batch"] > 0 for report in reports)
    assert sum(report["rows"] for report in reports) <= 400
    last = reports[-1]
    assert last["watermark"].startswith("2023-11-14T22:23:")
    assert last["late"] == 0
    assert last["open_windows"] > 0
    assert last["state_bytes"] > 0


def test_a_stream_that_cannot_be_read_is_one_clear_message(streams: Any) -> None:
    (streams.place / "in").mkdir()
    running = started(streams.place, "--once")
    _, complaints = running.communicate(timeout=240)
    assert running.returncode == 2
    assert "there is no file in it" in complaints
    assert "Traceback" not in complaints
