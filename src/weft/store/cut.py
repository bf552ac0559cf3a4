"""From events to files: slices of every set, a file for each day that has any."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.partials.stored_columns import column_of_partials
from weft.engines.local.values.arrow import of_numbers
from weft.engines.local.values.keys import KeyCodes
from weft.engines.local.windows.events import events_of, read_scan
from weft.engines.local.windows.flow import Flow, slice_batch
from weft.errors import DataError
from weft.expression import columns_of
from weft.kernels.parallel import threads_for
from weft.plan import Scan
from weft.store.disk import flush, make_folder, write_table
from weft.store.manifest import SliceFile
from weft.time import DAY

if TYPE_CHECKING:
    from pathlib import Path

    from weft.store.kept import SliceSet

INSTANT = pa.timestamp("us", "UTC")
FOLDER = "slices"


@dataclass(frozen=True, slots=True)
class Cut:
    """The files of one set, how many keys they have, and how many events there were to filter."""

    files: tuple[SliceFile, ...]
    keys: int
    events: int


def scan_of(kept: SliceSet) -> Scan:
    """Return the scan that a set of slices is cut from."""
    expressions = [text for _, text in kept.keys]
    expressions += [arg for _, partial in kept.partials for arg in partial.args]
    columns = tuple(sorted({column for text in expressions for column in columns_of(text)}))
    return Scan(kept.source, kept.time, kept.where, columns)


def columns_read(kept: SliceSet) -> set[str]:
    """Return the columns of the events that a set of slices is made of."""
    scan = scan_of(kept)
    filtered = () if scan.where is None else columns_of(scan.where)
    return {*scan.columns, *filtered, *(() if scan.time is None else (scan.time,))}


def cut_events(store: Path, number: int, kept: SliceSet, table: pa.Table, name: str) -> Cut:
    """Fold events into slices and write them, day by day, under a name that nothing else has."""
    timed = read_scan(scan_of(kept), table)
    if not timed.times_us.size:
        return Cut((), 0, table.num_rows)
    codes = KeyCodes(len(kept.keys))
    events = events_of(timed, kept.keys, codes)
    threads = threads_for(len(events))
    partials = tuple(partial for _, partial in kept.partials)
    flow = slice_batch(events, kept.slices(0), partials, threads)
    files = write_slices(store, number, kept, 0, flow, codes, name)
    return Cut(files, len(codes), table.num_rows)


def write_slices(
    store: Path, number: int, kept: SliceSet, level: int, flow: Flow, codes: KeyCodes, name: str
) -> tuple[SliceFile, ...]:
    """Write slices as parquet, a file for each day in which any begins."""
    slices = kept.slices(level)
    days = flow.starts_us // DAY
    found: list[SliceFile] = []
    for day in np.unique(days).tolist():
        rows = np.flatnonzero(days == day)
        # By time, then key: most columns of a slice look like those of the slice before.
        order = np.lexsort((codes.ranks()[flow.keys[rows]], flow.starts_us[rows]))
        part = flow.take(rows[order])
        text = day_text(day)
        place = f"{FOLDER}/set-{number}/day={text}/{name}-{level}.parquet"
        make_folder((store / place).parent)
        size = write_table(store / place, _table(kept, part, codes))
        flush((store / place).parent)
        _, ends = slices.bounds(slices.slice_of(part.starts_us[-1:]))
        first, last = int(part.starts_us[0]), int(ends[0])
        found.append(SliceFile(place, number, level, text, len(part), size, first, last))
    return tuple(found)


def _table(kept: SliceSet, flow: Flow, codes: KeyCodes) -> pa.Table:
    columns = [
        of_numbers(flow.starts_us, INSTANT),
        *codes.decode(flow.keys),
        *(column_of_partials(partial, flow.partials) for _, partial in kept.partials),
    ]
    return pa.table(columns, names=[*kept.columns])


def day_text(day: int) -> str:
    """Write a day, counted from 1970.

    >>> day_text(0), day_text(-1)
    ('1970-01-01', '1969-12-31')
    """
    try:
        return (dt.date(1970, 1, 1) + dt.timedelta(days=day)).isoformat()
    except OverflowError:
        raise DataError(
            f"an event lies {day:,} days from 1970, outside the calendar's years 1 to 9999",
            hint="leave such events out before they are appended",
        ) from None
