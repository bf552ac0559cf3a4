"""A stream with an open page that looks at it, and without: what the page takes from it.

The page is a process of its own, as `weft ui` is, and whoever looks at it another one. Blocks of
micro-batches with and without take turns in one run of one stream, whose history is full. What two
medians of times differ by is mostly noise; the share of the processors' work that was the page's is
what a stream loses that needs them all, and can be told to a thousandth.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft.bench.frame import Column, Entry, Limit, Sheet, Table
from weft.calibration.clocks import processor_seconds
from weft.errors import InternalError
from weft.generate import sensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

_CORES = 2
_SIZES = {"full": (12, 9, 60_000), "quick": (4, 2, 2_000)}  # blocks, micro-batches, events of each
_TURNS = (False, True, True, False)  # so that what changes with time is in both alike
_WINDOWS = {
    "10s": weft.tumbling("10 seconds"),
    "1m": weft.tumbling("1 minute"),
    "5m": weft.tumbling("5 minutes"),
    "5m/1m": weft.hopping("5 minutes", "1 minute"),
}
_READER = "import sys, urllib.request as u\nfor line in u.urlopen(sys.argv[1]): pass"


def _query() -> weft.Query:
    return weft.Query(
        "features",
        source="readings",
        time="ts",
        keys="device",
        windows=_WINDOWS,
        aggs={"n": "count(*)", "mean": "avg(temp)", "hi": "max(temp)"},
        watermark="10 seconds",
    )


def _fill(checkpoint: Path) -> None:
    """Let the stream have a history, as one has that has run for long."""
    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.engines.spark.streaming.journal import MOST_BATCHES, Journal
    from weft.engines.spark.streaming.progress import Progress

    at, shares = "2024-01-01T00:00:00.000Z", tuple(("features", w, 9000) for w in _WINDOWS)
    (checkpoint / "weft").mkdir(parents=True)
    journal = Journal(Place.of(checkpoint) / "weft")
    for batch in range(MOST_BATCHES):
        journal.add(Progress(batch, 60_000, 9e4, 0.6, at, None, 900, 0, 90_000, at, shares))


@contextmanager
def _page(checkpoint: Path) -> Iterator[tuple[str, int]]:
    """Serve the page of a stream; return its address, and its process."""
    words = ("-m", "weft", "ui", "--port", "0", "--checkpoint", str(checkpoint))
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://[\d.:]+", server.stdout.readline())
        if found is None:
            raise InternalError("weft ui does not say where it listens")
        yield found[0], server.pid
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _looking(address: str) -> Iterator[None]:
    """Look at the page of the stream, as a browser does that is open."""
    command = [sys.executable, "-c", _READER, f"{address}/streams/0/events"]
    reader = subprocess.Popen(command)
    try:
        yield
    finally:
        reader.terminate()
        reader.wait()


def _measure(quick: bool) -> Sheet:
    from weft.engines.spark.session import local_session

    blocks, batches, events = _SIZES["quick" if quick else "full"]
    session = local_session(_CORES)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    work = np.zeros(2)  # of the page, and of all: the stream, the page, and who looks at it
    with TemporaryDirectory() as place:
        folder, checkpoint = Path(place) / "in", Path(place) / "state"
        folder.mkdir()
        _fill(checkpoint)
        files = iter(_files(Path(place), blocks * batches + batches, events))
        next(files).rename(folder / "0.parquet")
        schema = session.read.parquet(str(folder)).schema
        source = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        running: Any = weft.start(
            _query(),
            {"readings": source.parquet(str(folder))},
            lambda rows, _: rows.write.format("noop").mode("append").save(),
            checkpoint,
            strategy="columnar",
        )
        try:
            with _page(checkpoint) as (address, server):
                for _ in range(batches - 1):  # until Java has compiled what it runs
                    _took(running, folder, next(files))
                for block in range(blocks):
                    is_open = _TURNS[block % len(_TURNS)]
                    with _looking(address) if is_open else nullcontext():
                        took = [_took(running, folder, next(files))]
                        before = _work(server)
                        took += [_took(running, folder, next(files)) for _ in range(batches - 1)]
                        work += is_open * (_work(server) - before)
                    seconds[is_open] += took[1:]  # the first one meets what begins or ends
        finally:
            running.stop()
    without, beside = (statistics.median(seconds[is_open]) for is_open in (False, True))
    row = {
        "micro-batches of each": len(seconds[True]),
        "rows/s without": events / without,
        "rows/s with a page": events / beside,
        "slower %": 100 * (beside / without - 1),
        "work of the page %": 100 * work[0] / work[1],
    }
    return Sheet((row,))


def _work(server: int) -> npt.NDArray[np.float64]:
    """Return the seconds that processors have worked for the page, and for all of this."""
    return np.array([processor_seconds(server), processor_seconds(os.getpid())])


def _files(place: Path, count: int, events: int) -> Iterator[Path]:
    import pyarrow.parquet as pq

    table = sensors(count * events, 7, devices=1_000, rate=1_000.0)
    for at in range(count):
        path = place / f"{at}.parquet"
        pq.write_table(table.slice(at * events, events), path)
        yield path


def _took(running: Any, folder: Path, file: Path) -> float:
    """Let a stream read one file more; return the seconds of that micro-batch."""
    file.rename(folder / file.name)
    running.processAllAvailable()
    reports = [report for report in running.recentProgress if report.numInputRows]
    return float(reports[-1].batchDuration / 1000)


PAGE = Table(
    name="ui/page",
    question="What does an open page cost the stream that it looks at?",
    columns=(
        Column("micro-batches of each", ",d"),
        Column("rows/s without", ",.0f"),
        Column("rows/s with a page", ",.0f"),
        Column("slower %", ".2f"),
        Column("work of the page %", ".2f"),
    ),
    compute=_measure,
    limits=(Limit("work of the page %", at_most=1, at_quick=False),),
    needs=("pyspark", "uvicorn"),
)

ENTRIES: tuple[Entry, ...] = (PAGE,)
