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
from weft.engines.reference.streams import watermark_of
from weft.engines.spark.streaming.checkpoint.record import differences
from weft.testing import assert_same_rows
from weft.time import instant, instant_us

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
        return self.first(self._written)

    def first(self, files: int) -> pa.Table:
        return self.events.slice(0, files * self._size)


def watermark_us(events: pa.Table) -> int:
    return watermark_of(pc.max(events["ts"]).value, 5 * S, 1000)


def closed_of(query: weft.Query, events: pa.Table, until: pa.Table | None = None) -> pa.Table:
    """The rows of all events whose windows closed, or had closed when some of them had come."""
    rows = weft.run(weft.Workload([query]), {"r": events}, engine="reference")
    passed_us = watermark_us(events if until is None else until)
    return rows.filter(pc.less_equal(rows["window_end"].cast(pa.int64()), passed_us))


def starting_from(rows: pa.Table, us: int) -> pa.Table:
    return rows.filter(pc.greater_equal(rows["window_start"].cast(pa.int64()), us))


def first_start_after(events: pa.Table, range_s: int) -> dt.datetime:
    """When the first window starts that has none of these events: Spark knows their millisecond."""
    after_us = pc.max(events["ts"]).value // 1000 * 1000 + 1000
    return instant(-(-after_us // (range_s * S)) * range_s * S)


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
    assert first == first_start_after(feed.first(2), 30)
    weft_queries("suspend", "lows", "--wait", "0")
    feed.add(running)  # by its watermark lows would have closed windows, and is suspended before
    feed.add(running)
    assert "lows: suspended" in weft_queries("list")
    weft_queries("resume", "lows", "--wait", "0")
    for _ in range(3):
        feed.add(running)
    listed = weft_queries("list")
    assert "lows: active" in listed
    resumed = complete_from(listed, "TUMBLE 20s")
    assert resumed == first_start_after(feed.first(6), 20)
    running.stop()
    (counts,) = weft.parse(COUNTS_SQL).queries
    assert isinstance(counts, weft.Query)
    rows = streams.spark.read.parquet(str(place / "counts")).drop("batch").toArrow()
    wanted = starting_from(closed_of(counts.with_time("ts"), feed.seen), instant_us(first))
    assert wanted.num_rows > 0
    assert_same_rows(counts, rows, wanted)
    lows = streams.spark.read.parquet(str(place / "lows")).drop("batch").toArrow()
    before = closed_of(LOWS, feed.seen, until=feed.first(3))
    again = starting_from(closed_of(LOWS, feed.seen), instant_us(resumed))
    assert before.num_rows > 0
    assert again.num_rows > 0
    assert_same_rows(LOWS, lows, pa.concat_tables([before, again]))


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
    # Slices of 20 s serve both: those that lows had open, and all that came later.
    oldest_open_us = watermark_us(feed.first(1)) // (20 * S) * 20 * S
    wanted = starting_from(closed_of(HOPS, feed.seen), oldest_open_us)
    assert 0 < wanted.num_rows < closed_of(HOPS, feed.seen).num_rows
    assert_same_rows(HOPS, hops, wanted)


def test_differences_name_the_query_the_window_and_the_aggregate() -> None:
    other = asked("lows", {"20s": weft.tumbling("20 seconds")}, {"lo": agg.max("v")}, where="v > 1")
    assert differences([LOWS, HOPS], [other]) == [
        "query 'hops' is gone",
        "aggregate 'n' of query 'lows' is gone",
        "aggregate 'lo' of query 'lows' was min(v) and now is max(v)",
        "the filter of query 'lows' was none and now is v > 1",
    ]
    assert differences([LOWS], [LOWS, HOPS]) == ["query 'hops' is new"]
