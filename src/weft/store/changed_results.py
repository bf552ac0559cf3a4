"""Only what changed: the window instances whose slices are new since a folder was last refreshed.

A store knows of every day which version last changed it, and between which times. Instances that
reach into such a time are computed again, in whole days of their starts, and take the place of
the files that held them; no other file is touched.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weft.engines.local.values.calendar import CalendarTable
from weft.errors import InputError
from weft.query import Query, Workload
from weft.store.answers import SliceReader, answer, beginning
from weft.store.cut import day_text
from weft.store.planning import planned
from weft.store.serving import LATEST, served
from weft.store.target import ParquetFolder, Refreshed, file_name
from weft.targets import Mark, Stretch, identity_of, target_of
from weft.targets.base import checked
from weft.time import DAY
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from weft.plan import Plan
    from weft.query import AnyQuery
    from weft.store.manifest import Manifest
    from weft.store.store import Store
    from weft.targets import Target
    from weft.window import Window

Days = tuple[int, int]  # [first, last) days from 1970


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a refresh did."""

    version: int  # of the store
    files: int  # written or removed; of a table, its commits
    rows: int  # written
    whole: bool  # whether everything was computed, as for a folder that is new


def refresh(workload: Workload | AnyQuery, store: Store, into: str | os.PathLike[str]) -> Refresh:
    """Bring results in a folder or a table up to what the store has now, changed instances alone.

    A folder has parquet files of the results, which any reader of parquet takes together; of
    several queries, a folder for each. A table is `delta://path`, `iceberg://catalog.space.table`
    or `jdbc:postgresql://host/db?table=name`, made by the first refresh; of several queries, one
    for each. Changes come all or none, also over a crash.

    >>> import tempfile, weft
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> query = weft.Query("n", source="t", windows={"1h": "1 hour"}, aggs={"n": "count(*)"})
    >>> days = [pa.table({"ts": pa.array([d * 86_400], pa.timestamp("s"))}) for d in range(3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = weft.Store(f"{folder}/store", query)
    ...     for number, day in enumerate(days):
    ...         store.append(day, id=f"day {number}")
    ...         done = weft.refresh(query, store, into=f"{folder}/results")
    ...     rows = pq.read_table(f"{folder}/results").num_rows
    >>> rows, done.rows
    (3, 1)
    """
    asked = Workload.of(workload)
    manifest = store.manifest
    plan = planned(manifest, asked, LATEST)
    reader = SliceReader(store.path, manifest)
    table = target_of(into) if isinstance(into, str) else None
    found = []
    for query in plan.queries:
        alone = planned(manifest, Workload([query]), LATEST)
        if table is not None:
            own = table.named(query.name) if len(asked) > 1 else table
            found.append(_refresh_table(query, alone, reader, own))
        else:
            folder = Path(into) / query.name if len(asked) > 1 else Path(into)
            found.append(_refresh_query(query, alone, reader, folder))
    return Refresh(
        manifest.version,
        sum(one.files for one in found),
        sum(one.rows for one in found),
        any(one.whole for one in found),
    )


def _refresh_table(query: Query, plan: Plan, reader: SliceReader, target: Target) -> Refresh:
    """Put what changed in place of what was there, in one transaction with the store's version."""
    manifest = reader.manifest
    identity = checked(target.key, query.name, identity_of(query), target)
    target.check()
    writer = f"refresh/{manifest.id}/{_fingerprint(query)}"
    before = target.last(writer)
    if before is None and not target.is_empty():
        raise InputError(
            f"the {target} holds rows that no refresh of {query.name} from this store has written",
            hint="refresh into a table of its own, or remove this one",
        )
    if before is not None and before >= manifest.version:
        return Refresh(manifest.version, 0, 0, False)
    parts: list[pa.Table] = []
    cleared: list[Stretch] = []
    for label, window in query.windows:
        alone = query.with_windows({label: window})
        for days in _changed_days(manifest, alone, window, before or 0):
            parts.append(_computed(alone, window, plan, reader, days))
            cleared.append(Stretch(label, days[0] * DAY, days[1] * DAY))
    if not parts:
        return Refresh(manifest.version, 0, 0, before is None)
    rows = pa.concat_tables(parts)
    written = target.write(rows, identity, Mark(writer, manifest.version), cleared)
    return Refresh(manifest.version, int(written), rows.num_rows if written else 0, before is None)


def _fingerprint(query: Query) -> str:
    return hashlib.sha256(repr(query).encode()).hexdigest()  # plans change as events come


def _refresh_query(query: Query, plan: Plan, reader: SliceReader, folder: Path) -> Refresh:
    target = ParquetFolder(folder)
    with target.alone():
        return _refresh_folder(query, plan, reader, target)


def _refresh_folder(
    query: Query, plan: Plan, reader: SliceReader, target: ParquetFolder
) -> Refresh:
    manifest, before = reader.manifest, target.begin()
    fingerprint = _fingerprint(query)
    if before is not None and (before.store, before.fingerprint) != (manifest.id, fingerprint):
        raise InputError(
            f"{target.path} holds results of another store or query",
            hint="refresh into a folder of its own, or remove this one",
        )
    known = Refreshed(manifest.id, 0, fingerprint, frozenset()) if before is None else before
    if known.version >= manifest.version:  # another was faster, with a newer version
        return Refresh(manifest.version, 0, 0, False)
    written = rows = 0
    for number, (label, window) in enumerate(query.windows):
        alone = query.with_windows({label: window})
        for days in _changed_days(manifest, alone, window, known.version):
            tables = _by_day(_computed(alone, window, plan, reader, days), query)
            for day in range(*days):
                name = file_name(number, label, day_text(day))
                if day in tables:
                    target.put(name, tables[day])
                    rows += tables[day].num_rows
                elif name in known.files:
                    target.drop(name)
                else:
                    continue
                written += 1
    target.commit(replace(known, version=manifest.version))
    return Refresh(manifest.version, written, rows, before is None)


def _changed_days(manifest: Manifest, query: Query, window: Window, version: int) -> Iterator[Days]:
    """Yield the days on which instances begin that hold a time changed since a version."""
    number = served(manifest, query, LATEST).number
    found = []
    for (own, _), change in manifest.changes.items():
        if own == number and change.version > version:
            first = _first_start_us(window, change.from_us)
            found.append((first // DAY, (change.to_us - 1) // DAY + 1))
    found.sort()
    while found:
        low, high = found.pop(0)
        while found and found[0][0] <= high:
            high = max(high, found.pop(0)[1])
        yield low, high


def _first_start_us(window: Window, time_us: int) -> int:
    """Return where the first instance begins that holds a time or a later one.

    >>> _first_start_us(PeriodicWindow(10, 5, 2), 20), _first_start_us(PeriodicWindow(5, 5), 20)
    (12, 20)
    """
    match window:
        case PeriodicWindow():
            late = (time_us - window.range_us - window.offset_us) // window.slide_us + 1
            return window.offset_us + late * window.slide_us
        case CumulatingWindow():
            return time_us - time_us % window.range_us
        case CalendarWindow():
            return int(CalendarTable(window).around(np.array([time_us]))[0][0])
        case _:
            raise AssertionError(window)


def _end_us(window: Window, start_us: int) -> int:
    """Return a time that no instance which begins before a time goes beyond."""
    match window:
        case PeriodicWindow() | CumulatingWindow():
            return start_us + window.range_us
        case CalendarWindow():
            return int(CalendarTable(window).around(np.array([start_us - 1]))[1][0])
        case _:
            raise AssertionError(window)


def _computed(
    query: Query, window: Window, plan: Plan, reader: SliceReader, days: Days
) -> pa.Table:
    low, high = days[0] * DAY, days[1] * DAY
    # Instances that begin before are not whole in these slices, and are not asked for.
    found = answer(plan, reader, (low, _end_us(window, high)), [query])[query.name]
    return beginning(found, query, (low, high))


def _by_day(table: pa.Table, query: Query) -> dict[int, pa.Table]:
    """Split results by the day on which their instances begin."""
    starts: Any = table.column(query.window_columns[1]).cast(pa.int64()).to_numpy()
    days = starts // DAY
    return {day: table.filter(pa.array(days == day)) for day in np.unique(days).tolist()}
