"""Exactly once: the driver is killed again and again, and the sink has each row once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from engines.spark_stream.driver_to_kill import READY, asked
from oracles.streams import MILLISECOND_US, NativeOracle, StreamOracle
from weft.engines.failpoints import VARIABLE
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint
from weft.testing import assert_same_rows

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow]
S = 1_000_000
DRIVER = Path(__file__).with_name("driver_to_kill.py")
PATIENCE_S = 120
# Files that are there and not read when a driver starts: more than it reads before it is killed.
UNREAD = 20


class Life:
    """One driver in a process group of its own, which is killed as a whole, Spark and all."""

    def __init__(self, place: Path, strategy: str, point: str = "") -> None:
        self._commits, self._log = place / "checkpoint" / "commits", place / "complaints"
        with self._log.open("a") as complaints:
            self.process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(place), strategy],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                start_new_session=True,
                env={**os.environ, VARIABLE: point},
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

    def killed_itself(self) -> None:
        """Wait until it has come to the place where it is to stop."""
        self.process.communicate(timeout=2 * PATIENCE_S)
        assert self.process.returncode == -signal.SIGKILL, self._log.read_text()
        self.kill()

    def kill(self) -> None:
        """Leave nothing of it; its group has its Java process in it."""
        with suppress(ProcessLookupError):  # all of it is gone
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


def micro_batches(streams: Any) -> list[pa.Table]:
    """Return the events of each micro-batch, some of which have none.

    A driver that is killed when it has looked for files, and before it has noted that they are its
    micro-batch's, leaves them to the next one, beside the file of that.
    """
    files, offsets = streams.files(), streams.place / "checkpoint" / "offsets"
    numbers = sorted(int(name) for name in os.listdir(offsets) if name.isdecimal())
    assert numbers[0] == 0  # nothing is forgotten yet
    logged = [(offsets / str(number)).read_text().splitlines()[-1] for number in numbers]
    ends = [json.loads(line)["logOffset"] + 1 for line in logged]
    assert ends[-1] == len(files)
    none = files[0].slice(0, 0)
    return [pa.concat_tables([none, *files[a:b]]) for a, b in pairwise([0, *ends])]


def check_rows(streams: Any, strategy: str) -> None:
    """Compare what the sink has with the oracle, which sees each file once."""
    query, place = asked(), Place.of(streams.place / "checkpoint")
    oracle_of = NativeOracle if strategy == "native" else StreamOracle
    batches = micro_batches(streams)
    plan = Checkpoint(place).record_of(0).plan
    wanted = oracle_of(plan, 5 * S, MILLISECOND_US).played(batches).tables(batches[0].schema)
    got = in_utc(ds.dataset(streams.place / "out").to_table())
    assert wanted["counts"].num_rows > 50
    assert_same_rows(query, got, wanted["counts"])


def run_killing(streams: Any, readings: pa.Table, kills: int, strategy: str) -> None:
    """Kill drivers one after the other; while one is at work the next one starts its Spark.

    Files are added as they are read, so that every driver has some before it when it is killed.
    """
    pieces = 8 * kills + UNREAD
    streams.write(readings, pieces, "all", disorder_s=20)
    files = sorted((streams.place / "all").iterdir())
    (streams.place / "in").mkdir()
    moments, reached, added = random.Random(kills), [0], 0
    lives = [Life(streams.place, strategy)]
    try:
        for _ in range(kills):
            lives.append(Life(streams.place, strategy))
            current = lives[-2]
            while added < min(reached[-1] + UNREAD, pieces):
                files[added].rename(streams.place / "in" / files[added].name)
                added += 1
            current.go()
            current.killed(moments)
            reached.append(current.done)
        lives[-1].go()
        status, told = lives[-1].ended()
        assert status == 0, told
        assert "Received UDF" not in told  # PySpark's word for what a state is made of
    finally:
        for life in lives:
            life.kill()
    assert len(set(reached)) > kills // 3, "kills that left no progress between them prove little"
    check_rows(streams, strategy)


def test_drivers_that_are_killed_between_two_writes_lose_and_repeat_nothing(
    streams: Any, readings: pa.Table
) -> None:
    streams.write(readings, 5, disorder_s=20)
    points = ("state.committed:2", "rows.written:2", "")  # all others: within one Spark
    lives = [Life(streams.place, "native", points[0])]
    try:
        for point in points[1:]:
            lives.append(Life(streams.place, "native", point))
            lives[-2].go()
            lives[-2].killed_itself()
        lives[-1].go()
        status, told = lives[-1].ended()
        assert status == 0, told
    finally:
        for life in lives:
            life.kill()
    check_rows(streams, "native")


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_fifty_kills_at_random_moments_lose_and_repeat_nothing(
    streams: Any, readings: pa.Table, strategy: str
) -> None:
    run_killing(streams, readings, 50, strategy)
