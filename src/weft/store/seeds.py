"""A session that begins with history: its operators are given slices as if they had cut them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.query import Query, Workload
from weft.store.answers import ALWAYS, columns_asked, feed, schema_of
from weft.store.serving import served, served_together, with_stored_times

if TYPE_CHECKING:
    from weft.sessions.source_stream import SourceStream
    from weft.store.answers import SliceReader


def seed(stream: SourceStream, reader: SliceReader) -> None:
    """Give the operators of a source that has seen no event the slices of all that are kept."""
    for query in with_stored_times(reader.manifest, Workload(stream.plan.queries)):
        assert isinstance(query, Query)
        served(reader.manifest, query)
        schema_of(query, reader.manifest)
    stream.start(reader.manifest.schemas[stream.source])
    for operator in stream.operators:
        names = dict.fromkeys(emit.query for emit in operator.emits)
        queries = [stream.queries[name] for name in names]
        source = served_together(reader.manifest, queries, "session")
        files = reader.files(source.number)
        if files:
            columns = [name for query in queries for name in columns_asked(source, query)]
            feed(operator, source, reader.rows(files, columns, ALWAYS))
