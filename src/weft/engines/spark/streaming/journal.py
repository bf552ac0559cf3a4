"""The last micro-batches of a stream, kept in its checkpoint for whoever looks at it.

The driver writes; nobody who reads can hold it up. A file of the last micro-batches is written
anew after each: it is small, and a reader never sees half of it on any file system.
"""

from __future__ import annotations

import json
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql.streaming.listener import StreamingQueryListener

from weft.engines.spark.streaming.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

    from weft.engines.spark.streaming.checkpoint.occupancy import Hold
    from weft.engines.spark.streaming.checkpoint.places import Place
    from weft.engines.spark.streaming.sinks import Route

MOST_BATCHES = 500
_EARLY_REPORTS = 64


class Journal:
    """What a stream did in its last micro-batches, and where its rows go."""

    def __init__(self, own: Place) -> None:
        self._own = own
        self._place = own / "progress.jsonl"
        self._sinks = own / "sinks.json"
        self._lines: deque[str] | None = None  # read when the first is added
        self._known: dict[str, Progress] = {}  # what lines said that were read before

    def add(self, progress: Progress) -> None:
        """Keep the figures of a micro-batch, and forget the oldest.

        A checkpoint that is gone stays so: reports come a little after the stream.
        """
        if self._own.local is not None and not self._own.local.is_dir():
            return
        if self._lines is None:
            self._lines = deque(self._kept_lines(), maxlen=MOST_BATCHES)
        self._lines.append(json.dumps(asdict(progress)))
        self._place.write("\n".join(self._lines) + "\n")

    def history(self) -> list[Progress]:
        """Return the micro-batches that are kept, oldest first.

        >>> from tempfile import TemporaryDirectory
        >>> from weft.engines.spark.streaming.checkpoint.places import Place
        >>> with TemporaryDirectory() as folder:
        ...     kept = Journal(Place.of(folder))
        ...     for batch in range(MOST_BATCHES + 2):
        ...         kept.add(Progress(batch, 10, 5.0, 2.0, None, None, 3, 0, 100))
        ...     known = Journal(Place.of(folder)).history()
        >>> len(known), known[0].batch, known[-1].batch
        (500, 2, 501)
        """
        found: dict[str, Progress] = {}
        for line in self._kept_lines():
            with suppress(ValueError, TypeError):  # a line that is damaged tells nothing
                found[line] = self._known.get(line) or Progress(**json.loads(line))
        self._known = found
        return list(found.values())

    def _kept_lines(self) -> list[str]:
        try:
            return (self._place.read() or "").splitlines()
        except UnicodeDecodeError:
            return []

    def tell_sinks(self, routes: Mapping[str, Route]) -> None:
        """Keep where the rows of each query are written, of those that go to directories."""
        told = {query: route.directory_of(query) for query, route in routes.items()}
        self._sinks.write(json.dumps({q: path for q, path in told.items() if path is not None}))

    def sinks(self) -> dict[str, str]:
        """Return the directory of each query's rows."""
        told: dict[str, str] = self._sinks.read_json() or {}
        return told


class JournalListener(StreamingQueryListener):
    """Hands the reports of a session's streams to their journals; one for all streams."""

    def __init__(self) -> None:
        self._journals: dict[str, Journal] = {}
        self._holds: dict[str, Hold] = {}
        # A report may come before whoever starts the stream knows its number.
        self._early: deque[tuple[str, Progress]] = deque(maxlen=_EARLY_REPORTS)
        self._lock = Lock()

    def follow(self, run: str, journal: Journal) -> None:
        """Keep a journal of a run from now on, and of what it has reported already."""
        with self._lock:
            self._journals[run] = journal
            for told, progress in self._early:
                if told == run:
                    journal.add(progress)

    def release_after(self, running: StreamingQuery, hold: Hold | None) -> None:
        """Hold the checkpoint of a stream until it ends."""
        if hold is None:
            return
        hold.running, run = running, str(running.runId)
        with self._lock:
            self._holds[run] = hold
        if not hold.is_needed:  # the news of its end may have come before
            hold.release()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Keep a micro-batch."""
        run, progress = str(event.progress.runId), Progress.of(event.progress)
        with self._lock:
            journal = self._journals.get(run)
            if journal is None:
                self._early.append((run, progress))
                return
            # A stream goes on, whether or not somebody can look at it.
            with suppress(OSError):
                journal.add(progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Forget the run, and let others have its checkpoint."""
        run = str(event.runId)
        with self._lock:
            self._journals.pop(run, None)
            hold = self._holds.pop(run, None)
        if hold is not None:
            hold.release()


_LISTENERS: WeakKeyDictionary[Any, JournalListener] = WeakKeyDictionary()


def listener_of(session: SparkSession) -> JournalListener:
    """Return the listener of a session, which is there before its first stream starts."""
    if session not in _LISTENERS:
        listener = JournalListener()
        session.streams.addListener(listener)
        _LISTENERS[session] = listener
    return _LISTENERS[session]
