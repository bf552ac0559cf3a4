"""Streams of parquet files, one file a micro-batch, and what came out of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
import pytest

from sessions import shared_session
from weft.engines.spark.streaming.columnar.strategy import ROCKS_STORE, STORE_SETTING
from weft.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

S = 1_000_000
START_US = 1_700_000_000 * S


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return shared_session()


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[None]:
    """Keep state in RocksDB, as the columnar strategy needs."""
    spark.conf.set(STORE_SETTING, ROCKS_STORE)
    yield
    spark.conf.unset(STORE_SETTING)


@dataclass(frozen=True)
class Ran:
    """The rows of a stream that has ended, and its progress reports."""

    rows: pa.Table
    progress: list[Any]

    @property
    def input_rows(self) -> int:
        return sum(p.numInputRows for p in self.progress)

    @property
    def state_operators(self) -> int:
        return max(len(p.stateOperators) for p in self.progress)


@dataclass
class Streams:
    """A directory of files to be read as a stream, and the place for all that a test writes."""

    request: pytest.FixtureRequest
    place: Path
    events: pa.Table | None = None

    @property
    def spark(self) -> SparkSession:
        """The session, started when a test first needs one."""
        session: SparkSession = self.request.getfixturevalue("spark")
        return session

    def write(self, table: pa.Table, files: int, name: str = "in", disorder_s: int = 5) -> None:
        """Cut a table into files, in the order of times that are late by up to `disorder_s`."""
        random = np.random.default_rng(7)
        late = random.integers(0, disorder_s * S + 1, table.num_rows)
        times = table["ts"].cast(pa.int64()).to_numpy()
        self.cut(table.take(pa.array(np.argsort(times + late))), files, name)

    def cut(self, table: pa.Table, files: int, name: str = "in") -> None:
        """Cut a table into files, its rows in the order they have."""
        (self.place / name).mkdir()
        size = -(-table.num_rows // files)
        for at in range(files):
            self.append(table.slice(at * size, size), name)
        self.events = table

    def append(self, table: pa.Table, name: str = "in") -> None:
        """Add a file that is read after all others."""
        at = len(list((self.place / name).iterdir()))
        path = self.place / name / f"{at:04}.parquet"
        pq.write_table(table, path)
        # Spark takes files in the order in which they were last changed.
        os.utime(path, (START_US // S + at,) * 2)

    def files(self, name: str = "in") -> list[pa.Table]:
        """Return the files as they are read, one after the other."""
        return [pq.read_table(path) for path in sorted((self.place / name).iterdir())]

    def read(self, name: str = "in", files_per_batch: int = 1) -> DataFrame:
        """Return the files as a stream."""
        path = str(self.place / name)
        reader = self.spark.readStream.schema(self.spark.read.parquet(path).schema)
        return reader.option("maxFilesPerTrigger", files_per_batch).parquet(path)

    def ran(self, frame: DataFrame, mode: str = "append", checkpoint: str = "checkpoint") -> Ran:
        """Run a streaming DataFrame over all that is there, and return its rows."""
        collected: list[pa.Table] = []
        query = (
            frame.writeStream.outputMode(mode)
            .foreachBatch(lambda batch, _: collected.append(batch.toArrow()))
            .option("checkpointLocation", str(self.place / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return Ran(pa.concat_tables(collected), list(query.recentProgress))

    def closed(self, table: pa.Table, delay_us: int) -> pa.Table:
        """Keep the rows of windows that the last watermark, in milliseconds, has passed."""
        assert self.events is not None
        latest_us = pc.max(self.events["ts"].cast(pa.int64())).as_py()
        watermark_us = latest_us // 1000 * 1000 - delay_us
        return table.filter(pc.less_equal(table["window_end"].cast(pa.int64()), watermark_us))


@pytest.fixture
def streams(request: pytest.FixtureRequest, tmp_path: Path) -> Streams:
    return Streams(request, tmp_path)


@pytest.fixture(scope="session")
def readings() -> pa.Table:
    random, rows = np.random.default_rng(1), 600
    times = START_US + random.integers(0, 600 * S, rows)
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "k": pa.array(random.integers(0, 3, rows)),
            "v": pa.array(random.normal(20, 5, rows)),
        }
    )


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Kafka broker for all tests; the first time its jars come from Maven."""
    from places.kafka_broker import broker_jars, kafka_broker
    from weft.engines.spark.connectors import AVRO, KAFKA, fetched

    try:
        broker_jars()
        version = pyspark.__version__
        fetched((*KAFKA.artifacts(version), *AVRO.artifacts(version)))
    except InputError as error:
        pytest.skip(str(error))
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as servers:
        yield servers
