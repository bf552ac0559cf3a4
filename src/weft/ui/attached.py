"""Streams that run elsewhere, seen through their checkpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING

from weft.engines.spark.streaming.checkpoint.control import Control
from weft.engines.spark.streaming.checkpoint.places import Place
from weft.engines.spark.streaming.checkpoint.record import Checkpoint
from weft.engines.spark.streaming.checkpoint.versions import announced
from weft.engines.spark.streaming.journal import Journal
from weft.errors import DataError, InputError, UnsupportedError
from weft.plan.body import COLUMNAR

if TYPE_CHECKING:
    from weft.engines.spark.streaming.checkpoint.control import Action, Limits
    from weft.engines.spark.streaming.checkpoint.record import Record
    from weft.engines.spark.streaming.progress import Progress
    from weft.query import Query

_FRESH_S = 0.8  # several pages that look at once read the files once
_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the checkpoint of a stream said when somebody looked."""

    record: Record
    history: tuple[Progress, ...]
    limits: Limits

    @property
    def queries(self) -> list[tuple[Query, bool]]:
        """All queries, and whether each is active."""
        active = [(query, True) for query in self.record.plan.queries]
        return active + [(query, False) for query in self.record.suspended_queries]

    @property
    def windows(self) -> int:
        """The number of windows that share the state."""
        return len(self.record.plan.emits)

    @property
    def is_live(self) -> bool:
        """Whether queries may come and go."""
        return self.record.strategy == COLUMNAR


@dataclass
class Attached:
    """A stream by its checkpoint; looking at it is reading files, and holds up nothing."""

    number: int
    name: str
    _lock: Lock = field(default_factory=Lock)
    _journal: Journal | None = None
    _seen: Seen | None = None
    _looked: float = float("-inf")

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint itself."""
        return Checkpoint(Place.of(self.name))

    @property
    def journal(self) -> Journal:
        """What the stream writes down."""
        if self._journal is None:
            self._journal = Journal(self.checkpoint.own)
        return self._journal

    def look(self) -> Seen:
        """Return what the checkpoint says by now; an error if no stream has run with it.

        What says the same as before is the same object.
        """
        with self._lock:
            if self._seen is None or time.monotonic() - self._looked > _FRESH_S:
                try:
                    self._seen, self._looked = self._read(self._seen), time.monotonic()
                except (OSError, ValueError, LookupError) as error:
                    raise DataError(
                        f"the checkpoint {self.name} cannot be read: {error}",
                        hint="is it whole, and was it written by this version of weft?",
                    ) from error
            return self._seen

    def _read(self, before: Seen | None) -> Seen:
        kept = self.checkpoint
        known = announced(kept.versions)
        if before is not None and known and known[-1][0] == before.record.version:
            record: Record | None = before.record  # plans are large, and seldom change
        else:
            record = kept.read()
        if record is None:
            raise InputError(
                f"no stream has run with the checkpoint {self.name}",
                hint="start it with weft stream; this page looks again by itself",
            )
        seen = Seen(record, tuple(self.journal.history()), Control(kept.own).complete_from())
        return before if before is not None and _same(before, seen) else seen

    def ask(self, action: Action, query: str, sink: str | None = None) -> str:
        """Leave a request as `weft queries` does, and wait for what becomes of it."""
        seen = self.look()
        if not seen.is_live:
            raise UnsupportedError(
                f"the stream runs by the {seen.record.strategy} strategy, whose states cannot "
                "change",
                hint="start it with --strategy columnar to add queries while it runs",
            )
        control = Control(self.checkpoint.own)
        if action == "add":
            from weft.parsing import parse

            parse(query)  # a mistake is shown with its place, and reaches no stream
        answer = control.answered(control.ask(action, query, sink), _PATIENCE_S)
        self._looked = float("-inf")
        if answer is None:
            return "left for the stream, which answers after its next micro-batch"
        if not answer.ok:
            raise UnsupportedError(answer.error or "refused", hint=answer.hint)
        return f"done: from micro-batch {answer.from_batch} on"


def _same(a: Seen, b: Seen) -> bool:
    # Plans are compared by whether they were read anew.
    return a.record is b.record and (a.history, a.limits) == (b.history, b.limits)


def lag_s(progress: Progress) -> float | None:
    """Return how far the watermark was behind the clock when a micro-batch began.

    >>> from weft.engines.spark.streaming.progress import Progress
    >>> at, behind = "2024-01-01T00:00:10.500Z", "2024-01-01T00:00:00.000Z"
    >>> lag_s(Progress(0, 1, 1.0, 1.0, behind, None, 1, 0, 9, at=at))
    10.5
    """
    if progress.watermark is None or progress.at is None:
        return None
    began, behind = map(datetime.fromisoformat, (progress.at, progress.watermark))
    return (began - behind).total_seconds()
