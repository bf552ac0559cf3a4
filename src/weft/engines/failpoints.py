"""Places where a stream may be stopped on purpose, to see what a restart makes of it.

A crash is worst between two writes that belong together. Each such place has a name here, and
`WEFT_FAILPOINT=rows.kept:3` ends the process, as a kill would, when it gets there the third time.
Where the variable is not set, a place costs a comparison, a few times in a micro-batch.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.errors import QueryError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE = "WEFT_FAILPOINT"
POINTS = {
    "version.planned": "a version of the workload is planned, and not written yet",
    "version.written": "a version of the workload is written, and nobody was told",
    "state.committed": "operators have written their state, and no sink has a row",
    "rows.written": "files of a micro-batch are written, and not under their name",
    "rows.kept": "the sink of a query has the rows of a micro-batch, and others may not",
    "batch.done": "all sinks have the rows of a micro-batch, and Spark did not commit it",
    "request.answered": "a request is answered, and still there",
    "snapshot.begun": "part of a snapshot is made",
}


@dataclass(slots=True)
class _Armed:
    point: str
    left: int  # how often it is still passed
    stop: Callable[[], None]


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _of_environment() -> _Armed | None:
    text = os.environ.get(VARIABLE)
    if not text:
        return None
    point, _, times = text.partition(":")
    if point not in POINTS or not (times or "1").isdecimal() or times == "0":
        raise QueryError(
            f"{VARIABLE} is {text!r}, which names no place to stop at",
            hint=suggest(point, POINTS, f"name one of {', '.join(POINTS)}, with :N for the N-th"),
        )
    return _Armed(point, int(times or 1) - 1, _killed)


_armed = _of_environment()


def may_stop(point: str) -> None:
    """Say that the program is at a place where it may be stopped."""
    if _armed is None or _armed.point != point:
        return
    if _armed.left:
        _armed.left -= 1
    else:
        _armed.stop()


@contextmanager
def stopping(point: str, stop: Callable[[], None], times: int = 1) -> Iterator[None]:
    """Call a function where the program gets to a place for the n-th time, instead of killing it.

    >>> with stopping("batch.done", lambda: print("here"), times=2):
    ...     for _ in range(2):
    ...         may_stop("batch.done")
    here
    """
    global _armed
    before, _armed = _armed, _Armed(point, times - 1, stop)
    try:
        yield
    finally:
        _armed = before
