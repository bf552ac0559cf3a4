"""Ninety days of readings, and one more: what a night costs with a store and without.

The full run reads all events from parquet and writes its results, as a nightly job does; a refresh
reads slices, computes what the new day changed, and writes that.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import weft
from weft.bench.frame import Column, Entry, Limit, Sheet, Table
from weft.compare import first_difference
from weft.generate import sensors
from weft.time import DAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.query import Query

parquet: Any = pq
_START_US = 1_704_067_200_000_000  # 2024-01-01
_DAYS, _DEVICES = 90, 10
_EVENTS_PER_DAY = {"full": 200_000, "quick": 5_000}
_APPENDED = {"full": 2_000_000, "quick": 20_000}
_ROUNDS = 3


def nightly() -> Query:
    """Return the query of every night: half an hour to a week, of every device."""
    return weft.Query(
        "features",
        source="readings",
        time="ts",
        keys="device",
        windows={
            "30m": "30 minutes",
            "6h/1h": weft.hopping("6 hours", "1 hour"),
            "1d": "1 day",
            "7d/1d": weft.hopping("7 days", "1 day"),
        },
        aggs={"n": "count(*)", "mean": "avg(temp)", "lo": "min(temp)", "hi": "max(temp)"},
    )


def day_of_readings(number: int, events: int) -> pa.Table:
    """Return one day of readings."""
    start_us = _START_US + number * DAY
    return sensors(events, number, devices=_DEVICES, rate=events / 86_400, start=start_us)


@dataclass(frozen=True, slots=True)
class Nights:
    """A store of some days, the same days as files of events, and the day after."""

    folder: Path
    store: weft.Store
    last: pa.Table

    @classmethod
    def of(cls, folder: Path, days: int, events: int) -> Nights:
        """Append all days but the last, and refresh once."""
        store = weft.Store(folder / "store", nightly())
        (folder / "events").mkdir()
        for number in range(days + 1):
            table = day_of_readings(number, events)
            parquet.write_table(table, folder / "events" / f"{number:03d}.parquet")
            if number < days:
                store.append(table, id=str(number))
        weft.refresh(nightly(), store, into=folder / "results")
        return cls(folder, store, table)

    def event_bytes(self) -> int:
        """Return the size of all events as parquet, the last day left out."""
        *files, _ = sorted((self.folder / "events").iterdir())
        return sum(file.stat().st_size for file in files)

    def slice_bytes(self) -> int:
        """Return the size of all slices."""
        return sum(file.bytes for file in self.store.manifest.files())


def _night(quick: bool) -> Sheet:
    events = _EVENTS_PER_DAY["quick" if quick else "full"]
    days = 10 if quick else _DAYS
    with TemporaryDirectory() as place:
        nights = Nights.of(Path(place), days, events)
        share = 100 * nights.slice_bytes() / nights.event_bytes()
        refreshed = []
        for at in range(_ROUNDS):
            nights.store.append(nights.last, id=f"new {at}")
            done = _timed(lambda: weft.refresh(nightly(), nights.store, Path(place) / "results"))
            refreshed.append(done)
            if at < _ROUNDS - 1:  # the night begins anew
                nights.store.replace(nights.last.slice(0, 0), id=f"new {at}")
                weft.refresh(nightly(), nights.store, into=Path(place) / "results")
        whole = min(_timed(lambda: _full_run(nights)) for _ in range(_ROUNDS))
        wrong = _difference(nights)
    row = {
        "events": events * days,
        "store % of events": share,
        "full run s": whole,
        "refresh s": min(refreshed),
        "full run / refresh": whole / min(refreshed),
    }
    return Sheet((row,), (wrong,) if wrong else ())


def _append(quick: bool) -> Sheet:
    events = _APPENDED["quick" if quick else "full"]
    table = day_of_readings(0, events)
    with TemporaryDirectory() as place:
        store = weft.Store(place, nightly())
        store.append(table, id="first")
        times = [
            (_timed(lambda: _plain_slices(table)), _timed(partial(store.append, table, f"{at}")))
            for at in range(_ROUNDS + 2)
        ]
        counted = store.run(nightly().with_windows({"1d": "1 day"}))["n"].to_pylist()
    wrong = () if sum(counted) == events * (_ROUNDS + 3) else (f"{sum(counted)} events counted",)
    plain, appended = (min(column) for column in zip(*times, strict=True))
    row = {"events": events, "append s": appended, "slicing s": plain, "ratio": appended / plain}
    return Sheet((row,), wrong)


def _timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = perf_counter()
    work()
    return perf_counter() - start


def _plain_slices(table: pa.Table) -> None:
    """Aggregate a day to the slices of the store, written as a file, with no store around it."""
    query = nightly().with_windows({"30m": "30 minutes"})
    rows = weft.run(query, {"readings": table}, engine="local")
    with TemporaryDirectory() as place:
        parquet.write_table(rows, Path(place) / "rows.parquet", compression="zstd")


def _full_run(nights: Nights) -> None:
    table = parquet.read_table(nights.folder / "events")
    rows = weft.run(nightly(), {"readings": table}, engine="local")
    parquet.write_table(rows, nights.folder / "rows.parquet")


def _difference(nights: Nights) -> str:
    wanted = parquet.read_table(nights.folder / "rows.parquet")
    found = parquet.read_table(nights.folder / "results")
    return str(first_difference(nightly(), found, wanted, "refresh") or "")


NIGHT = Table(
    name="store/night",
    question="What does a night cost with a store, and what without?",
    columns=(
        Column("events", ",d"),
        Column("store % of events", ".1f"),
        Column("full run s", ".2f"),
        Column("refresh s", ".3f"),
        Column("full run / refresh", ".1f"),
    ),
    compute=_night,
    limits=(
        Limit("store % of events", at_most=15, at_quick=False),
        Limit("full run / refresh", at_least=10, at_quick=False),
    ),
)

APPEND = Table(
    name="store/append",
    question="What does an append cost beside the slicing of its events?",
    columns=(
        Column("events", ",d"),
        Column("append s", ".3f"),
        Column("slicing s", ".3f"),
        Column("ratio", ".2f"),
    ),
    compute=_append,
    limits=(Limit("ratio", at_most=1.3, at_quick=False),),
)

ENTRIES: tuple[Entry, ...] = (NIGHT, APPEND)
