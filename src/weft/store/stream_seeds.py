"""A stream that begins with history: the states of its buckets, made of slices that are kept."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import FractionalType

from weft.engines.local.operator import ScopeOperator
from weft.engines.spark.session import to_spark
from weft.engines.spark.streaming.columnar.bucket_numbers import BUCKET
from weft.engines.spark.streaming.columnar.byte_values import dump_changes
from weft.engines.spark.streaming.columnar.processor import SEED
from weft.engines.spark.versions import collected
from weft.errors import QueryError
from weft.plan.nodes import topological
from weft.query import Query, Workload
from weft.store.answers import ALWAYS, SliceReader, columns_asked, give, keyed, schema_of
from weft.store.serving import served, served_together, with_stored_times
from weft.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt
    from pyspark.sql import DataFrame

    from weft.engines.local.values.arrow import Array
    from weft.engines.spark.columnar.hosted_operator import HostedScope
    from weft.engines.spark.streaming.checkpoint.record import Checkpoint
    from weft.engines.spark.streaming.columnar.parcels import Parcel, Post
    from weft.plan.planned_scope import PlannedScope
    from weft.sessions.live_stream import LiveWorkload

_BEGINNING = "begins_with.json"
_TYPES: dict[str, pa.DataType] = {BUCKET: pa.int32(), SEED: pa.binary()}
_SCHEMA = pa.schema(_TYPES)


def beginning(store: Store | None, checkpoint: Checkpoint) -> SliceReader | None:
    """Return the slices that a stream begins with; None if it has none, or has begun with them.

    The checkpoint remembers which they are. A first micro-batch that was cut off is run again from
    the same version of the same store, whatever was appended since, and whether it is named again.
    """
    if checkpoint.is_committed:
        return None
    kept = checkpoint.own / _BEGINNING
    told = kept.read_json()
    if told is not None and not checkpoint.next_batch:  # of a start that came to nothing
        kept.delete()
        told = None
    if told is None:
        if store is None:
            return None
        manifest = store.manifest
        found = {"store": os.path.abspath(store.path), "id": manifest.id}
        kept.write(json.dumps({**found, "version": manifest.version}))
        return SliceReader(store.path, manifest)
    begun = store or Store(told["store"])
    if begun.manifest.id != told["id"]:
        raise QueryError(
            f"the stream of the checkpoint {checkpoint.place} begins with the store "
            f"{told['store']}, and that at {begun.path} is another",
            hint="leave the store out, or start anew with another directory",
        )
    return SliceReader(begun.path, begun.manifest_at(told["version"]))


def stream_seeds(reader: SliceReader, live: LiveWorkload) -> dict[str, DataFrame]:
    """Return the state that each stream begins with, a row for each bucket that has slices."""
    manifest = reader.manifest
    asked = with_stored_times(manifest, Workload(live.record.plan.queries))
    queries = {query.name: query for query in asked if isinstance(query, Query)}
    for query in queries.values():
        served(manifest, query)
        schema_of(query, manifest)
    found: dict[str, DataFrame] = {}
    for stream, post, hosted in live.posts():
        rows: list[tuple[int, bytes]] = []
        for at, parcel in enumerate(post.parcels):
            for scope in stream.scopes:
                if parcel.serves(scope):
                    own = [queries[name] for name in scope.queries]
                    for number, seed in _scope_seeds(reader, post, parcel, scope, hosted[at], own):
                        rows.append((post.buckets.number(at, number), seed))
        columns: list[Any] = [pa.array(column) for column in zip(*rows, strict=True)]
        table = pa.table(columns, schema=_SCHEMA) if rows else _SCHEMA.empty_table()
        found[stream.name] = to_spark(table, post.source.sparkSession)
    return found


def _scope_seeds(
    reader: SliceReader,
    post: Post,
    parcel: Parcel,
    scope: PlannedScope,
    hosted: HostedScope,
    queries: Sequence[Query],
) -> Iterator[tuple[int, bytes]]:
    source = served_together(reader.manifest, queries, "stream")
    files = reader.files(source.number)
    if not files:
        return
    asked = [name for query in queries for name in columns_asked(source, query)]
    # The operator of executors has names of its own; this one has those of the store.
    named = ScopeOperator.of(scope.scan, scope.keys, topological(scope.emits), scope.emits)
    columns, keys = keyed(named, source, reader.rows(files, asked, ALWAYS))
    buckets = _buckets(post, parcel, keys, len(next(iter(columns.values()))))
    for number in np.unique(buckets).tolist():
        own = pa.array(buckets == number)
        host = hosted.open()
        part = {name: column.filter(own) for name, column in columns.items()}
        give(host.operator, named, source, part, [key.filter(own) for key in keys])
        yield number, dump_changes(host.operator.changes().written)


def _buckets(post: Post, parcel: Parcel, keys: Sequence[Array], rows: int) -> npt.NDArray[np.int64]:
    """Return the bucket of each key, by the hash that Spark puts the keys of events into."""
    if not keys:
        return np.zeros(rows, np.int64)
    names = [f"k{at}" for at in range(len(keys))]
    types = post.source.select(*(F.expr(text) for _, text in parcel.keys)).schema
    frame = to_spark(pa.table([*keys], names=names), post.source.sparkSession)
    typed = [F.col(name).cast(field.dataType) for name, field in zip(names, types, strict=True)]
    hashed = [
        column + 0 if isinstance(field.dataType, FractionalType) else column
        for column, field in zip(typed, types, strict=True)
    ]
    number = F.pmod(F.xxhash64(*hashed), F.lit(post.buckets.each)).cast("int").alias(BUCKET)
    return collected(frame.select(number))[BUCKET].to_numpy().astype(np.int64)
