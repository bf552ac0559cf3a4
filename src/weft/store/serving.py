"""What slices can answer: which set of a store serves a query, and what is missing where none does.

A window is served where every begin and end of its instances is an edge of the slices; keys, where
they can be computed from those of the slices; an aggregate, where the slices have its partials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.values.calendar import CalendarTable
from weft.errors import QueryError, UnsupportedError, suggest
from weft.expression import column, columns_of
from weft.plan.joins import end_class
from weft.plan.nodes import periodic_parts
from weft.store.kept import refuse_events
from weft.time import DAY, format_us, instant
from weft.window import CalendarWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft.aggregates import Partial
    from weft.query import Query, Workload
    from weft.store.kept import SliceSet
    from weft.store.manifest import Manifest
    from weft.window import Edges, Window

LATEST = 2**62  # since when slices that no compaction has touched are asked for


@dataclass(frozen=True, slots=True)
class Served:
    """The set of slices that serves a query, and what is left to filter them by."""

    number: int
    kept: SliceSet
    where: str | None


def served(manifest: Manifest, query: Query, since_us: int | None = None) -> Served:
    """Return the slices that serve a query, the fewest keys first, or say what they lack."""
    sources = {kept.source for kept in manifest.sets}
    if query.source not in sources:
        raise QueryError(
            f"the store has no slices of {query.source!r}",
            hint=suggest(query.source, sources, f"it has slices of {', '.join(sorted(sources))}"),
        )
    problems: list[str] = []
    fitting: list[Served] = []
    for number, kept in enumerate(manifest.sets):
        if kept.source != query.source:
            continue
        found = list(_lacking(manifest, number, kept, query, since_us))
        if found:
            problems.append(found[0])
        else:
            where = None if query.where == kept.where else query.where
            fitting.append(Served(number, kept, where))
    if not fitting:
        raise UnsupportedError(
            f"the slices of the store do not serve query {query.name!r}: {problems[0]}",
            hint="run it over the events with weft.run, or make a store whose workload has this "
            "query too",
        )
    return min(fitting, key=lambda one: (len(one.kept.keys), one.where is not None))


def served_together(manifest: Manifest, queries: Sequence[Query], by: str) -> Served:
    """Return the slices that serve queries which share theirs in what is made by history."""
    (first, *others) = dict.fromkeys(served(manifest, query) for query in queries)
    if others:
        raise UnsupportedError(
            f"queries {', '.join(query.name for query in queries)} share slices in a {by}, and the "
            "store keeps theirs apart",
            hint=f"start a {by} for each of them, or make a store for all",
        )
    return first


def with_stored_times(manifest: Manifest, workload: Workload) -> Workload:
    """Return the workload with the time columns that the slices of its sources go by."""
    from weft.query import Query, Workload

    refuse_events(workload)
    times = {kept.source: kept.time for kept in manifest.sets}
    found = []
    for query in workload:
        assert isinstance(query, Query)
        time = times.get(query.source)
        known = query.time is not None or time is None
        found.append(query if known or time is None else query.with_time(time))
    return Workload(found)


def _lacking(
    manifest: Manifest, number: int, kept: SliceSet, query: Query, since_us: int | None
) -> Iterator[str]:
    """Say what a set of slices lacks for a query, in the words of the query."""
    if query.time not in (None, kept.time):
        yield f"they are cut by the time {kept.time}, not by {query.time}"
    if query.where != kept.where and not _filters_keys(kept, query.where):
        has = "of all events" if kept.where is None else f"of the events with {kept.where}"
        yield f"they are {has}, and it asks for those with {query.where or 'any value'}"
    for name, text in query.keys:
        if not _has_key(kept, text):
            by = ", ".join(own for _, own in kept.keys) or "no key"
            yield f"they are by {by}, and its key {name!r} would need slices by {text} too"
    have = {partial for _, partial in kept.partials}
    for alias, call in query.aggs:
        missing: list[Partial] = [p for p in call.partials if p not in have]
        if missing:
            needs = " and ".join(map(str, missing))
            yield f"{alias!r}, {call}, would need slices with {needs}"
    for label, window in query.windows:
        yield from _uncut(manifest, number, kept, label, window, since_us)


def _has_key(kept: SliceSet, text: str) -> bool:
    """Tell whether a key is one of the slices', or computed from such."""
    if any(text == own for _, own in kept.keys):
        return True
    return all(column(name) in plain_keys(kept) for name in columns_of(text))


def plain_keys(kept: SliceSet) -> dict[str, str]:
    """Return the columns of keys that are columns of the events, by the text of the latter."""
    return {text: own for own, text in kept.keys if columns_of(text) and _is_column(text)}


def _is_column(text: str) -> bool:
    (name, *others) = columns_of(text)
    return not others and column(name) == text


def _filters_keys(kept: SliceSet, where: str | None) -> bool:
    """Tell whether a filter of all events can as well be asked of the slices."""
    if where is None or kept.where is not None:
        return False
    return all(column(name) in plain_keys(kept) for name in columns_of(where))


def _uncut(
    manifest: Manifest,
    number: int,
    kept: SliceSet,
    label: str,
    window: Window,
    since_us: int | None,
) -> Iterator[str]:
    for level, edges in enumerate(kept.levels):
        files = [f for f in manifest.files() if f.set == number and f.level == level]
        if level and not files:
            continue
        bounds = [bound for file in files for bound in (file.from_us, file.to_us)]
        if cuts(kept, level, window, (min(bounds), max(bounds)) if bounds else (0, 0)):
            continue
        if not level:
            needed = _needed(window)
            yield f"window {label!r}, {window}, would need {needed}; they are cut {grain(edges)}"
        elif since_us is None or since_us < max(bounds):
            yield (
                f"window {label!r}, {window}, is kept since {instant(max(bounds))} alone: older "
                f"slices are cut {grain(edges)}; ask with since={instant(max(bounds))!s}"
            )


def cuts(kept: SliceSet, level: int, window: Window, bounds_us: tuple[int, int]) -> bool:
    """Tell whether instances of a window are whole slices, between two times at least."""
    edges = kept.levels[level]
    if isinstance(window, CalendarWindow):
        return _cuts_calendar(kept, level, window, bounds_us)
    parts = periodic_parts(window)
    begins = [(part.offset_us, part.slide_us) for part in parts]
    return all(map(edges.contains, (*begins, *map(end_class, parts))))


def _cuts_calendar(
    kept: SliceSet, level: int, window: CalendarWindow, bounds_us: tuple[int, int]
) -> bool:
    if window in kept.levels[level].windows:
        return True
    low, high = bounds_us
    if low == high:
        low, high = 0, 366 * DAY  # nothing is kept yet: a year tells
    days = np.arange(low, high + DAY, DAY, dtype=np.int64)
    starts, ends = CalendarTable(window).around(days)
    edges = np.unique(np.concatenate([starts, ends]))
    edges = edges[(edges > low) & (edges < high)]
    slices = kept.slices(level)
    return bool(np.array_equal(slices.bounds(slices.slice_of(edges))[0], edges))


def _needed(window: Window) -> str:
    if isinstance(window, CalendarWindow):
        return f"slices cut where a {window.unit} begins in {window.zone}"
    classes = {(p.offset_us, p.slide_us) for p in periodic_parts(window)}
    classes |= {end_class(p) for p in periodic_parts(window)}
    return "slices cut " + _told(sorted((r % m, m) for r, m in classes))


def grain(edges: Edges) -> str:
    """Say where time is cut."""
    told = [_told(edges.classes)] if edges.classes else []
    return " and ".join([*told, *map(str, edges.windows)])


def _told(classes: object) -> str:
    """Say where classes of edges cut.

    >>> _told([(0, 60_000_000), (5_000_000, 3_600_000_000)])
    'every 1m and every 1h @5s'
    """
    assert isinstance(classes, list | tuple)
    return " and ".join(
        f"every {format_us(modulus)}" + (f" @{format_us(residue)}" if residue else "")
        for residue, modulus in dict.fromkeys(classes)
    )
