"""Streams from topics to topics of a broker: kills, new partitions, what cannot be read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft import agg
from weft.engines.spark.session import to_spark
from weft.testing import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from places.kafka_topics import Topics

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.slow]
DOCS = Path(__file__).parents[3] / "docs"
S = 1_000_000
PATIENCE_S = 120
DELAY_S = 60
SCHEMA = "ts TIMESTAMP, k BIGINT, v DOUBLE"
QUERY = weft.Query(
    "counts",
    source="r",
    time="ts",
    keys=["k"],
    windows={"20s": weft.tumbling("20 seconds"), "60s": weft.hopping("60 seconds", "20 seconds")},
    aggs={"n": agg.count(), "lo": agg.min("v")},
    watermark=f"{DELAY_S} seconds",
)
SQL = """-- name: counts
SELECT k, COUNT(*) AS n, MIN(v) AS lo FROM r TIMESTAMP BY ts
GROUP BY k, Windows(Window('20s', TumblingWindow(second, 20)),
                    Window('60s', HoppingWindow(second, 60, 20)))
"""


@pytest.fixture
def topics(broker: str) -> Topics:
    from places.kafka_topics import Topics

    return Topics(broker)


def as_json(events: pa.Table) -> list[str]:
    """One line for each event, as producers write them."""
    instants = [at.isoformat() for at in events["ts"].to_pylist()]
    others = zip(events["k"].to_pylist(), events["v"].to_pylist(), strict=True)
    return [
        json.dumps({"ts": at, "k": k, "v": v, "more": [1]})
        for at, (k, v) in zip(instants, others, strict=True)
    ]


def rows_of(texts: list[Any]) -> pa.Table:
    """Read the rows of records; instants are written to the microsecond."""
    instant = pa.timestamp("us", "UTC")
    rows = pa.Table.from_pylist([json.loads(text) for text in texts])
    for name in ("window_start", "window_end"):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, rows[name].cast(instant))
    return rows


def until(done: Callable[[], bool], what: Callable[[], str] = lambda: "nothing happened") -> None:
    latest = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < latest, what()
        time.sleep(0.05)


def batches(place: Path) -> list[int]:
    """The micro-batches that are done."""
    folder = place / "c" / "commits"
    names = os.listdir(folder) if folder.exists() else []
    return sorted(int(name) for name in names if name.isdecimal())


def run_until_killed(place: Path, source: str, sink: str) -> None:
    """Run the command until it has done some micro-batches, and kill it, Spark and all."""
    words = ["stream", "-e", SQL, "--source", f"r={source}?format=json&schema={SCHEMA}"]
    words += ["--sink", sink, "--checkpoint", str(place / "c"), "--watermark", f"{DELAY_S}s"]
    with (place / "said").open("w") as said:
        driver = subprocess.Popen(
            [sys.executable, "-m", "weft", *words],
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )
    try:

        def worked() -> bool:
            assert driver.poll() is None, (place / "said").read_text()
            return len(batches(place)) > 1

        until(worked, (place / "said").read_text)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def test_kills_and_new_partitions_lose_and_repeat_nothing(
    streams: Any, readings: pa.Table, topics: Topics
) -> None:
    source, sink = topics.make("clicks", 2), topics.make("closed", 3)
    streams.write(readings, 12)  # out of order, some events across files
    files = sorted((streams.place / "in").iterdir())
    chunks = [as_json(pq.read_table(file)) for file in files]
    for chunk in chunks[:6]:
        topics.put("clicks", chunk, 2)
    run_until_killed(streams.place, source, sink)
    # As if it had been killed between the records and the mark that they are written.
    last = batches(streams.place)[-1]
    (streams.place / "c" / "commits" / str(last)).unlink()
    (streams.place / "c" / "commits" / f".{last}.crc").unlink(missing_ok=True)

    session = streams.spark
    clicks = weft.kafka(topics.servers, "clicks", schema=SCHEMA, session=session)
    running = weft.start(QUERY, {"r": clicks}, sink, streams.place / "c")
    try:
        topics.widen("clicks", 4)  # while it runs
        for chunk in chunks[6:]:
            topics.put("clicks", chunk, 4)

        def all_read() -> bool:
            if not running.isActive:
                running.awaitTermination()
            ends = running.lastProgress and running.lastProgress.sources[0].endOffset
            offsets = json.loads(ends)["clicks"].values() if ends else []
            return sum(offsets) == readings.num_rows

        until(all_read, lambda: str(running.lastProgress))
        running.processAllAvailable()
    finally:
        running.stop()

    records = topics.records("closed")
    seen: dict[tuple[bytes, ...], Any] = {}
    for record in records:
        headers = dict(record.headers())
        own = tuple(headers[name] for name in ("weft-stream", "weft-batch", "weft-row"))
        assert seen.setdefault(own, record).value() == record.value(), "the same row, written anew"
        assert record.key() == str(json.loads(record.value())["k"]).encode()
    assert len(seen) < len(records), "nothing was written again: this proves nothing"
    wanted = weft.run(QUERY, {"r": streams.events}, engine="reference")
    closed = streams.closed(wanted, DELAY_S * S)
    assert closed.num_rows > 100
    assert_same_rows(QUERY, rows_of([record.value() for record in seen.values()]), closed)


def finished(stream: Any) -> None:
    stream.awaitTermination(PATIENCE_S)
    assert not stream.isActive


def test_plain_records_have_the_time_of_the_record_and_bad_ones_are_told(
    streams: Any, spark: SparkSession, topics: Topics
) -> None:
    place = topics.make("plain")
    for at in range(100):
        topics.put("plain", [str(at)], key=f"k{at % 2}", timestamp=1_700_000_000_000 + at * 1000)
    topics.put("plain", [None], key="k0", timestamp=1_700_000_200_000)  # a tombstone: no event
    query = weft.Query(
        "sums",
        source="p",
        time="timestamp",
        keys=["key"],
        windows={"10s": "10 seconds"},
        aggs={"total": agg.sum("value"), "n": agg.count()},
        watermark="1 second",
    )
    collected: list[pa.Table] = []
    events = weft.kafka(topics.servers, "plain", format="plain", schema="value BIGINT")
    out = streams.place / "c"
    finished(
        weft.start(query, {"p": events}, lambda r, _: collected.append(r.toArrow()), out, "once")
    )
    seen = to_spark(
        pa.table(
            {
                "timestamp": pa.array(
                    [1_700_000_000_000 + at * 1000 for at in range(100)], pa.timestamp("ms", "UTC")
                ),
                "key": [f"k{at % 2}" for at in range(100)],
                "value": list(range(100)),
            }
        ),
        spark,
    ).toArrow()
    wanted = weft.run(query, {"p": seen}, engine="reference").filter(
        pa.array([True] * 18 + [False] * 2)
    )
    assert_same_rows(query, pa.concat_tables(collected), wanted)

    topics.put("plain", ["not a number"])
    bad = weft.kafka(
        topics.servers, "plain", schema="value BIGINT", record_time="ts", record_key="key"
    )
    asked = weft.Query(
        "n",
        source="p",
        time="ts",
        windows={"10s": "10 seconds"},
        aggs={"n": agg.sum("value")},
        watermark="1 second",
    )
    stopped = weft.start(asked, {"p": bad}, streams.place / "o", streams.place / "c2", "once")
    with pytest.raises(
        Exception, match="topic plain, partition 0, offset 0: the record is not json"
    ):
        stopped.awaitTermination()
    assert place.endswith("/plain")


def test_the_examples_of_the_documents_run(
    streams: Any, spark: SparkSession, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.make("readings")
    instants = [f"2024-01-01T{at // 60:02}:{at % 60:02}:00" for at in range(0, 240, 5)]
    topics.put("readings", [json.dumps({"device": "a", "ts": t, "temp": 20.5}) for t in instants])
    query = weft.Query(
        "lows",
        source="readings",
        time="ts",
        keys=["device"],
        windows={"20m": "20 minutes"},
        aggs={"lo": agg.min("temp")},
    )
    for page, head, servers in (
        ("names.md", "### weft.kafka\n", "localhost:9092"),
        ("my_kafka_stream.md", "or in Python:\n", "host:9092"),
    ):
        text = (DOCS / page).read_text().partition(head)[2].partition("```python\n")[2]
        code = text.partition("```")[0]
        assert f'"{servers}"' in code
        place = streams.place / page
        place.mkdir()
        monkeypatch.chdir(place)
        names: dict[str, Any] = {"weft": weft, "query": query, "workload": query}
        names["workload"] = weft.Workload(query.with_watermark("10 minutes"))
        exec(code.replace(servers, topics.servers), names)
        running = names["stream"]
        try:
            running.processAllAvailable()
        finally:
            running.stop()
        kept = spark.read.parquet(str(place / "features")).toArrow()
        assert kept.num_rows >= 10
        assert set(kept["lo"].to_pylist()) == {20.5}


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["native", "columnar"])
def test_avro_in_and_avro_out(
    streams: Any, readings: pa.Table, spark: SparkSession, topics: Topics, strategy: str
) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro, to_avro

    from weft.engines.spark.connectors import AVRO, KAFKA, connect
    from weft.engines.spark.streaming.avro_schema import avro_schema

    for connector in (KAFKA, AVRO):
        connect(spark, connector)
    name, out = f"avro-{strategy}", topics.make(f"avro-out-{strategy}")
    topics.make(name, 2)
    us = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [("ts", us), ("k", "long"), ("v", "double")]
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields]}
    events = to_spark(readings, spark).select(
        to_avro(F.struct("ts", "k", "v"), json.dumps(schema)).alias("value")
    )
    write = events.write.format("kafka").option("kafka.bootstrap.servers", topics.servers)
    write.option("topic", name).save()
    (streams.place / "r.avsc").write_text(json.dumps(schema))
    source = weft.kafka(
        topics.servers, name, format="avro", schema=streams.place / "r.avsc", session=spark
    )
    checkpoint = streams.place / "c"
    finished(weft.start(QUERY, {"r": source}, f"{out}?format=avro", checkpoint, "once", strategy))
    streams.events = readings
    closed = streams.closed(weft.run(QUERY, {"r": readings}, engine="reference"), DELAY_S * S)
    read = spark.read.format("kafka").option("kafka.bootstrap.servers", topics.servers)
    told = "k BIGINT, window STRING, window_start TIMESTAMP, window_end TIMESTAMP"
    written = avro_schema(spark.createDataFrame([], f"{told}, n BIGINT, lo DOUBLE").schema)
    got = read.option("subscribe", f"avro-out-{strategy}").load()
    rows = got.select(from_avro("value", written).alias("row")).select("row.*")
    assert_same_rows(QUERY, rows.toArrow(), closed)
