"""Filters and key sets as one stream: one read of the source against a stream for each query."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from weft.bench.frame import Bar, Case, Contender, Entry, Race
from weft.bench.suite.mixed.inputs import EVENTS, QUICK_EVENTS, clicks, known, mixed_24
from weft.bench.suite.spark.runs import write_nowhere
from weft.bench.suite.spark.sessions import CORES
from weft.query import Query, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from weft.bench.frame import Runner

BATCHES = 4
_NEEDS = ("pyspark",)
_WATERMARK = "10 seconds"
_FIRST_MTIME_S = 1_700_000_000


class Inputs(NamedTuple):
    """A folder of files that a stream takes one by one, and the queries over them."""

    directory: Path
    events: int
    queries: tuple[Query, ...]

    @property
    def stream(self) -> DataFrame:
        """The clicks as Spark reads them from a stream."""
        from weft.engines.spark.session import local_session

        session = local_session(CORES)
        folder = str(self.directory)
        files = session.readStream.schema(session.read.parquet(folder).schema)
        return files.option("maxFilesPerTrigger", 1).parquet(folder)


@cache
def _files(events: int) -> Path:
    import pyarrow.parquet as pq

    directory = Path(tempfile.mkdtemp(prefix="weft-mixed-stream-"))
    table, size = clicks(events), events // BATCHES
    for at in range(BATCHES):
        path = directory / f"{at}.parquet"
        pq.write_table(table.slice(at * size, size), path)
        os.utime(path, (_FIRST_MTIME_S + at,) * 2)
    return directory


def _inputs(events: int) -> Inputs:
    asked = (query.with_watermark(_WATERMARK) for query in mixed_24() if isinstance(query, Query))
    return Inputs(_files(events), events, tuple(asked))


def _counting(name: str, seen: Counter[str]) -> Callable[[DataFrame, int], None]:
    """Return a sink that computes the rows of a query and counts them."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    def sink(rows: DataFrame, batch: int) -> None:
        told = Observation()
        write_nowhere(rows.observe(told, F.count(F.lit(1)).alias("rows")))
        seen[name] += told.get["rows"]

    return sink


def _start_together(inputs: Inputs) -> Runner:
    from weft.starting import ONCE, start

    def runner() -> dict[str, int]:
        seen: Counter[str] = Counter()
        place = tempfile.mkdtemp(prefix="weft-mixed-checkpoint-")
        sinks = {query.name: _counting(query.name, seen) for query in inputs.queries}
        start(
            Workload(inputs.queries),
            {"clicks": inputs.stream},
            sinks,
            place,
            ONCE,
            statistics=known(inputs.events),
        ).awaitTermination()
        shutil.rmtree(place, ignore_errors=True)
        return dict(seen)

    return runner


def _start_stock(inputs: Inputs) -> Runner:
    from weft.engines.spark.stock import stock

    def runner() -> dict[str, int]:
        seen: Counter[str] = Counter()
        for query in inputs.queries:
            place = tempfile.mkdtemp(prefix="weft-mixed-checkpoint-")
            rows = stock(query, inputs.stream.withWatermark("ts", _WATERMARK))
            writer = rows.writeStream.foreachBatch(_counting(query.name, seen))
            writer.option("checkpointLocation", place).trigger(
                availableNow=True
            ).start().awaitTermination()
            shutil.rmtree(place, ignore_errors=True)
        return dict(seen)

    return runner


def _same(expected: dict[str, int], answer: dict[str, int]) -> str:
    """Say which query has another number of rows; empty when none has.

    >>> _same({"q": 3}, {"q": 3}), _same({"q": 3}, {"q": 4})
    ('', 'q: expected 3 rows, got 4')
    """
    for query, rows in expected.items():
        if answer.get(query) != rows:
            return f"{query}: expected {rows} rows, got {answer.get(query)}"
    return ""


ENTRIES: tuple[Entry, ...] = (
    Race(
        name="spark-stream/mixed_24",
        question="What do 24 queries of four key sets and three filters cost as one stream?",
        inputs=_inputs,
        expected=None,
        contenders={
            "stock": Contender(_start_stock, _NEEDS, runs=1),
            "weft": Contender(_start_together, _NEEDS, runs=2),
        },
        baseline="stock",
        full=(Case(f"{EVENTS:,} events", {"events": EVENTS}, EVENTS),),
        quick=(Case(f"{QUICK_EVENTS:,} events", {"events": QUICK_EVENTS}, QUICK_EVENTS),),
        bars=(Bar("weft", "stock", 8.0),),
        same=_same,
        rounds=2,
        item="event",
    ),
)
