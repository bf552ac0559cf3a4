"""The store: events are folded in once, and what the slices serve is answered from them."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from weft.binding import bind
from weft.errors import DataError, InputError, QueryError, UnsupportedError
from weft.frames import from_arrow, kind_of, to_arrow
from weft.plan import Plan
from weft.query import Query, Workload
from weft.running import columns_of_table
from weft.store.answers import SliceReader, answer, beginning
from weft.store.catalog import CatalogTable
from weft.store.compaction import compact, remove_unused
from weft.store.cut import columns_read, cut_events
from weft.store.disk import remove
from weft.store.kept import slice_sets, with_times
from weft.store.manifest import Batch, Manifest, Manifests, coverage_us
from weft.store.planning import planned
from weft.store.serving import LATEST, served, with_stored_times
from weft.time import duration_us, instant, instant_us

if TYPE_CHECKING:
    import datetime as dt
    import os
    from collections.abc import Mapping

    from weft.plan.anchors import EventFeatures
    from weft.query import AnyQuery
    from weft.sessions.source_stream import SourceStream
    from weft.store.cut import Cut
    from weft.store.kept import SliceSet
    from weft.store.manifest import SliceFile
    from weft.time import Duration


class Store:
    """Slices of one or more sources in a folder, which grow by what is appended.

    With a workload a store is made, with slices that serve it, or opened if it serves it already.
    `catalog://metrics.slices` is a store by the name of a table in the catalog of the Spark session
    in use: its folder is the catalog's, and whoever knows the name reads the slices as a table.

    >>> import tempfile, weft
    >>> query = weft.Query("lows", source="readings", time="ts", keys="device",
    ...                    windows={"1h": "1 hour"}, aggs={"lo": "min(temp)", "n": "count(*)"})
    >>> day = pa.table({"ts": pa.array([0, 60], pa.timestamp("s")), "device": ["a", "a"],
    ...                 "temp": [20.5, 19.0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder, query)
    ...     store.append(day, id="1970-01-01")
    ...     store.append(day, id="1970-01-01")  # changes nothing
    ...     rows = store.run(query.with_windows({"1d": "1 day"}))
    >>> rows.select(["device", "lo", "n"]).to_pylist()
    [{'device': 'a', 'lo': 19.0, 'n': 2}]
    """

    def __init__(
        self, path: str | os.PathLike[str], workload: Workload | AnyQuery | None = None
    ) -> None:
        self._table = CatalogTable.of(path)
        self._path = Path(path) if self._table is None else self._table.folder()
        self._manifests = Manifests(self._path)
        asked = Workload() if workload is None else Workload.of(workload)
        if workload is not None and not self._manifests.exist():
            self._manifests.begin(lambda id: _first_version(id, asked, self.table))
        manifest = self._manifests.latest()
        for query in with_stored_times(manifest, asked):
            assert isinstance(query, Query)
            served(manifest, query, LATEST)  # older slices may be coarser by now
        self._show()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._path

    @property
    def table(self) -> str | None:
        """The name in a catalog that the store was opened by."""
        return None if self._table is None else str(self._table)

    def _show(self) -> None:
        """Let the name in the catalog be the newest version, also while others write."""
        shown = None
        while self._table is not None and (newest := self.manifest).version != shown:
            self._table.show(self._path, newest)
            shown = newest.version

    @property
    def manifest(self) -> Manifest:
        """The newest version of what the store is and which files it has."""
        return self._manifests.latest()

    def manifest_at(self, version: int) -> Manifest:
        """The manifest of a version of the past: the last twenty are kept."""
        return self._manifests.at(version)

    @property
    def plan(self) -> Plan:
        """The plan of the workload that the slices were chosen for."""
        import json

        return Plan.from_json(json.dumps(self.manifest.plan))

    @property
    def workload(self) -> Workload:
        """The workload that the slices were chosen for."""
        return Workload(self.plan.queries)

    @property
    def coverage(self) -> tuple[dt.datetime, dt.datetime] | None:
        """From when to when there are slices; None while there are none."""
        found = coverage_us(self.manifest.files())
        return None if found is None else (instant(found[0]), instant(found[1]))

    def append(self, events: Any, id: str | None = None) -> None:
        """Fold events into slices; they may come in any order and however late.

        Under an id they are folded in once, however often this is asked for. Of several sources,
        `events` are tables by name.
        """
        known = self.manifest
        if id is not None and id in known.batches:
            return
        name = id if id is not None else f"unnamed-{uuid4().hex}"
        self._write(known, name, events, replacing=False)

    def replace(self, events: Any, id: str) -> None:
        """Put events in the place of those that were appended under an id."""
        known = self.manifest
        if id not in known.batches:
            raise InputError(
                f"nothing was appended under the id {id!r}",
                hint="append it first; store.batches lists the ids",
            )
        self._write(known, id, events, replacing=True)

    @property
    def batches(self) -> tuple[str, ...]:
        """The ids of what was appended, in order."""
        return tuple(self.manifest.batches)

    def _write(self, known: Manifest, id: str, events: Any, *, replacing: bool) -> None:
        tables = _tables(known, events)
        prepared = _with_schemas(known, tables)
        name, keys = uuid4().hex, dict(known.keys)
        files: list[SliceFile] = []
        events_of: dict[str, int] = {}
        for number, kept in enumerate(prepared.sets):
            if kept.source in tables:
                cut = self._cut(number, kept, tables[kept.source], prepared, name)
                files += cut.files
                keys[number] = max(keys.get(number, 0), cut.keys)
                events_of[kept.source] = cut.events

        def changed(now: Manifest) -> Manifest | None:
            if id in now.batches and not replacing:
                return None
            if id not in now.batches and replacing:
                raise InputError(f"what was appended as {id!r} is gone", hint="append it again")
            agreed = _with_schemas(now, tables)
            if any(agreed.schemas[name] != prepared.schemas[name] for name in tables):
                raise DataError(
                    "another writer began the store with events of other types",
                    hint="append these events again: they are then brought to the same types",
                )
            batch = Batch(sum(events_of.values()), now.version + 1, tuple(files))
            most = {n: max(now.keys.get(n, 0), own) for n, own in keys.items()}
            return replace(agreed, keys=most).with_batch(id, batch)

        if self._manifests.change(changed).batches[id].files != tuple(files):
            self._remove(files)  # another writer was first under the same id
        self._show()

    def _remove(self, files: list[SliceFile]) -> None:
        for file in files:
            remove(self._path / file.path)

    def _cut(self, number: int, kept: SliceSet, table: Any, prepared: Manifest, name: str) -> Cut:
        schema = prepared.schemas[kept.source]
        if kind_of(table) == "spark":
            from weft.store.spark_files import cut_frame, of_schema

            return cut_frame(self._path, number, kept, of_schema(table, schema, kept.source), name)
        return cut_events(self._path, number, kept, _of_schema(table, schema, kept.source), name)

    def run(
        self,
        workload: Workload | AnyQuery | None = None,
        *,
        since: dt.datetime | int | None = None,
        engine: str = "local",
    ) -> Any:
        """Answer queries from slices alone: those the store was made for, or any they serve.

        `since` asks for the windows that begin then or later. One query gives one Arrow table, or
        with engine "spark" a DataFrame; several give a mapping of their names to such.
        """
        check_engine(engine)
        manifest = self.manifest
        asked = self.workload if workload is None else Workload.of(workload)
        since_us = None if since is None else instant_us(since)
        plan = planned(manifest, asked, since_us)
        if engine == "spark":
            from weft.store.spark_files import answer_on_spark

            frames = answer_on_spark(plan, self._path, manifest, since_us)
            return next(iter(frames.values())) if len(frames) == 1 else frames
        reader = SliceReader(self._path, manifest)
        found = answer(plan, reader, (since_us, None))
        queries = {query.name: query for query in plan.queries}
        results = {n: beginning(t, queries[n], (since_us, None)) for n, t in found.items()}
        return next(iter(results.values())) if len(results) == 1 else results

    @property
    def only_source(self) -> str:
        """The source that the slices are of, where there is one."""
        sources = sorted({kept.source for kept in self.manifest.sets})
        if len(sources) > 1:
            raise QueryError(
                f"the store has slices of {', '.join(sources)}",
                hint="make a store of one source, or pass the events",
            )
        return sources[0]

    def features_at(self, points: Any, at: str | None, asked: EventFeatures) -> Any:
        """Answer `weft.as_of` from slices: points in, the same points with features out."""
        from weft.store.points import features_from_slices

        if at is None:
            raise QueryError("the time of the points is not named", hint="name it: at='...'")
        reader = SliceReader(self._path, self.manifest)
        found = features_from_slices(reader, to_arrow(points), at, asked)
        return from_arrow(found, kind_of(points))

    def seed(self, stream: SourceStream) -> None:
        """Let a session that has seen no event begin with those that were appended here."""
        from weft.store.seeds import seed

        seed(stream, SliceReader(self._path, self.manifest))

    def compact(
        self, keep: Mapping[str, str] | None = None, *, unused_after: Duration = "1 day"
    ) -> None:
        """Bring old slices to coarser ones, and remove files that no version speaks of.

        `keep` tells how long slices of each width stay, such as `{"5 minutes": "7 days", "1 hour":
        "1 year"}`: after 7 days those of 5 minutes become slices of an hour. Ages count from the
        newest slice. What is older than the last stays as it is: nothing is thrown away. Windows
        that need finer slices are still answered `since` the time from which these are there. The
        rule is remembered. Files that readers of an older version may still have open go once
        they were unused for `unused_after`; those of a store with a name in a catalog, if it was
        opened by that name.
        """
        compact(self._path, self._manifests, keep)
        self._show()
        known = self.manifest
        if known.table == self.table:  # by another name, somebody may still read them as a table
            remove_unused(self._path, known, duration_us(unused_after))

    def planned(self, workload: Workload | AnyQuery, engine: str = "local") -> Plan:
        """Plan queries over the slices that are there, or say what these lack."""
        return planned(self.manifest, Workload.of(workload), engine=engine)


def check_engine(engine: str) -> None:
    """Refuse an engine that reads and writes no slices."""
    if engine not in ("local", "spark"):
        raise UnsupportedError(
            f"the engine {engine!r} reads and writes no slices", hint="use 'local' or 'spark'"
        )


def _tables(known: Manifest, events: Any) -> dict[str, Any]:
    """Return the tables that are given, by source: Arrow, or DataFrames of Spark."""
    sources = sorted({kept.source for kept in known.sets})
    given: Mapping[str, Any] = events if isinstance(events, dict) else {sources[0]: events}
    if not isinstance(events, dict) and len(sources) > 1:
        raise QueryError(
            f"the store has slices of {', '.join(sources)}, and one table is given",
            hint=f"name it: store.append({{{sources[0]!r}: events}})",
        )
    unknown = sorted(given.keys() - {*sources})
    if unknown:
        raise QueryError(
            f"the store has no slices of {', '.join(unknown)}",
            hint=f"it has slices of {', '.join(sources)}",
        )
    return {
        name: table if kind_of(table) == "spark" else to_arrow(table)
        for name, table in given.items()
    }


def _schema(table: Any) -> pa.Schema:
    if kind_of(table) == "spark":
        from weft.engines.spark.session import arrow_schema

        return arrow_schema(table.schema)
    own: pa.Schema = table.schema
    return own


def _first_version(id: str, workload: Workload, table: str | None) -> Manifest:
    from weft.planners.portfolio import optimize

    try:
        writer = version("weft-spark")
    except PackageNotFoundError:  # run from a folder of sources
        writer = "not installed"
    plan = optimize(workload, "slice", "local", filters="apart")  # as slices are kept
    return Manifest(id, 1, writer, plan.to_json(), slice_sets(workload), table=table)


def slices_elsewhere(workload: Workload, schemas: Mapping[str, pa.Schema]) -> Manifest:
    """Describe the slices that serve a workload, for others to keep: a store without files."""
    tables = {name: schema.empty_table() for name, schema in schemas.items()}
    return _with_schemas(_first_version("", workload, None), tables)


def _with_schemas(known: Manifest, tables: Mapping[str, Any]) -> Manifest:
    """Learn from the first events of a source which types its columns are of."""
    schemas, times = dict(known.schemas), {}
    for source, table in tables.items():
        if source in schemas:
            continue
        own = [kept for kept in known.sets if kept.source == source]
        bound = bind(_workload_of(known, source), {source: columns_of_table(table)})
        times[source] = next(q.time for q in bound if isinstance(q, Query) and q.time is not None)
        read = {c for kept in own for c in columns_read(kept)} | {times[source]}
        schemas[source] = pa.schema([_plain_field(f) for f in _schema(table) if f.name in read])
    return replace(known, schemas=schemas, sets=with_times(known.sets, times))


def _workload_of(known: Manifest, source: str) -> Workload:
    import json

    queries = Plan.from_json(json.dumps(known.plan)).queries
    return Workload(query for query in queries if query.source == source)


def _plain_field(field: pa.Field[Any]) -> pa.Field[Any]:
    type = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, type)


def _of_schema(table: pa.Table, schema: pa.Schema, source: str) -> pa.Table:
    """Bring events to the types that the first ones had, or say which column cannot be."""
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            raise DataError(
                f"the events of {source!r} have no column {field.name!r}",
                hint=f"the columns are {', '.join(table.column_names)}",
            )
        try:
            columns.append(table.column(field.name).cast(field.type))
        except (pa.ArrowException, ValueError) as reason:
            told = str(reason).splitlines()[0]
            raise DataError(
                f"column {field.name!r} of {source!r} is {table.schema.field(field.name).type}, "
                f"and was {field.type} when the store began: {told}",
                hint="cast the column before it is appended",
            ) from None
    return pa.table(columns, schema=schema)
