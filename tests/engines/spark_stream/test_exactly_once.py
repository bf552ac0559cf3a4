"""Exactly once: the driver is killed again and again, and the sink has each row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import weft
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow]
S = 1_000_000
SQL = """-- name: counts
SELECT k, COUNT(*) AS n, MIN(v) AS lo FROM r TIMESTAMP BY ts
GROUP BY k, Windows(Window('10s', TumblingWindow(second, 10)),
                    Window('30s', TumblingWindow(second, 30)),
                    Window('40s/10s', HoppingWindow(second, 40, 10)))
"""


class Life:
    """One run of `weft stream` in a process group of its own, which can be killed as a whole."""

    def __init__(self, place: Path, strategy: str) -> None:
        arguments = ["stream", "-e", SQL, "--source", f"r={place / 'in'}", "--watermark", "5s"]
        arguments += ["--checkpoint", str(place / "checkpoint"), "--sink", str(place / "out")]
        arguments += ["--files-per-batch", "1", "--once", "--json", "--strategy", strategy]
        quick = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weft", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **quick},
        )
        self.reports = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for _ in self.process.stdout:
            self.reports += 1

    def killed(self, moments: random.Random) -> bool:
        """Kill it at a random moment of its start, or of one of its first micro-batches."""
        after, latest = moments.choice([0, 0, 1, 1, 2]), time.monotonic() + 120
        while self.reports < after and self.process.poll() is None:
            assert time.monotonic() < latest, "no micro-batch in two minutes"
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 8 if after == 0 else 1.5))
        alive = self.process.poll() is None
        if alive:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        return alive

    def ended(self) -> tuple[int, str]:
        """Wait for the end of all that is there."""
        _, told = self.process.communicate(timeout=240)
        return self.process.returncode, told


def in_utc(rows: pa.Table) -> pa.Table:
    """Read timestamps as Spark means them, whatever the files say of zones and units."""
    instant = pa.timestamp("us", "UTC")
    types = [instant if pa.types.is_timestamp(f.type) else f.type for f in rows.schema]
    return rows.cast(pa.schema(list(zip(rows.schema.names, types, strict=True))))


def run_killing(streams: Any, readings: pa.Table, kills: int, strategy: str) -> None:
    streams.write(readings, kills + 6)
    moments = random.Random(kills)
    done = 0
    while done < kills:
        done += Life(streams.place, strategy).killed(moments)
    status, told = Life(streams.place, strategy).ended()
    assert status == 0, told
    (query,) = weft.parse(SQL).queries
    wanted = streams.closed(weft.run(weft.Workload([query]), {"r": readings}), 5 * S)
    got = in_utc(ds.dataset(streams.place / "out").to_table())
    assert wanted.num_rows > 100
    assert_same_rows(query, got, wanted)


def test_kills_at_random_moments_lose_and_repeat_nothing(streams: Any, readings: pa.Table) -> None:
    run_killing(streams, readings, 4, "native")


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_thirty_kills_at_random_moments_lose_and_repeat_nothing(
    streams: Any, readings: pa.Table, strategy: str
) -> None:
    run_killing(streams, readings, 30, strategy)
