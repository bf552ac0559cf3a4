"""Where the rows of a stream go: files, tables, functions; written anew, nothing comes twice.

After a crash Spark runs the last micro-batch again, with the number it had and the same events.
A sink that knows what it wrote under a number therefore writes each row exactly once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pyspark.sql import functions as F

from weft.engines.spark.streaming.checkpoint.places import Place, as_directory
from weft.engines.spark.streaming.settings import setting
from weft.errors import QueryError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

BATCH = "batch"
QUERY = "query"


@runtime_checkable
class Sink(Protocol):
    """Takes the rows that one micro-batch closed for a query."""

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Keep the rows; a number that was written before is the same rows again.

        `query` names the query where a sink serves several.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileSink:
    """Parquet files, a directory `batch=N` for each micro-batch that closed a window.

    Rows of several queries go to `query=NAME/batch=N`. A directory appears with all its files in
    one step where the file system can rename, and is never changed.
    """

    place: Place

    def directory_of(self, query: str | None) -> Place:
        """Return the directory of the micro-batches of a query, or of the only one."""
        return self.place if query is None else self.place / f"{QUERY}={as_directory(query)}"

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Write the batch, unless it is there from a run that was cut off afterwards."""
        parent = self.directory_of(query)
        name = f"{BATCH}={batch_id}"
        target = parent / name
        if "_SUCCESS" in target.names():
            return
        if target.local is None:
            rows.write.mode("overwrite").parquet(target.uri)
            return
        passing = (parent / f"_writing-{name}").local
        assert passing is not None
        rows.write.mode("overwrite").parquet(str(passing))
        _renamed(passing, target.local)


def _renamed(passing: Path, target: Path) -> None:
    if target.exists():  # without its mark: what a file system that cannot rename left behind
        shutil.rmtree(target)
    passing.rename(target)


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table of Spark's catalog, partitioned by the number of the micro-batch."""

    name: str

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Write the partition of the batch, in place of what it held."""
        numbered = _named(rows, query).withColumn(BATCH, F.lit(batch_id).cast("bigint"))
        session = rows.sparkSession
        if not session.catalog.tableExists(self.name):
            numbered.limit(0).write.partitionBy(BATCH).format("parquet").saveAsTable(self.name)
        # Only the partition of this batch is replaced, not the table.
        with setting(session, "spark.sql.sources.partitionOverwriteMode", "dynamic"):
            numbered.write.insertInto(self.name, overwrite=True)


@dataclass(frozen=True, slots=True)
class FunctionSink:
    """A function of the user's: called with the rows and the number of their micro-batch."""

    function: Callable[[DataFrame, int], object]

    def write(self, rows: DataFrame, batch_id: int, query: str | None) -> None:
        """Call it; where it serves several queries, a first column has the query's name."""
        self.function(_named(rows, query), batch_id)


def _named(rows: DataFrame, query: str | None) -> DataFrame:
    return rows if query is None else rows.select(F.lit(query).alias(QUERY), "*")


Given = object  # a path, a Sink, or a function of rows and batch number


def as_sink(given: Given) -> Sink:
    """Read what users give as a sink."""
    if isinstance(given, str | os.PathLike):
        return FileSink(Place.of(given))
    if isinstance(given, Sink):
        return given
    if callable(given):
        return FunctionSink(given)
    raise QueryError(
        f"{given!r} is no sink",
        hint="give a directory, a function of (rows, batch_id), or an object with `write`",
    )


@dataclass(frozen=True, slots=True)
class Route:
    """Which sink takes the rows of a query, and whether it takes other queries' as well."""

    sink: Sink
    shared: bool

    def write(self, query: str, rows: DataFrame, batch_id: int) -> None:
        """Hand the rows over."""
        self.sink.write(rows, batch_id, query if self.shared else None)

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
