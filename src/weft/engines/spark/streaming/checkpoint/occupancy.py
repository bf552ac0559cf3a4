"""One driver at a time: who runs a stream with a checkpoint on this machine holds it.

The operating system ends the hold with the process, however that ends. Checkpoints on other file
systems cannot be held; there Spark lets one of two drivers write a micro-batch's offsets.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from weft.errors import UnsupportedError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql.streaming.query import StreamingQuery

    from weft.engines.spark.streaming.checkpoint.places import Place

_FILE = "driver"
_HOLDS: dict[Path, Hold] = {}  # of this process


@dataclass(slots=True)
class Hold:
    """A checkpoint that this process holds, and the stream that it does so for."""

    path: Path
    file: IO[str]
    running: StreamingQuery | None = None

    def release(self) -> None:
        """Let another driver have the checkpoint; more than once does nothing."""
        if _HOLDS.get(self.path) is self:
            del _HOLDS[self.path]
        self.file.close()

    @property
    def is_needed(self) -> bool:
        """Whether the stream still runs; the news of its end come a little later than the end."""
        try:
            return self.running is not None and bool(self.running.isActive)
        except Exception:  # noqa: BLE001  the session itself is gone, in whatever way it tells
            return False


@contextmanager
def held(own: Place) -> Iterator[Hold | None]:
    """Hold a checkpoint while a stream starts, and from then on; None where nobody can."""
    hold = _held(own)
    try:
        yield hold
    except BaseException:
        if hold is not None:
            hold.release()
        raise


def _held(own: Place) -> Hold | None:
    if own.local is None or fcntl is None:
        return None
    own.local.mkdir(parents=True, exist_ok=True)
    path = own.local / _FILE
    before = _HOLDS.get(path)
    if before is not None and not before.is_needed:
        before.release()
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _occupied(own, file) from None
    except OSError:  # a file system that knows no holds
        file.close()
        return None
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    hold = _HOLDS[path] = Hold(path, file)
    return hold


def _occupied(own: Place, file: Any) -> UnsupportedError:
    with file:
        file.seek(0)
        who = file.read().strip() or "another process"
    return UnsupportedError(
        f"a stream runs with the checkpoint {own.parent} already: {who}",
        hint="stop that one first, or give this one a directory of its own",
    )
