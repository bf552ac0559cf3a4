"""Which sink takes the rows of which query, and where sinks of requests may lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.kafka import SCHEME as KAFKA_SCHEME
from weft.engines.spark.streaming.sinks.base import Origin, Sink, ToldSink
from weft.engines.spark.streaming.sinks.files import FileSink
from weft.engines.spark.streaming.sinks.functions import FunctionSink
from weft.engines.spark.streaming.sinks.kafka import KafkaSink
from weft.engines.spark.streaming.sinks.upserts import UpsertSink
from weft.errors import QueryError, suggest
from weft.targets import identity_of, target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from weft.query import AnyQuery

Given = object  # a path, a place by its scheme, a sink, or a function of rows and batch number


def as_sink(given: Given) -> Sink | ToldSink:
    """Read what users give as a sink."""
    if isinstance(given, str):
        if given.startswith(KAFKA_SCHEME):
            return KafkaSink.of(given)
        target = target_of(given)
        if target is not None:
            return UpsertSink(target)
    if isinstance(given, str | os.PathLike):
        return FileSink(Place.of(given))
    if isinstance(given, Sink | ToldSink):
        return given
    if callable(given):
        return FunctionSink(given)
    raise QueryError(
        f"{given!r} is no sink",
        hint="give a directory, a table such as delta://path, a topic, a function of (rows, "
        "batch_id), or an object with `write`",
    )


@dataclass(frozen=True, slots=True)
class Route:
    """Which sink takes the rows of a query, and whether it takes other queries' as well."""

    sink: Sink | ToldSink
    shared: bool

    def check(self, query: AnyQuery) -> None:
        """Refuse a query whose rows the sink cannot keep."""
        if isinstance(self.sink, ToldSink):
            self.sink.check(query.name, identity_of(query))

    def write(self, query: AnyQuery, rows: DataFrame, batch_id: int, stream: str) -> None:
        """Hand the rows over."""
        if isinstance(self.sink, ToldSink):
            origin = Origin(stream, query.name, self.shared, identity_of(query))
            self.sink.write_from(rows, batch_id, origin)
        else:
            self.sink.write(rows, batch_id, query.name if self.shared else None)

    def directory_of(self, query: str) -> str | None:
        """Return where the rows of a query lie, if they go to a directory."""
        if not isinstance(self.sink, FileSink):
            return None
        return self.sink.directory_of(query if self.shared else None).uri


def routes_of(sinks: Given, queries: Sequence[str]) -> dict[str, Route]:
    """Find the sink of every query: one for all, or one for each by name."""
    if not isinstance(sinks, Mapping):
        one = as_sink(sinks)
        return {query: Route(one, len(queries) > 1) for query in queries}
    for name in sinks:
        if name not in queries:
            raise QueryError(
                f"there is a sink for {name!r}, and no query of that name",
                hint=suggest(str(name), queries, f"the queries are {', '.join(queries)}"),
            )
    missing = [query for query in queries if query not in sinks]
    if missing:
        raise QueryError(
            f"query {missing[0]!r} has no sink", hint="give it one, or one sink for all queries"
        )
    made = {id(given): as_sink(given) for given in sinks.values()}
    users: dict[int, int] = {}
    for given in sinks.values():
        users[id(given)] = users.get(id(given), 0) + 1
    return {q: Route(made[id(sinks[q])], users[id(sinks[q])] > 1) for q in queries}


@dataclass(frozen=True, slots=True)
class SinkRoots:
    """The directories under which files may name sinks: requests, and what is kept of them.

    Whoever can write into a checkpoint can leave a request there, and the driver would write
    wherever it says.
    """

    places: tuple[Place, ...] = ()

    @staticmethod
    def of(given: Sequence[str | os.PathLike[str]] | None, sinks: Given) -> SinkRoots:
        """Take the roots that were given; without, those that hold the stream's own directories."""
        if given is not None:
            return SinkRoots(tuple(map(Place.of, given)))
        every = sinks.values() if isinstance(sinks, Mapping) else [sinks]
        own = [as_sink(one) for one in every]
        return SinkRoots(tuple(s.place.parent for s in own if isinstance(s, FileSink)))

    def checked(self, sink: str) -> str:
        """Return the sink, if it lies under a root.

        >>> SinkRoots((Place.of("/data"),)).checked("/data/lows")
        '/data/lows'
        >>> SinkRoots((Place.of("/data"),)).checked("/data/../etc")
        Traceback (most recent call last):
        weft.errors.QueryError: the stream writes nothing to /data/../etc: it is not under /data
        hint: name a sink there, or restart the stream with sink_roots that hold it
        """
        if not any(Place.of(sink).lies_under(root) for root in self.places):
            roots = " or ".join(map(str, self.places)) or "any root, and it has none"
            raise QueryError(
                f"the stream writes nothing to {sink}: it is not under {roots}",
                hint="name a sink there, or restart the stream with sink_roots that hold it",
            )
        return sink


def routes_with(
    sinks: Given, queries: Sequence[str], live_sinks: Mapping[str, str], roots: SinkRoots
) -> dict[str, Route]:
    """Find the sinks of all queries; those added while the stream ran brought their own, or share.

    An empty text in `live_sinks` stands for the sink that several queries share.
    """
    named = sinks if isinstance(sinks, Mapping) else {}
    routes = routes_of(sinks, [q for q in queries if q in named or q not in live_sinks])
    for query, path in live_sinks.items():
        if query in routes:
            continue
        if path:
            routes[query] = Route(as_sink(roots.checked(path)), shared=False)
        else:
            routes[query] = next(route for route in routes.values() if route.shared)
    return routes
