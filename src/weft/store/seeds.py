"""A session that begins with history: its operators are given slices as if they had cut them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.errors import UnsupportedError
from weft.query import Query, Workload
from weft.store.answers import ALWAYS, columns_asked, feed, schema_of
from weft.store.serving import served, with_stored_times

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
        sources = dict.fromkeys(served(reader.manifest, query) for query in queries)
        if len(sources) > 1:
            raise UnsupportedError(
                f"queries {', '.join(names)} share slices in a session, and the store keeps theirs "
                "apart",
                hint="start a session for each of them, or make a store for all",
            )
        (source,) = sources
        files = reader.files(source.number)
        if files:
            columns = [name for query in queries for name in columns_asked(source, query)]
            feed(operator, source, reader.rows(files, columns, ALWAYS))
