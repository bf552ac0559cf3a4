"""Exactly once: the driver is killed again and again, and the sink has each row once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import weft
from engines.spark_stream.driver_to_kill import READY, asked
from weft.testing import assert_same_rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]
S = 1_000_000
DRIVER = Path(__file__).with_name("driver_to_kill.py")
PATIENCE_S = 120
UNREAD = 5  # files that are there and not read when a driver starts


class Life:
    """One driver in a process group of its own, which is killed as a whole, Spark and all."""

    def __init__(self, place: Path, strategy: str) -> None:
        self._commits, self._log = place / "checkpoint" / "commits", place / "complaints"
        with self._log.open("a") as complaints:
            self.process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(place), strategy],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                start_new_session=True,
            )

    def go(self) -> None:
        """Let the stream start, as soon as Spark has."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{READY}\n", self._log.read_text()
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    @property
    def done(self) -> int:
        """Micro-batches that are done and will not be run again."""
        if not self._commits.exists():
            return 0
        return sum(name.isdecimal() for name in os.listdir(self._commits))

    def killed(self, moments: random.Random) -> None:
        """Kill it at a random moment: of its start, or after a micro-batch or two."""
        wanted, latest = self.done + moments.choice([0, 1, 1]), time.monotonic() + PATIENCE_S
        while self.done < wanted:
            assert time.monotonic() < latest, f"no progress: {self._log.read_text()}"
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 1))
        assert self.process.poll() is None, f"it ended by itself: {self._log.read_text()}"
        self.kill()

    def kill(self) -> None:
        """Leave nothing of it; its group has its Java process in it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()

    def ended(self) -> tuple[int, str]:
        """Wait for the end of all that is there."""
        self.process.communicate(timeout=2 * PATIENCE_S)
        return self.process.returncode, self._log.read_text()


def in_utc(rows: pa.Table) -> pa.Table:
    """Read timestamps as Spark means them, whatever the files say of zones and units."""
    instant = pa.timestamp("us", "UTC")
    types = [instant if pa.types.is_timestamp(f.type) else f.type for f in rows.schema]
    return rows.cast(pa.schema(list(zip(rows.schema.names, types, strict=True))))


def run_killing(streams: Any, readings: pa.Table, kills: int, strategy: str) -> None:
    """Kill drivers one after the other; while one is at work the next one starts its Spark.

    Files are added as they are read, so that every driver has some before it when it is killed.
    """
    pieces = 4 * kills + UNREAD
    streams.write(readings, pieces, "all")
    files = sorted((streams.place / "all").iterdir())
    (streams.place / "in").mkdir()
    moments, reached, added = random.Random(kills), [0], 0
    lives = [Life(streams.place, strategy)]
    try:
        for _ in range(kills):
            lives.append(Life(streams.place, strategy))
            current = lives[-2]
            while added < reached[-1] + UNREAD:
                files[added].rename(streams.place / "in" / files[added].name)
                added += 1
            current.go()
            current.killed(moments)
            reached.append(current.done)
        lives[-1].go()
        status, told = lives[-1].ended()
        assert status == 0, told
    finally:
        for life in lives:
            life.kill()
    assert len(set(reached)) > kills // 3, "kills that left no progress between them prove little"
    query = asked()
    seen = streams.events = pq.read_table(streams.place / "in")
    wanted = streams.closed(weft.run(weft.Workload([query]), {"r": seen}), 5 * S)
    got = in_utc(ds.dataset(streams.place / "out").to_table())
    assert wanted.num_rows > 50
    assert_same_rows(query, got, wanted)


def test_kills_at_random_moments_lose_and_repeat_nothing(streams: Any, readings: pa.Table) -> None:
    run_killing(streams, readings, 4, "native")


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_thirty_kills_at_random_moments_lose_and_repeat_nothing(
    streams: Any, readings: pa.Table, strategy: str
) -> None:
    run_killing(streams, readings, 30, strategy)
