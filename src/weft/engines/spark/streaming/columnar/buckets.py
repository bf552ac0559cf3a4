"""Buckets of keys in Spark's state store: what comes to one, and the log that is its state.

A micro-batch costs a bucket a handful of calls to the state store, however many keys it has: one
to read what earlier micro-batches wrote, one to append what this one changed. When the log of
changes outweighs what is alive in it, it is written anew.

Whenever a stream starts, Spark starts a Python beside the driver that only tells which state there
is, and waits for it. So nothing that runs on rows is imported before there are any.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weft.engines.local.state.table_bytes import read_table
from weft.engines.spark.streaming.columnar.byte_values import dump_changes, read_changes
from weft.engines.spark.streaming.columnar.executor_batches import PAYLOAD

try:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
except ImportError:  # before 4.0: there are native streams alone
    StatefulProcessor = object  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        ListState,
        StatefulProcessorHandle,
        TimerValues,
    )
    from pyspark.sql.types import Row

    from weft.engines.local.state.journal import StateChanges

# How many changes are appended before all that is alive is written anew.
_MOST_CHANGES = 32
_BESIDE_THE_DRIVER = "pyspark.sql.streaming.transform_with_state_driver_worker"


@dataclass(slots=True)
class Logged:
    """What the log of a bucket holds: chunks by name, in so many changes of so many bytes.

    Bytes are counted as they are used, and not as they are compressed.
    """

    chunks: dict[str, bytes]
    changes: int
    size: int

    @property
    def is_new(self) -> bool:
        """True when nothing was ever written."""
        return not self.changes

    @staticmethod
    def of(log: Iterable[bytes]) -> Logged:
        """Put chunks together from changes, oldest first.

        >>> log = [dump_changes({"a": b"1", "b": b"2"}), dump_changes({"a": b"3"}, ["b"])]
        >>> Logged.of(log)
        Logged(chunks={'a': b'3'}, changes=2, size=3)
        """
        found = Logged({}, 0, 0)
        for change in log:
            found.changes += 1
            for name, chunk in read_changes(change).items():
                if chunk is None:
                    found.chunks.pop(name, None)
                else:
                    found.chunks[name] = chunk
                    found.size += len(chunk)
        return found


def _leave_the_terminal() -> None:
    """In the Python beside the driver, say nothing more; it would tell users what it is made of.

    PySpark prints there what it has unpickled, and hands errors over in another way.
    """
    module = getattr(sys.modules["__main__"], "__spec__", None)
    if module is not None and module.name == _BESIDE_THE_DRIVER:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class WatermarkedBuckets(StatefulProcessor):
    """Hands what comes to a bucket to its operator, and moves its watermark once."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Come out of a pickle, wherever that is."""
        _leave_the_terminal()
        self.__dict__.update(state)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the log."""
        self._handle = handle
        self._log: ListState = handle.getListState("log", "changes BINARY")
        self._advanced: dict[int, int] = {}  # how far a bucket's watermark has been moved

    @abstractmethod
    def moved(self, bucket: int, came: pa.Table | None, watermark_ms: int) -> Iterator[Row]:
        """Take what came to a bucket, if anything did, and what the watermark has passed."""

    def handleInputRows(
        self, key: Any, rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Take what came to a bucket."""
        (bucket,) = key
        came = pa.concat_tables([read_table(row[PAYLOAD]) for row in rows])
        yield from self._moved_to(bucket, came, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Move the watermark of a bucket to which nothing came."""
        (bucket,) = key
        watermark_ms = timerValues.getCurrentWatermarkInMs()
        if self._advanced.get(bucket) != watermark_ms:
            yield from self._moved_to(bucket, None, watermark_ms)

    def close(self) -> None:
        """Nothing is held beyond a micro-batch."""

    def _moved_to(self, bucket: int, came: pa.Table | None, watermark_ms: int) -> Iterator[Row]:
        self._advanced[bucket] = watermark_ms
        yield from self.moved(bucket, came, watermark_ms)

    def wake_after(self, watermark_ms: int) -> None:
        """Ask to be called when the watermark has moved on."""
        self._handle.registerTimer(max(watermark_ms, 0) + 1)

    def logged(self) -> Logged:
        """Read the log of the bucket at hand."""
        return Logged.of(bytes(row[0]) for row in self._log.get())

    def log(self, found: Logged, changes: StateChanges, mark: Mapping[str, bytes]) -> None:
        """Append what changed, under a mark of who wrote it."""
        changes.apply(found.chunks)
        alive = sum(map(len, found.chunks.values()))
        if found.changes < _MOST_CHANGES and found.size <= 2 * alive:
            self._log.appendValue((dump_changes({**changes.written, **mark}, changes.removed),))
        else:
            self._log.put([(dump_changes({**found.chunks, **mark}),)])

    def begin_with(self, log: bytes) -> None:
        """Let the bucket at hand begin with the changes that others wrote."""
        self._log.put([(log,)])

    def forget(self) -> None:
        """Remove the log of the bucket at hand."""
        self._log.clear()
