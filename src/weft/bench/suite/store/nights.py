"""Ninety days of readings, and one more: what a night costs with a store and without.

The full run reads all events from parquet and writes its results, as a nightly job does; a refresh
reads slices, computes what the new day changed, and writes that.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
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
_DEVICES = 10
DAYS = {"full": 90, "quick": 10}
EVENTS_PER_DAY = {"full": 200_000, "quick": 5_000}
APPENDED = {"full": 2_000_000, "quick": 20_000}
ROUNDS = 3


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
        made = cls(folder, store, pa.table({}))
        made.events.mkdir()
        for number in range(days + 1):
            table = day_of_readings(number, events)
            parquet.write_table(table, made.events / f"{number:03d}.parquet")
            if number < days:
                store.append(table, id=str(number))
        made.refresh()
        return replace(made, last=table)

    def pass_by(self, last: Any) -> tuple[float, float]:
        """Append the last day and refresh, several times; return the least seconds of each."""
        appended, refreshed = [], []
        for at in range(ROUNDS):
            appended.append(timed(partial(self.store.append, last, id=f"new {at}")))
            refreshed.append(timed(self.refresh))
            if at < ROUNDS - 1:  # the night begins anew
                self.store.replace(self.last.slice(0, 0), id=f"new {at}")
                self.refresh()
        return min(appended), min(refreshed)

    def refresh(self) -> None:
        """Bring the results up to date."""
        weft.refresh(nightly(), self.store, into=self.folder / "results")

    @property
    def events(self) -> Path:
        """The folder of all events, the last day too."""
        return self.folder / "events"

    def event_bytes(self) -> int:
        """Return the size of all events as parquet, the last day left out."""
        *files, _ = sorted(self.events.iterdir())
        return sum(file.stat().st_size for file in files)

    def slice_bytes(self) -> int:
        """Return the size of all slices."""
        return sum(file.bytes for file in self.store.manifest.files())


def _night(quick: bool) -> Sheet:
    size = "quick" if quick else "full"
    days, events = DAYS[size], EVENTS_PER_DAY[size]
    with TemporaryDirectory() as place:
        nights = Nights.of(Path(place), days, events)
        share = 100 * nights.slice_bytes() / nights.event_bytes()
        _, refreshed = nights.pass_by(nights.last)
        whole = min(timed(lambda: _full_run(nights)) for _ in range(ROUNDS))
        wrong = difference(nights)
    row = {
        "events": events * days,
        "store % of events": share,
        "full run s": whole,
        "refresh s": refreshed,
        "full run / refresh": whole / refreshed,
    }
    return Sheet((row,), (wrong,) if wrong else ())


def _append(quick: bool) -> Sheet:
    events = APPENDED["quick" if quick else "full"]
    table = day_of_readings(0, events)
    with TemporaryDirectory() as place:
        store = weft.Store(place, nightly())
        store.append(table, id="first")
        times = [
            (timed(lambda: _plain_slices(table)), timed(partial(store.append, table, f"{at}")))
            for at in range(ROUNDS + 2)
        ]
        counted = store.run(nightly().with_windows({"1d": "1 day"}))["n"].to_pylist()
    wrong = () if sum(counted) == events * (ROUNDS + 3) else (f"{sum(counted)} events counted",)
    plain, appended = (min(column) for column in zip(*times, strict=True))
    row = {"events": events, "append s": appended, "slicing s": plain, "ratio": appended / plain}
    return Sheet((row,), wrong)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
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
    table = parquet.read_table(nights.events)
    rows = weft.run(nightly(), {"readings": table}, engine="local")
    parquet.write_table(rows, nights.folder / "rows.parquet")


def difference(nights: Nights) -> str:
    """Compare the results that were refreshed with `rows.parquet`, those of the full run."""
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
