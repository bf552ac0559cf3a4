"""The `columnar` strategy for streams: the local engine's operator, in a stateful processor.

It runs every window and every aggregate. Keys are gathered in a few buckets for each partition;
a bucket's state is columnar, and Spark's state store sees the bucket, not its keys.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.cost.strategies import columnar_obstacles
from weft.engines.base import Unsupported
from weft.engines.local.state.custom_partials import NO_PICKLES, Trust
from weft.engines.spark.columnar.strategy import result_of
from weft.engines.spark.executors import prepare_executors
from weft.engines.spark.session import spark_schema
from weft.engines.spark.streaming.checkpoint.versions import Versions
from weft.engines.spark.streaming.columnar.bucket_numbers import BUCKET, Buckets
from weft.engines.spark.streaming.columnar.executor_batches import (
    PACKED_SCHEMA,
    PAYLOAD,
    Packer,
    Unpacker,
)
from weft.engines.spark.streaming.columnar.parcels import Parcel, Post
from weft.engines.spark.streaming.columnar.processor import (
    APPEND,
    COMPLETE,
    FIRST,
    MOST_WINDOWS,
    OUTPUT_SCHEMA,
    BucketProcessor,
)
from weft.engines.spark.streaming.settings import setting
from weft.engines.spark.streaming.streams import CompiledStream
from weft.engines.spark.streaming.watermark import delay_us_of, watermarked
from weft.engines.spark.versions import state_obstacle
from weft.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from weft.engines.spark.columnar.hosted_operator import HostedScope
    from weft.engines.spark.streaming.streams import Picked, Stream
    from weft.plan import Emit

# Several, so that partitions have about equally many keys; few, because each is read and written.
BUCKETS_PER_PARTITION = 2
METRICS = "weft"
STORE_SETTING = "spark.sql.streaming.stateStore.providerClass"
ROCKS_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class ColumnarStreamStrategy:
    """Compiles a stream to one stateful operator that hosts those of all scopes."""

    name = "columnar"

    def unsupported(self, stream: Stream) -> tuple[Unsupported, ...]:
        """Sketches of Spark's own, and all without a state for rows; else every kind runs."""
        nodes = stream.nodes
        version = state_obstacle()
        if version is not None:
            return (Unsupported(nodes[0], version),)
        return tuple(Unsupported(node, why) for node in nodes for why in columnar_obstacles(node))

    def compile(self, stream: Stream, source: DataFrame) -> CompiledStream:
        """Return closed windows as blobs, and how each query's rows are read from them."""
        check_store(source.sparkSession)
        parcels = tuple(Parcel.of(scope) for scope in stream.scopes)
        post = posted(stream, source, parcels, buckets_of(source.sparkSession))
        hosted = hosted_of(stream, post)
        for one in hosted.values():
            one.check_kept(NO_PICKLES)
        versions = Versions(None, only={at: one.dump() for at, one in hosted.items()})
        rows = transformed(post, versions, stream.watermark_us)
        return CompiledStream(rows, results_of(stream, hosted, post.time_type))


def buckets_of(session: SparkSession) -> Buckets:
    """Return the buckets that the keys of a scope are gathered in."""
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or "1")
    return Buckets(BUCKETS_PER_PARTITION * partitions, partitions)


def posted(stream: Stream, source: DataFrame, parcels: Sequence[Parcel], buckets: Buckets) -> Post:
    """Put a watermark on the source, and its events into parcels."""
    assert stream.scan.time is not None
    timed = watermarked(source, stream.source, stream.scan.time, stream.watermark_us)
    return Post(parcels, timed, stream.scan.time, buckets)


def hosted_of(stream: Stream, post: Post) -> dict[int, HostedScope]:
    """Return the scopes of a stream as executors run them, by the number of their parcel."""
    return {
        at: post.hosted(parcel, scope)
        for at, parcel in enumerate(post.parcels)
        for scope in stream.scopes
        if parcel.serves(scope)
    }


def transformed(
    post: Post,
    versions: Versions,
    delay_us: int | None,
    mode: str = APPEND,
    trust: Trust = NO_PICKLES,
    seeds: DataFrame | None = None,
) -> DataFrame:
    """Run the events of all parcels through the operators; rows come as blobs of Arrow.

    `seeds` has the state that a new stream begins with, bucket by bucket.
    """
    prepare_executors(post.frame.sparkSession)
    packed = post.frame.mapInArrow(Packer(post.names, post.buckets), PACKED_SCHEMA)
    delay_us = delay_us_of(post.source, delay_us)
    processor = BucketProcessor(versions, post.buckets, delay_us, mode, trust)
    moved = packed.groupBy(BUCKET).transformWithState(
        processor,
        OUTPUT_SCHEMA,
        outputMode=mode,
        timeMode="EventTime",
        initialState=None if seeds is None else seeds.groupBy(BUCKET),
    )
    figures = ("late", "open_slices", "state_bytes")
    sums = [F.sum(name).alias(name) for name in figures]
    # Queries come and go, and what is observed stays: so there is a place for as many as are told.
    shares = [F.sum(F.get("window_bytes", F.lit(at))) for at in range(MOST_WINDOWS)]
    names = F.max("windows").alias("windows")
    told = moved.observe(METRICS, *sums, names, F.array(*shares).alias("window_bytes"))
    return told.where(f"{PAYLOAD} IS NOT NULL OR {COMPLETE} IS NOT NULL")


def results_of(
    stream: Stream, hosted: Mapping[int, HostedScope], time_type: DataType
) -> dict[str, Picked]:
    """Return how the rows of each query are read from the blobs."""
    return {
        query: partial(_result, _Picking(at, scope.emits, query, one, time_type))
        for at, one in hosted.items()
        for scope in stream.scopes
        if {emit.query for emit in one.emits} == set(scope.queries)
        for query in scope.queries
    }


@dataclass(frozen=True)
class _Picking:
    scope: int
    emits: tuple[Emit, ...]
    query: str
    hosted: HostedScope
    time_type: DataType


def _result(picking: _Picking, rows: DataFrame) -> DataFrame:
    first = next(n for n, emit in enumerate(picking.emits) if emit.query == picking.query)
    own = (F.col("scope") == picking.scope) & (F.col(FIRST) == first)
    blobs = rows.where(own).select(PAYLOAD)
    opened = blobs.mapInArrow(Unpacker(), spark_schema(picking.hosted.output))
    return result_of(opened, picking.emits, picking.query, picking.hosted, picking.time_type)


def stored_in(provider: str, session: SparkSession) -> AbstractContextManager[None]:
    """Let streams that are started meanwhile keep their state in a store of this kind."""
    return setting(session, STORE_SETTING, provider)


def stored_for(strategy: str, session: SparkSession) -> AbstractContextManager[None]:
    """Let streams that are started meanwhile keep their state where a strategy needs it."""
    columnar = strategy == ColumnarStreamStrategy.name
    return stored_in(ROCKS_STORE, session) if columnar else nullcontext()


def has_store(session: SparkSession) -> bool:
    """Tell whether streams of a session keep their state where columns have a place."""
    return session.conf.get(STORE_SETTING, "") == ROCKS_STORE


def check_store(session: SparkSession) -> None:
    """Refuse a session whose streams keep their state where columns have no place."""
    if not has_store(session):
        raise UnsupportedError(
            "the columnar strategy keeps its state in RocksDB, and this session does not",
            hint=f"weft.start sets it; or spark.conf.set({STORE_SETTING!r}, {ROCKS_STORE!r})",
        )
