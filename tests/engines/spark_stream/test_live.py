"""Queries that come and go while a stream runs, and restarts with another workload."""

from __future__ import annotations

import datetime as dt
import os
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import weft
from weft import agg
from weft.cli.app import app
from weft.engines.spark.streaming.checkpoint.record import differences
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000


def asked(name: str, windows: dict[str, Any], aggs: dict[str, Any], **more: Any) -> weft.Query:
    settings = {"keys": ["k"], "watermark": "5 seconds", **more}
    return weft.Query(name, source="r", time="ts", windows=windows, aggs=aggs, **settings)


LOWS = asked("lows", {"20s": weft.tumbling("20 seconds")}, {"lo": agg.min("v"), "n": agg.count()})
HOPS = asked("hops", {"40s": weft.hopping("40 seconds", "20 seconds")}, {"n": agg.count()})
COUNTS_SQL = """-- name: counts
SELECT k, COUNT(*) AS n, MIN(v) AS lo FROM r GROUP BY k, window(ts, '30 seconds')"""


class Feed:
    """A directory to which files of events are added, in the order of time."""

    def __init__(self, events: pa.Table, directory: Path, files: int) -> None:
        self.events, self._directory = events.sort_by("ts"), directory
        self._size = -(-events.num_rows // files)
        self._written = 0
        directory.mkdir()

    def add(self, running: Any = None) -> None:
        """Add a file, and wait until the stream has read it."""
        at = self._written
        passing = self._directory / f"_{at}.parquet"  # which Spark passes over
        pq.write_table(self.events.slice(at * self._size, self._size), passing)
        # Spark takes files in the order in which they were last changed, and never one that is a
        # week older than the latest: so no file may be seen with a time of today.
        os.utime(passing, (1_700_000_000 + at,) * 2)
        passing.rename(self._directory / f"{at}.parquet")
        self._written += 1
        if running is not None:
            running.processAllAvailable()

    @property
    def seen(self) -> pa.Table:
        return self.events.slice(0, self._written * self._size)


def closed_of(query: weft.Query, events: pa.Table) -> pa.Table:
    rows = weft.run(weft.Workload([query]), {"r": events}, engine="reference")
    watermark_us = pc.max(events["ts"]).value // 1000 * 1000 - 5 * S
    return rows.filter(pc.less_equal(rows["window_end"].cast(pa.int64()), watermark_us))


def complete_from(listed: str, window: str) -> dt.datetime:
    since = re.search(rf"{window}, complete from (\S+ \S+)", listed)
    assert since is not None, listed
    return dt.datetime.fromisoformat(since.group(1)).replace(tzinfo=dt.UTC)


@pytest.mark.spark
def test_queries_come_and_go_while_the_stream_runs(streams: Any, readings: pa.Table) -> None:
    place = streams.place
    feed = Feed(readings, place / "in", 8)
    feed.add()

    def weft_queries(*arguments: str) -> str:
        words = ["queries", *arguments, "--checkpoint", str(place / "c")]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return result.output

    running = weft.start(
        weft.Workload([LOWS]),
        {"r": streams.read()},
        {"lows": place / "lows"},
        place / "c",
        strategy="columnar",
    )
    running.processAllAvailable()
    told = weft_queries("add", "-e", COUNTS_SQL, "--sink", str(place / "counts"), "--wait", "0")
    assert "left for the stream" in told
    feed.add(running)  # after this micro-batch the request is taken
    feed.add(running)  # by the plan with both queries
    listed = weft_queries("list")
    assert "lows: active" in listed
    first = complete_from(listed, "TUMBLE 30s")
    weft_queries("suspend", "lows", "--wait", "0")
    feed.add(running)
    feed.add(running)
    assert "lows: suspended" in weft_queries("list")
    weft_queries("resume", "lows", "--wait", "0")
    suspended_at = feed.seen
    for _ in range(3):
        feed.add(running)
    listed = weft_queries("list")
    assert "lows: active" in listed
    resumed = complete_from(listed, "TUMBLE 20s")
    running.stop()
    (counts,) = weft.parse(COUNTS_SQL).queries
    assert isinstance(counts, weft.Query)
    rows = streams.spark.read.parquet(str(place / "counts")).drop("batch").toArrow()
    wanted = closed_of(counts.with_time("ts"), feed.seen)
    wanted = wanted.filter(pc.greater_equal(wanted["window_start"], pa.scalar(first)))
    assert wanted.num_rows > 0
    assert_same_rows(counts, rows, wanted)
    lows = streams.spark.read.parquet(str(place / "lows")).drop("batch").toArrow()
    everything = closed_of(LOWS, feed.seen)
    # Nothing while it was suspended, then every window from the announced one on.
    paused = pc.max(suspended_at["ts"])
    again = pc.greater_equal(lows["window_start"], pa.scalar(resumed))
    wanted = everything.filter(pc.greater_equal(everything["window_start"], pa.scalar(resumed)))
    assert wanted.num_rows > 0
    assert_same_rows(LOWS, lows.filter(again), wanted)
    before = lows.filter(pc.invert(again))
    assert pc.max(before["window_end"]).as_py() < paused.as_py() < resumed
    early = pc.less_equal(everything["window_end"], pc.max(before["window_end"]))
    assert_same_rows(LOWS, before, everything.filter(early))


@pytest.mark.spark
def test_a_restart_takes_added_queries_on_from_the_slices_there_are(
    streams: Any, readings: pa.Table
) -> None:
    place = streams.place
    feed = Feed(readings, place / "in", 3)

    def run(*queries: weft.Query) -> None:
        weft.start(
            weft.Workload(queries),
            {"r": streams.read()},
            {query.name: place / query.name for query in queries},
            place / "c",
            "once",
            "columnar",
        ).awaitTermination()

    feed.add()
    run(LOWS)
    feed.add()
    run(LOWS, HOPS)
    feed.add()
    changed = asked("lows", {"20s": weft.tumbling("10 seconds")}, {"lo": agg.min("v")})
    with pytest.raises(weft.QueryError, match="window '20s' of query 'lows' was TUMBLE 20s"):
        run(changed, HOPS)
    run(LOWS, HOPS)
    rows = streams.spark.read.parquet(str(place / "lows")).drop("batch").toArrow()
    assert_same_rows(LOWS, rows, closed_of(LOWS, feed.seen))
    hops = streams.spark.read.parquet(str(place / "hops")).drop("batch").toArrow()
    wanted = closed_of(HOPS, feed.seen)
    # Slices of 20 s serve both: only windows that had closed before are missing.
    first = pc.min(hops["window_start"])
    assert hops.num_rows > 0
    assert_same_rows(HOPS, hops, wanted.filter(pc.greater_equal(wanted["window_start"], first)))


def test_differences_name_the_query_the_window_and_the_aggregate() -> None:
    other = asked("lows", {"20s": weft.tumbling("20 seconds")}, {"lo": agg.max("v")}, where="v > 1")
    assert differences([LOWS, HOPS], [other]) == [
        "query 'hops' is gone",
        "aggregate 'n' of query 'lows' is gone",
        "aggregate 'lo' of query 'lows' was min(v) and now is max(v)",
        "the filter of query 'lows' was none and now is v > 1",
    ]
    assert differences([LOWS], [LOWS, HOPS]) == ["query 'hops' is new"]
