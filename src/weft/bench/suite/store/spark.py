"""The same nights on Spark: its executors fold the new day in, and run over all events without.

The ninety days before were appended in this process; both engines write and read the same files.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import weft
from weft.bench.frame import Column, Entry, Limit, Sheet, Table
from weft.bench.suite.spark.sessions import CORES
from weft.bench.suite.store.nights import (
    APPENDED,
    DAYS,
    EVENTS_PER_DAY,
    ROUNDS,
    Nights,
    day_of_readings,
    difference,
    nightly,
    timed,
)
from weft.tables import write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _session() -> SparkSession:
    from weft.engines.spark.session import local_session

    return local_session(CORES)


def _write(query: weft.Query, readings: DataFrame, into: Path) -> None:
    rows = weft.run(query, {"readings": readings}, engine="spark")
    rows.write.mode("overwrite").option("compression", "zstd").parquet(str(into))


def _night(quick: bool) -> Sheet:
    size = "quick" if quick else "full"
    days, events = DAYS[size], EVENTS_PER_DAY[size]
    session = _session()
    with TemporaryDirectory() as place:
        nights = Nights.of(Path(place), days, events)
        read = session.read.parquet
        appended, refreshed = nights.pass_by(read(str(nights.events / f"{days:03d}.parquet")))
        run = partial(_write, nightly(), read(str(nights.events)), nights.folder / "rows.parquet")
        whole = min(timed(run) for _ in range(ROUNDS))
        wrong = difference(nights)
    row = {
        "events": events * days,
        "full run s": whole,
        "append s": appended,
        "refresh s": refreshed,
        "full run / refresh": whole / refreshed,
        "full run / night": whole / (appended + refreshed),
    }
    return Sheet((row,), (wrong,) if wrong else ())


def _append(quick: bool) -> Sheet:
    events = APPENDED["quick" if quick else "full"]
    session = _session()
    with TemporaryDirectory() as place:
        path = write_table(day_of_readings(0, events), Path(place) / "day.parquet")
        day = session.read.parquet(str(path))
        store = weft.Store(Path(place) / "store", nightly())
        slicing = nightly().with_windows({"30m": "30 minutes"})
        plain = partial(_write, slicing, day, Path(place) / "plain")
        store.append(day, id="first")
        plain()
        times = [(timed(plain), timed(partial(store.append, day, f"{at}"))) for at in range(ROUNDS)]
        counted = store.run(nightly().with_windows({"1d": "1 day"}))["n"].to_pylist()
    wrong = () if sum(counted) == events * (ROUNDS + 1) else (f"{sum(counted)} events counted",)
    sliced, appended = (min(column) for column in zip(*times, strict=True))
    row = {"events": events, "append s": appended, "slicing s": sliced, "ratio": appended / sliced}
    return Sheet((row,), wrong)


NIGHT = Table(
    name="store/night_spark",
    question="What does a night cost on Spark with a store, and what without?",
    columns=(
        Column("events", ",d"),
        Column("full run s", ".2f"),
        Column("append s", ".2f"),
        Column("refresh s", ".3f"),
        Column("full run / refresh", ".1f"),
        Column("full run / night", ".1f"),
    ),
    compute=_night,
    limits=(Limit("full run / refresh", at_least=10, at_quick=False),),
    needs=("pyspark",),
)

APPEND = Table(
    name="store/append_spark",
    question="What does an append cost on Spark beside the slicing of its events?",
    columns=(
        Column("events", ",d"),
        Column("append s", ".3f"),
        Column("slicing s", ".3f"),
        Column("ratio", ".2f"),
    ),
    compute=_append,
    limits=(Limit("ratio", at_most=1.3, at_quick=False),),
    needs=("pyspark",),
)

ENTRIES: tuple[Entry, ...] = (NIGHT, APPEND)
